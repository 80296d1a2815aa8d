"""How long a sweep will take, from how fast its models train and label on this machine (`runs/cost.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean

from raykd.figures import LATENCY_BATCH, TRAINING_SPEED
from raykd.runs.data import corpus_of
from raykd.runs.latency import BATCH, PIECES
from raykd.runs.run import Run
from raykd.sweep.driver import Sweep, missing_results
from raykd.sweep.settings import known_cost

WORD_PIECES = 1.35
"""Pieces of a word, where the text has not been cut into pieces yet."""
RUN_S = 3.0
"""What a run takes beside its training: its start, and the scores of dev and test."""


@dataclass(frozen=True)
class Forecast:
    """Seconds by phase; `at_most` where a schedule has no end but convergence, and its largest length is counted."""

    phases: dict[str, float]
    at_most: bool

    @property
    def seconds(self) -> float:
        """All phases together."""
        return sum(self.phases.values())


def forecast(sweep: Sweep, concurrent: int) -> Forecast:
    """How long what is still to be computed takes with `concurrent` runs at once.

    A baseline is counted with as many students as the search has; how many there are shows when it has ended.
    """
    todo = [run for _, run in missing_results(sweep.storage, sweep.members)]
    records = sweep.records.load() if sweep.records.exists() else []
    ended = sum(record.trial.role == "search" and record.trial.state == "COMPLETE" for record in records)
    shapes = sweep.shapes()
    one = fmean(_training_s(sweep, run) for run in shapes) * sweep.file.search.runs_per_setting
    trials = (sweep.trials - ended) * one
    phases = {
        "teachers": _together([_training_s(sweep, run) for run in todo], concurrent),
        "precompute": _precompute_s(sweep) / concurrent,
        "trials": trials / concurrent,
        "baseline": trials / concurrent if sweep.file.baseline != "none" else 0.0,
    }
    return Forecast(phases, any(_endless(run) for run in [*todo, *shapes]))


def _together(seconds: Sequence[float], concurrent: int) -> float:
    return max(sum(seconds) / concurrent, max(seconds, default=0.0))


def _training_s(sweep: Sweep, run: Run) -> float:
    speed = known_cost(sweep.storage, run).figures.get(TRAINING_SPEED.name)
    return RUN_S + (_trained_pieces(sweep, run) / speed if speed else 0.0)


def _trained_pieces(sweep: Sweep, run: Run) -> float:
    """Pieces that a run trains on at most, over all stages."""
    total = 0.0
    parts = corpus_of(sweep.storage.uri, run.corpus_id).parts
    for stage in run.stages:
        names = {"labelled": ["train"], "unlabelled": ["unlabelled"]}.get(
            stage["text"], ["train", "unlabelled"]
        )
        chunks = [chunk for name in names for chunk in parts[name]["tokens"].chunks]
        one = WORD_PIECES * sum(len(chunk.flatten()) for chunk in chunks)
        batch = {**run.training, **stage["training"]}["batch_tokens"]
        schedule = stage["schedule"]
        limits = [
            schedule["epochs"] and one * schedule["epochs"],
            schedule["max_steps"] and batch * schedule["max_steps"],
        ]
        total += min((limit for limit in limits if limit is not None), default=ceil(one))
    return total


def _precompute_s(sweep: Sweep) -> float:
    seconds = 0.0
    for each in sweep.preparations.values():
        for teacher in each.preparation.teachers:
            batch_ms = known_cost(sweep.storage, teacher.run).figures[LATENCY_BATCH.name]
            words = sum(
                len(part["tokens"].combine_chunks().flatten())
                for name, part in each.preparation.of_languages(teacher.languages)[0].parts.items()
                if name in ("train", "unlabelled")
            )
            seconds += WORD_PIECES * words / (BATCH * PIECES) * batch_ms / 1000 if each.needs else 0.0
    plan = sweep.transfer()
    pending = plan is not None and any(not part.complete for task in plan.coverage() for part in task.parts)
    return seconds if pending else 0.0


def _endless(run: Run) -> bool:
    return any(stage["schedule"]["patience"] is not None for stage in run.stages)
