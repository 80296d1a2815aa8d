"""Names in the documentation exist in the code: kinds, figures, variants, options, settings, files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import typer

from raykd.cli import main as cli
from raykd.corpora.config import SOURCES
from raykd.errors import SpecError
from raykd.figures.table import COSTS, SCORES
from raykd.objectives import OBJECTIVES
from raykd.signals import SIGNALS
from raykd.spec import check, load
from raykd.students import STUDENTS
from raykd.students.embeddings import EMBEDDINGS
from raykd.students.vocabulary import StudentVocabulary
from raykd.sweep.doctor import KINDS as FOLDERS
from raykd.sweep.early_stopping import StoppingConfig
from raykd.sweep.spec import SearchConfig, SweepFile
from raykd.sweep.study import SAMPLERS
from raykd.sweep.sweep_faults import check_sweep
from raykd.tasks import TASKS
from raykd.teachers import TEACHERS
from tests.test_docs import DOCS, FENCE, PAGES, ROOT, options

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
HOME = DOCS / "README.md"
GUIDES = [README, CONTRIBUTING, *(page for page in PAGES if page.parent.name != "results")]
"""Pages that say what is so; those in results/ say what was measured."""
PACKAGE = ROOT / "raykd"
SWEEPS = sorted((ROOT / "sweeps").rglob("*.yaml"))
CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def cells(text: str, first: str) -> list[str]:
    """The cells of the one row of a table that begins with `first`."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def names(text: str) -> list[str]:
    """Names in backticks."""
    return [name for name in CODE.findall(text) if re.fullmatch(r"[a-z_0-9]+", name)]


def section(text: str, heading: str) -> str:
    return re.split(r"^## ", text.split(f"## {heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("setting", "table"),
    [
        ("task", TASKS),
        ("corpus.source", SOURCES),
        ("teachers.kind", TEACHERS),
        ("student.kind", STUDENTS),
        ("objective.kind", OBJECTIVES),
        ("search.sampler", SAMPLERS),
    ],
)
def test_the_first_page_lists_all_that_a_setting_may_be(setting, table):
    assert sorted(names(cells(text_of(HOME), f"`{setting}`")[1])) == sorted(table)


def test_samplers_are_those_of_the_setting():
    assert set(SAMPLERS) == set(get_args(SearchConfig.model_fields["sampler"].annotation))


def test_every_command_is_listed():
    rows = re.findall(r"^\| `raykd ([a-z]+)", text_of(DOCS / "COMMANDS.md"), re.MULTILINE)
    assert sorted(rows) == sorted(cli.VERBS)


def test_teachers_of_parsing_are_listed():
    rows = re.findall(r"^\| `(\w+)` \|", section(text_of(DOCS / "TREEBANKS.md"), "Teachers"), re.MULTILINE)
    assert sorted(rows) == sorted(kind for kind, entry in TEACHERS.items() if "arcs" in entry.model_signals)


def test_every_cost_is_explained_and_no_other():
    page = text_of(DOCS / "FIGURES.md")
    rows = re.findall(r"^\| (`.*?) \| ", section(page, "Size") + section(page, "Speed"), re.MULTILINE)
    explained = [name for row in rows for name in names(row.split(", column ")[0])]
    assert sorted(explained) == sorted(figure.name for figure in COSTS)


def test_every_score_on_dev_is_explained_and_no_other():
    page = section(text_of(DOCS / "FIGURES.md"), "Scores")
    rows = re.findall(r"^\| (`dev_.*?) \| ", page, re.MULTILINE)
    explained = {name for row in rows for name in names(row) if name.startswith("dev_")}
    beside_scores = {figure.name for figure in SCORES if figure.name.startswith("dev_") and figure.metric}
    expected_names = {f"dev_{task.score_name}" for task in TASKS.values()} - {
        "dev_accuracy"
    }  # in the row of dev_f1
    assert explained - {"dev_f1_target"} == beside_scores | expected_names
    assert "`accuracy`" in page


def test_every_signal_is_named_as_a_part_of_the_store():
    assert sorted(names(cells(text_of(DOCS / "STORE.md"), "`transfer/SIGNAL-…`")[1])) == sorted(SIGNALS)


def test_every_folder_of_the_store_is_drawn():
    (drawing,) = re.findall(r"^\.raykd/\n(.*?)^```", text_of(DOCS / "STORE.md"), re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"^  (\w+)/", drawing, re.MULTILINE)) == {*FOLDERS, "working"}


