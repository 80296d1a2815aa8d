"""A search space with conditions, and runs and results as they come of it, nothing of them computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from raykd.runs.run import Run
from raykd.sweep.records import Record
from raykd.trial import Trial

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

COST = {"parameters": 1000, "bytes": 4000, "latency_ms": 1.5, "compression": 4.0, "speedup": 3.0}


def run_of(tree: dict[str, Any], *, seed: int = 0) -> Run:
    """The run of a resolved tree: gold forgets how it would have been annealed."""
    return Run(
        role="student", task="ner", corpus_id="corpus-0", vocabulary_id="vocabulary-0", model=tree["student"],
        objective=tree["objective"], schedule=tree["schedule"], training={"seed": seed},
    )  # fmt: skip


def result_of(run: Run, f1: float) -> dict[str, Any]:
    """What a finished run stores."""
    part = {"mean": f1, "standard_deviation": 0.1, "by_language": {"en": f1 - 0.1, "de": f1 + 0.1}}
    epochs = [{"epoch": epoch, "dev_f1": f1 / (2 - epoch)} for epoch in range(2)]
    return {"run_id": run.id, "dev": part, "test": part, "epochs": epochs, "wall_s": 2.0}


def ended(record: Record, state: Any, f1: float | None = None) -> Record:
    """The record of a trial that ended so."""
    figures = {} if f1 is None else {"dev_f1": f1, "latency_ms": 1.5, "parameters": 1000}
    return replace(record, trial=replace(record.trial, state=state, **figures))


def trial(number: int, **fields: Any) -> Trial:
    """A complete trial unless the fields say otherwise."""
    usual = {
        "state": "COMPLETE",
        "dev_f1": 0.5,
        "latency_ms": 1.0,
        "parameters": 1000,
        "run_ids": (f"run-{number}",),
    }
    return Trial(number=number, **{**usual, **fields})
