"""The shipped sweep files: all variants are valid, and the small form of each file runs from end to end.

The files of `sweeps/base` are no sweeps; the files extending them are checked instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raykd.cluster.placement import preflight
from raykd.cluster.topology import Topology
from raykd.objectives.logits import Logits
from raykd.recipes.recipe import Recipe, resolve_stage
from raykd.spec import assignments, load
from raykd.spec.yaml12 import parse
from raykd.sweep.small_variant import larger_settings
from raykd.sweep.spec import plain_sweep
from raykd.sweep.sweep_faults import check_sweep
from raykd.training.execute import execute_run
from raykd.training.student_runs import student_runs
from raykd.training.worker import Worker
from tests.corpora_root import corpora_root
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import TREE, prepared

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "sweeps").rglob("*.yaml"))
BASES = [path for path in FILES if path.parent.name == "base"]
SWEEPS = {str(path.relative_to(ROOT / "sweeps")): path for path in FILES if path not in BASES}
VARIANTS = [(name, variant) for name, path in SWEEPS.items() for variant in load(path).variants]
SMALL = [name for name, variant in VARIANTS if variant == "small"]
# Smaller still: the form is tried here, not what comes of it.
TINY = ("teachers.epochs=1", "schedule.epochs=1", "student.embedding_dim=6")
BUILTIN = ("corpus.train=24", "corpus.dev=8", "corpus.test=8", "corpus.unlabelled=8")
REAL = ("corpus.cap=24", "corpus.dev_cap=8", "corpus.test_cap=8")
PRETRAINING = ("schedule.epochs=1", "student.embedding_dim=6", "corpus.cap=44")
ENCODERS = ("schedule.epochs=1", "corpus.cap=44")
CUT = ("cut_uner", "cut_wikiann")
"""Students that are cut from their teacher, which is an encoder."""
OF_ENCODERS = (*CUT, "ner", "pretraining_distillation", "semantic_parsing_encoders", "sick_encoders", "xsid")
PARSING = ("schedule.epochs=1", "student.embedding_dim=8", *REAL)
FOLDERS = {
    "cut_uner": "uner",
    "cut_wikiann": "wikiann",
    "aspect": "aspect",
    "atis": "atis",
    "ner": "wikiann",
    "parsing_1b": ".",
    "parsing_2b": ".",
    "pretraining": "wikineural",
    "pretraining_distillation": "wikineural",
    "sick_encoders": "sick",
    "xsid": "xsid",
    "treebanks": "ud",
    "ud_pos": "ud",
    "classification": "sst2",
    "semantic_parsing": "atis",
    "semantic_parsing_encoders": "xsid",
    "sick": "sick",
    "sst2": "sst2",
    "uner": "uner",
    "zero_shot_pos": "ud",
}


@pytest.mark.parametrize("base", BASES, ids=lambda path: path.name)
def test_every_base_says_what_it_is_and_is_extended(base):
    text = base.read_text(encoding="utf-8")
    assert text.startswith("# A base for other files (`extends`): ")
    assert "name" not in parse(text).value
    extended = [
        (path.parent / extends).resolve()
        for path in FILES
        if (extends := parse(path.read_text(encoding="utf-8")).value.get("extends"))
    ]
    assert base in extended


@pytest.mark.parametrize("name", [name for name in SWEEPS if "/" not in name])
def test_the_files_that_newcomers_copy_extend_no_other(name):
    assert "extends" not in parse(SWEEPS[name].read_text(encoding="utf-8")).value


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_variant_is_valid(name, variant):
    check_sweep(load(SWEEPS[name], variants=[variant]))


@pytest.mark.parametrize("name", [name for name in SWEEPS if "/" in name])
def test_every_file_of_a_paper_has_a_small_form(name):
    assert name in SMALL


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_small_form_is_never_larger(name):
    assert larger_settings(load(SWEEPS[name]), load(SWEEPS[name], variants=["small"])) == []


@pytest.mark.parametrize("folder", sorted({Path(name).parts[0] for name in SWEEPS if "/" in name}))
def test_each_paper_has_a_sweep_of_two_workers_whose_small_form_fits_on_two_cpus(folder):
    (name, *_) = [name for name, variant in VARIANTS if variant == "ddp" and Path(name).parts[0] == folder]
    small = load(SWEEPS[name], variants=["ddp", "small"])
    check_sweep(small)
    resources = plain_sweep(next(assignments(small.tree))).resources
    assert [resources.for_role(role).workers for role in ("teachers", "students")] == [2, 2]
    assert preflight(resources, Topology.of({"CPU": 2.0})).students == 1
    # Nothing else differs from the small form: its results are those of one worker.
    alone = load(SWEEPS[name], variants=["small"])
    assert {key for key in small.tree if small.tree[key] != alone.tree[key]} == {"name", "resources"}


@pytest.mark.parametrize("name", [name for name, variant in VARIANTS if variant == "paper"])
def test_a_variant_with_the_sizes_of_a_paper_gives_every_role_gpus(name):
    recipe = plain_sweep(next(assignments(load(SWEEPS[name], variants=["paper"]).tree)))
    assert recipe.resources.for_role("students").gpus_per_worker
    if recipe.teachers.kind != "none":
        assert recipe.resources.for_role("teachers").gpus_per_worker
        assert recipe.resources.precompute_actor.gpus_per_worker


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    """One store for all files: many share a corpus and its teachers."""
    return str(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    """A pretrained encoder, as it is exported."""
    return make_checkpoint(tmp_path_factory.mktemp("encoder"), head="masked", longest=64)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_small_form_runs(name, store, encoder):
    folder = FOLDERS.get(Path(name).stem)
    sizes = (*TINY, *(BUILTIN if folder is None else REAL))
    if Path(name).stem == "pretraining":
        sizes = PRETRAINING
    if Path(name).stem == "semantic_parsing":
        sizes = PARSING
    if Path(name).stem in OF_ENCODERS:
        sizes = (*ENCODERS, f"teachers.path={encoder}")
        sizes += () if Path(name).stem in ("pretraining_distillation", *CUT) else (f"student.path={encoder}",)
    root = () if folder is None else (f"corpus.root={corpora_root(folder)}",)
    tree = load(SWEEPS[name], (*sizes, *root), variants=["small"]).tree
    recipes: list[Recipe] = [plain_sweep(plain) for plain in assignments(tree)]
    preparation = prepared(store, *recipes)
    runs = {run.id: run for recipe in recipes for run in student_runs(recipe, preparation)}
    for run in runs.values():
        result = execute_run(store, run, worker=Worker(), report=lambda _: None)
        # A language model may be worse than one to which every piece is as probable as any other.
        least = -1.0 if run.task == "masked_lm" else 0.0
        assert least <= (result.scores.mean("test") or 0.0) <= 1
        assert {epoch["stage"] for epoch in result.epochs} == set(range(len(run.stages)))


# Mukherjee & Awadallah 2020, Tables 2 and 3 and Section 5: for each stage its losses with their text, and whether
# layers are unfrozen; the strategy's scope.
GOLD, LOGITS, STATES = ("gold", "labelled"), ("logits", "unlabelled"), ("representation", "unlabelled")
PAPER = {
    "D0": ([({GOLD}, False)], "language"),
    "D0-S": ([({GOLD}, False)], "all"),
    "D1": ([({GOLD, LOGITS}, False)], None),
    "D2": ([({GOLD, LOGITS, STATES}, False)], None),
    "D3.1": ([({STATES}, False), ({GOLD, LOGITS}, False)], None),
    "D3.2": ([({STATES}, False), ({GOLD, LOGITS}, True)], None),
    "D4.1": ([({STATES}, False), ({LOGITS}, False), ({GOLD}, False)], None),
    "D4.2": ([({STATES}, False), ({LOGITS}, True), ({GOLD}, True)], None),
}


def losses_of(stage: dict[str, Any]) -> set[tuple[str, str]]:
    """The losses of a resolved stage, each with the text on which it counts."""
    objective = stage["objective"]
    if objective["kind"] != "mix":
        return {(objective["kind"], stage["text"])}
    assert stage["text"] == "all"
    return {(part["objective"]["kind"], part["text"]) for part in objective["parts"]}


@pytest.mark.parametrize("name", PAPER)
def test_the_strategies_are_those_of_the_paper(name):
    tree = load(ROOT / "sweeps/base/strategies.yaml", [f"strategy={name}"]).tree
    sections = {key: TREE[key] for key in ("task", "corpus", "teachers", "student")}
    recipe = Recipe.model_validate_json(json.dumps({**sections, **tree}))
    stages = [resolve_stage(stage, recipe, unlabelled=True) for stage in recipe.all_stages]
    expected, scope = PAPER[name]
    assert [(losses_of(stage), stage["layers"] == "unfreeze") for stage in stages] == expected
    assert recipe.strategy is not None
    assert recipe.strategy.scope == scope
    # Each stage is trained to convergence on its own held-out loss, from 1e-3 to 1e-8 by a cosine.
    assert all(stage["select"] == "loss" and not stage["training"] for stage in stages)
    length = {"epochs": 400, "max_steps": None, "patience": 5}
    assert [stage["schedule"] for stage in stages] == [length] * len(stages)
    used = recipe.training
    assert (used.optimiser, used.learning_rate_schedule) == ("adam", "cosine")
    assert (used.learning_rate, used.final_learning_rate) == (1e-3, 1e-8)
    # Gold labels and logits have a head each: side by side, or one after the other.
    objectives = [
        part.objective for stage in recipe.all_stages for part in getattr(stage.objective, "parts", ())
    ]
    assert {objective.head for objective in objectives if isinstance(objective, Logits)} <= {"own"}
    assert [stage.get("head") for stage in stages][2:] == ["new"] * (len(stages) - 2)
    layers = {need.layer for stage in recipe.all_stages for need in stage.objective.needs if need.layer}
    assert layers == ({7} if STATES in set().union(*(losses for losses, _ in expected)) else set())