def test_extras_are_listed():
    rows = re.findall(r"^\| `(\w+)` \|", section(text_of(DOCS / "INSTALL.md"), "Extras"), re.MULTILINE)
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    assert sorted(rows) == sorted(project["optional-dependencies"])


def test_every_option_of_serve_is_explained():
    page = section(text_of(DOCS / "SERVING.md"), "Behind HTTP")
    rows = re.findall(r"^\| (`--.*?) \| ", page, re.MULTILINE)
    listed = {name for row in rows for name in CODE.findall(row)}
    assert listed == {name for name in options(cli._imported("serve")) - {"--help"} if name.startswith("--")}


@cache
def known_options() -> frozenset[str]:
    """The options of all verbs, and of `raykd` itself."""
    option_names = options(typer.main.get_command(cli.app))
    for verb in cli.VERBS:
        command = cli._imported(verb)
        for typer_command in (
            command.commands.values() if isinstance(command, typer.core.TyperGroup) else [command]
        ):
            option_names |= options(typer_command)
    return frozenset(option_names)


RAY_OPTIONS = {"--working-dir"}


def unknown_options(text: str) -> list[str]:
    """Unknown options in backticks. In blocks they belong to their commands."""
    spans = [span for span in CODE.findall(FENCE.sub("", text)) if span.startswith("--")]
    return [span for span in spans if re.split(r"[ =]", span)[0] not in known_options() | RAY_OPTIONS]


@pytest.mark.parametrize("page", GUIDES, ids=relative)
def test_options_exist(page):
    assert not unknown_options(text_of(page))


VOCABULARIES = [
    get_args(entry.model_fields["kind"].annotation)[0] for entry in get_args(get_args(StudentVocabulary)[0])
]
KINDS = {
    "task": {*TASKS},
    "source": {*SOURCES},
    "sampler": {*SAMPLERS},
    "kind": {*TEACHERS, *STUDENTS, *OBJECTIVES, *EMBEDDINGS, *VOCABULARIES}
    | {*get_args(StoppingConfig.model_fields["kind"].annotation)},
}


def code_lines(text: str) -> list[str]:
    """The lines of all blocks except for Python, and what stands in backticks."""
    blocks = [match[0] for match in FENCE.finditer(text) if not re.match(r" *```python", match[0])]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [*lines, *CODE.findall(FENCE.sub("", text))]


def unknown_kinds(text: str) -> list[str]:
    """`kind: x` and the like, in code, that do not exist."""
    setting = re.compile(r"\b(task|source|sampler|kind)(?:: |=)([a-z][a-z_0-9]*)\b")
    pairs = [pair for line in code_lines(text) for pair in setting.findall(line)]
    return [f"{key}: {value}" for key, value in pairs if value not in KINDS[key]]


@pytest.mark.parametrize("page", GUIDES, ids=relative)
def test_kinds_exist(page):
    assert not unknown_kinds(text_of(page))


@cache
def variants_of(path: Path) -> frozenset[str]:
    return frozenset(load(path).variants)


def unknown_variants(text: str) -> list[str]:
    """Variants in code, and that the sweep file before them does not have; without a file, any has."""
    faults = []
    for line in code_lines(text):
        mentioned = re.findall(r"--variant ([a-z0-9]\w*)", line) + ["small"] * ("--small" in line)
        if not mentioned:
            continue
        files = [path for path in SWEEPS if re.search(rf"(?:^|[ /]){path.stem}(?:\.yaml)? ", line)]
        existing = {name for path in files or SWEEPS for name in variants_of(path)}
        faults += [f"{line.strip()}: {name}" for name in mentioned if name not in existing]
    return faults


@pytest.mark.parametrize("page", [README, CONTRIBUTING, *PAGES], ids=relative)
def test_variants_exist(page):
    assert not unknown_variants(text_of(page))


