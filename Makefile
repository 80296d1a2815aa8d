# Three commands are the whole build: `make demo`, `make test`, `make check`. Each sets up what it needs, and so do
# `make test-all`, every test, and `make docs`, which builds the site of docs/.

# The first of these that there is; another one: make PYTHON=/path/to/python3.12 …
PYTHON ?= $(or $(shell for name in python3.11 python3.12 python3.13 python3; do \
	$$name -c '' 2>/dev/null && echo $$name && break; done),python3)
VENV := .venv
BIN := $(VENV)/bin
SOURCES := raykd tests benchmarks

# Where it is set, each of the many processes of a sweep would compile all that it imports, for four seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all docs gpu fuzz chaos check format clean
.NOTPARALLEL:  # two installations into one environment

# What is installed: `demo` what raykd itself needs, `dev` and `docs` an extra of pyproject.toml beside it. Made anew
# whenever what is to be installed changes; an interrupted installation is simply continued. Python compiles what is
# imported: all 24,000 files would take more than half of an installation's time, and 0.5 GB.
DEMO := $(VENV)/.ready-demo
DEV := $(VENV)/.ready-dev
DOCS := $(VENV)/.ready-docs

$(DEMO) $(DEV) $(DOCS): $(VENV)/.ready-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null || { \
		echo "raykd needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is none of them; give one: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@echo "Installing into $(VENV) (once; some minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off --no-compile \
		-c constraints.txt -e '.$(addprefix [,$(addsuffix ],$(filter-out demo,$*)))'
	@touch $(DEMO) $@

demo: $(DEMO)
	$(BIN)/raykd sweep sweeps/quickstart.yaml --resume
	$(BIN)/raykd export quickstart#best .raykd/demo --overwrite
	@echo "A sentence, labelled by the best student:"
	@echo "Marie Keller of Arden Energy flew to Brighton on Monday ." | $(BIN)/raykd predict .raykd/demo - --marked

# On one process more than there are cores, to five, because tests of sweeps wait for other processes; each file is one
# process' whole, and so are all tests that share one Ray cluster.
# Both say at the end what they skipped and why.
PROCESSES ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
PYTEST := -m pytest -rs --numprocesses $(PROCESSES) --maxprocesses 5 --dist loadfile --no-loadscope-reorder

# Without the tests that are marked slow.
test: $(DEV)
	$(BIN)/python $(PYTEST) --quick

# All of them but those of `make chaos`; continuous integration runs it.
test-all: $(DEV)
	$(BIN)/python $(PYTEST)

# The pages of docs/ as a site; a link or an anchor that leads nowhere is an error.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "docs: the site is in site/index.html. Next: open it, or for its search too: $(BIN)/mkdocs serve"

# What raykd does on this machine's GPU, in at most eight minutes: Markdown on the screen, and a file for each section in
# build/gpu (docs/results/gpu.md). It installs nothing, because the build of PyTorch that fits the GPU is there already:
# PYTHON is the interpreter that has it. GPU=--small runs everything in small on the processor.
GPU ?=
gpu:
	PYTHONPATH=.$(if $(PYTHONPATH),:$(PYTHONPATH)) $(PYTHON) benchmarks/gpu.py $(GPU)

# Damaged sweep files and corpora, 10,000 of each (some 15 minutes): how they end, and every one that ends otherwise
# than in a sentence or a success. CASES and SEED choose others.
CASES ?= 10000
SEED ?= 0
fuzz: $(DEV)
	$(BIN)/python -m tests.fuzz.cases sweep_files $(SEED) $(CASES)
	$(BIN)/python -m tests.fuzz.cases corpora $(SEED) $(CASES)
	$(BIN)/python -m tests.fuzz.cases predicted $(SEED) $(CASES)

# Kills, a full disk, flipped bits, two drivers, a tracking server that goes away or hangs, against real sweeps (some 15
# minutes with nothing else running): each has to end as the undisturbed one. KILLS and SEED choose others. After them
# the faults of nodes, on several node processes (for root alone: they have mounts of their own), and the tests that
# `make test-all` leaves out for their length: with several node processes, and of rarer kills.
KILLS ?= 30
chaos: $(DEV)
	$(BIN)/python -m tests.chaos.faults $(SEED) $(KILLS)
	test $$(id -u) != 0 || $(BIN)/python -m tests.chaos.nodes
	RAYKD_CHAOS=1 $(BIN)/python -m pytest tests/chaos tests/cluster/test_slurm.py tests/end_to_end/test_nodes.py \
		tests/end_to_end/test_distill.py tests/end_to_end/test_interrupt.py tests/precompute/test_precompute_kill.py \
		tests/tracking/test_server_away.py

check: $(DEV)
	$(BIN)/ruff format --check $(wildcard $(SOURCES))
	$(BIN)/ruff check $(wildcard $(SOURCES))
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff check --fix $(wildcard $(SOURCES))
	$(BIN)/ruff format $(wildcard $(SOURCES))

# What a sweep computed (.raykd, mlflow.db) is not touched.
clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache .import_linter_cache .hypothesis raykd.egg-info
