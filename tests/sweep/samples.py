"""A search space with conditions, with runs and results made up for tests; nothing is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from raykd.figures.results import Cost, RunResult, Score
from raykd.figures.trial import Trial
from raykd.recipes.run import Run
from raykd.sweep.records import Record
from tests.scores import scores

TREE = {
    "student": {"embedding_dim": {"choice": [8, 16]}, "decoder": {"choice": ["crf", "maxent"]}},
    "objective": {
        "choice": [
            {"kind": "top_wk", "k": {"int": [1, 5]}},
            {"kind": "structural", "temperature": {"choice": [1, 2, 4]}},
            {"kind": "gold"},
        ]
    },
    "schedule": {"epochs": 2, "anneal_rate": {"choice": [0.5, 1.0]}},
}
SETTINGS = 2 * 2 * (5 + 3 + 1) * 2

COST = Cost({"parameters": 1000, "bytes": 4000, "latency_ms": 1.5, "compression": 4.0, "speedup": 3.0})


def run_of(tree: dict[str, Any], *, seed: int = 0) -> Run:
    """The run of a resolved tree. Annealing has no effect on gold labels, and is no part of their stage."""
    schedule = dict(tree["schedule"])
    if tree["objective"]["kind"] == "gold":
        schedule = {"epochs": schedule["epochs"]}
    return Run(
        role="student", task="ner", corpus_id="corpus-0", vocabulary_id="vocabulary-0", model=tree["student"],
        stages=(stage(tree["objective"], schedule),), training={"seed": seed},
    )  # fmt: skip


def stage(objective: dict[str, Any], schedule: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A stage of a run as resolved from a recipe; `fields` replace the defaults."""
    usual = {"text": "labelled", "training": {}, "layers": "all", "select": "dev"}
    return {"objective": objective, "schedule": schedule, **usual, **fields}


def result_of(run: Run, mean: float, *, target: float | None = None) -> RunResult:
    """The result of a finished run; `target` is the test score on the only target language."""
    part = Score.from_languages({"en": mean - 0.1, "de": mean + 0.1})
    epochs = tuple(
        {"epoch": epoch, "steps": 10 * (epoch + 1), "stage": 0, "step": 0, "dev": mean / (2 - epoch)}
        for epoch in range(2)
    )
    return RunResult(
        run.id, scores(part, part, None if target is None else Score.from_languages({"nl": target})), best_epoch=1,
        epochs=epochs, wall_s=2.0, workers=1, parameters=1000, bytes=4000,
    )  # fmt: skip


def ended(record: Record, state: Any, dev: float) -> Record:
    """The record of an ended trial."""
    return replace(record, trial=replace(record.trial, state=state, scores=scores(dev), cost=COST.figures))


def trial(number: int, dev: float = 0.5, **fields: Any) -> Trial:
    """A trial; complete unless `fields` says otherwise."""
    usual = {
        "state": "COMPLETE",
        "scores": scores(dev),
        "cost": {"latency_ms": 1.0, "parameters": 1000},
        "run_ids": (f"run-{number}",),
    }
    return Trial(number=number, **{**usual, **fields})
