"""A recipe for training in a second, prepared in a store without Ray: corpus, teachers and transfer sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from raykd.figures.results import RunResult
from raykd.precompute.features import encoder_tasks, feature_plan, mark_texts_encoded, store_encoder_config
from raykd.precompute.latency import Timing
from raykd.precompute.plan import precompute
from raykd.precompute.transfer import transfer_plan
from raykd.recipes.recipe import Recipe
from raykd.recipes.run import Run
from raykd.recipes.signal_needs import stored_needs
from raykd.storage.store import Storage
from raykd.training.execute import execute_run
from raykd.training.prepare import Preparation, prepare
from raykd.training.student_runs import student_runs
from raykd.training.worker import Worker
from tests.transfer.samples import here

TREE = {
    "task": "ner",
    "corpus": {
        "source": "builtin", "languages": ("en", "de"), "train": 24, "dev": 8, "test": 8, "unlabelled": 10
    },
    "teachers": {
        "kind": "bilstm_crf", "scope": "language", "embedding_dim": 6, "hidden_dim": 6, "character_dim": 4,
        "character_hidden": 4, "epochs": 1, "training": {"batch_tokens": 200, "learning_rate": 1e-2},
    },
    "student": {
        "kind": "bilstm", "embedding_dim": 8, "hidden_dim": 6, "vocabulary": {"kind": "wordpiece", "size": 200}
    },
    "objective": {"kind": "structural"},
    "schedule": {"epochs": 2, "anneal_horizon": 3},
    "training": {"batch_tokens": 200, "learning_rate": 1e-2, "dropout": 0.3},
}  # fmt: skip


def recipe(**changes: Any) -> Recipe:
    """The small recipe with changed sections.

    A change is merged into the section of its name. A change of `kind` replaces the section; `stages` replace the
    objective.
    """
    tree: dict[str, Any] = {**TREE, "objective": None} if "stages" in changes else dict(TREE)
    for name, value in changes.items():
        laid_over = isinstance(value, dict) and "kind" not in value and name in tree
        tree[name] = {**tree[name], **value} if laid_over else value
    return Recipe.model_validate(tree)


def prepared(store: str, *recipes: Recipe) -> Preparation:
    """The stored signals for all `recipes`, computed in this process; corpus and teachers are those of the first."""
    preparation = prepare(recipes[0], Storage(store))
    read_features(preparation, *recipes)
    train_teachers(preparation)
    computed(preparation, *recipes)
    return preparation


def read_features(preparation: Preparation, *recipes: Recipe) -> int:
    """The features of frozen encoders for all sentences, computed in this process; how many sentences were read."""
    runs = [run for teacher in preparation.teachers for run in (*teacher.run.members, teacher.run)]
    runs += [run for run_recipe in recipes for run in student_runs(run_recipe, preparation)]
    texts = {teacher.run.id: teacher.text for teacher in preparation.teachers}
    todo = encoder_tasks(preparation.storage, runs, texts)
    for task in todo:
        store_encoder_config(preparation.storage, task.config)
    plan = feature_plan(preparation.storage, todo)
    if plan is not None:
        precompute(plan, launch=here)
    for task in todo:
        mark_texts_encoded(preparation.storage, task)
    return sum(task.new for task in todo)


def train_teachers(preparation: Preparation) -> None:
    """All teachers of the preparation, trained in this process."""
    for teacher in preparation.teachers:
        for run in (*teacher.run.members, teacher.run):
            executed(preparation, run)


def computed(preparation: Preparation, *recipes: Recipe) -> None:
    """The signals for all `recipes`, computed in this process."""
    needs = stored_needs(recipes, unlabelled=preparation.unlabelled)
    requests = [(teacher, needs) for teacher in preparation.teachers]
    plan = transfer_plan(preparation.storage, requests)
    if plan is not None:
        precompute(plan, launch=here)


def student_of(preparation: Preparation, run_recipe: Recipe | None = None, **changes: Any) -> Run:
    """The one run of a recipe: `asked`, or the small recipe with `changes`."""
    (run,) = student_runs(run_recipe or recipe(**changes), preparation)
    return run


def executed(preparation: Preparation, run: Run) -> RunResult:
    """The run, executed in this process."""
    return execute_run(preparation.storage.uri, run, worker=Worker(), report=lambda _: None)


def called_once(calls: Mapping[Any, Callable[[], object]]) -> dict[Any, Timing]:
    """Timings in the form of `time_in_turns`, of calls that are made but not timed."""
    for call in calls.values():
        call()
    return dict.fromkeys(calls, Timing(1.0, 2.0))