def wrong_settings(text: str, folder: Path) -> Iterator[str]:
    """The faults of the YAML blocks of a page.

    A block with a `name` is a complete sweep file, and its variants are checked too. Any block may leave out settings;
    the settings that it has must exist.
    """
    (folder / "sweeps" / "page").mkdir(parents=True)
    (folder / "sweeps" / "base").symlink_to(ROOT / "sweeps" / "base")
    for number, block in enumerate(BLOCK.findall(text)):
        path = folder / "sweeps" / "page" / f"block-{number}.yaml"
        path.write_text(block, encoding="utf-8")
        section_names = re.findall(r"^  (\w+): \{", block.partition("\nvariants:\n")[2], re.MULTILINE)
        whole = re.search("^name:", block, re.MULTILINE) is not None
        for variants in [[], *([name] for name in section_names if whole)]:
            try:
                document = load(path, variants=variants)
                check_sweep(document) if whole else check(document, SweepFile)
            except SpecError as error:
                yield from (str(fault) for fault in error.faults if not fault.message.startswith("missing;"))


@pytest.mark.parametrize("page", GUIDES, ids=relative)
def test_settings_exist(page, tmp_path):
    assert not list(wrong_settings(text_of(page), tmp_path))


def unknown_modules(text: str) -> list[str]:
    """Modules in the two tables of ARCHITECTURE.md that do not exist, or lack a name that stands in brackets."""
    faults = []
    rooms = text.split("| room |")[1].split("\n\n")[0]
    for row in rooms.splitlines()[2:]:
        _, room, holds, *_ = row.split("|")
        folders = [PACKAGE / name for name in re.findall(r"`(\w+)/`", room)]
        files = re.findall(r"`(\w+\.py)`", holds)
        faults += [name for name in files if not any((folder / name).exists() for folder in folders)]
    folder = PACKAGE
    answers = section(text, "Which file answers which question")
    for path, brackets in re.findall(r"`([\w/]+(?:\.py|/))`(?: \(([^)]*)\))?", answers):
        module = next(
            (candidate for candidate in (PACKAGE / path, folder / path) if candidate.exists()), None
        )
        if module is None:
            faults.append(path)
        elif module.is_dir():
            folder = module
        else:
            folder = module.parent
            required = [name.rpartition(".")[2] for name in CODE.findall(brackets)]
            missing = [name for name in required if not re.search(rf"\b{name}\b", text_of(module))]
            faults += [f"{path} ({name})" for name in missing]
    return faults


def test_the_modules_of_the_architecture_exist():
    assert not unknown_modules(text_of(DOCS / "ARCHITECTURE.md"))


def test_the_tests_that_show_reliability_exist():
    mentioned = re.findall(r"`(\w+(?:/\w+)*(?:\.py|/))`", text_of(DOCS / "RELIABILITY.md"))
    assert len(mentioned) > 20
    assert [
        name for name in mentioned if not ((ROOT / "tests" / name).exists() or (ROOT / name).exists())
    ] == []


def test_names_that_do_not_exist_are_found(tmp_path):
    page = (
        "`--where` and `--wher x`, `kind: bilstm` and `task: nr`, `search.sampler=tpee`\n\n"
        "`raykd sweep sweeps/xtremedistil/kept.yaml --variant long --variant lng`, `uner --small`, `--variant no`\n"
        "```\nraykd sweep sweeps/quickstart.yaml --small\n```\n"
        "```yaml\nschedule: {epochs: 3, epoch: 3}\n```\n"
        "```yaml\nname: whole\ncorpus: {source: builtin}\nteachers: {kind: bilstm_crf}\n"
        "student: {kind: bilstm, embedding_dim: 8, hidden_dim: 8}\nobjective: {kind: gold}\n"
        "variants:\n  small: {search: {trial: 1}}\n```\n"
    )
    assert unknown_options(page) == ["--wher x"]
    assert unknown_kinds(page) == ["task: nr", "sampler: tpee"]
    assert [fault.rpartition(": ")[2] for fault in unknown_variants(page)] == ["small", "lng", "no"]
    keys = [re.findall(r" ([a-z.]+): unknown key", fault) for fault in wrong_settings(page, tmp_path)]
    assert keys == [["schedule.epoch"], ["search.trial"]]
    rooms = "| room | holds | |\n|---|---|---|\n| `cli/` | `live.py`, `dead.py` | |\n\n"
    answers = "## Which file answers which question\n`sweep/study.py` (`Study.ask`, `tells`), `other.py`, `budget.py`"
    assert unknown_modules(f"{rooms}{answers}") == ["dead.py", "sweep/study.py (tells)", "other.py"]


def test_the_readme_is_read_in_five_minutes():
    assert len(text_of(README).split()) <= 1200
