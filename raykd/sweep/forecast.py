"""How long a sweep will take, from how fast its models train and label on this machine (`runs/cost.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

from raykd.figures import LATENCY_BATCH, TRAINING_SPEED
from raykd.runs.data import corpus_of
from raykd.runs.features import Reading, readings
from raykd.runs.latency import BATCH, PIECES
from raykd.runs.run import Run
from raykd.runs.stored_features import encoder_ids
from raykd.sweep.course import unfreezing_steps
from raykd.sweep.driver import Sweep, missing_results
from raykd.sweep.settings import known_cost

WORD_PIECES = 1.35
"""Pieces of a word, where the text has not been cut into pieces yet."""
RUN_S = 3.0
"""What a run takes beside its training: its start, and the scores of dev and test."""


@dataclass(frozen=True)
class Forecast:
    """Seconds by phase. `at_most` says why they may be less: patience may end a schedule before the length that is
    counted, and trials may be stopped."""

    phases: dict[str, float]
    at_most: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    """What frozen encoders have still to read."""

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
    settings = [sweep.settings.of(tree) for trees in sweep.settings.covering.values() for tree in trees]
    every = [setting.seeds[0] for setting in settings]
    seconds = fmean(sum(_training_s(sweep, run) for run in runs) for runs in every)
    one = seconds * sweep.file.search.runs_per_setting
    trials = (sweep.trials - ended) * one
    models = sweep.models()
    unread = readings(sweep.storage, models, sweep.teacher_texts())
    phases = {
        "features": _features_s(sweep, models, unread) / concurrent,
        "teachers": _together([_training_s(sweep, run) for run in todo], concurrent),
        "precompute": _precompute_s(sweep) / concurrent,
        "trials": trials / concurrent,
        "baseline": trials / concurrent if sweep.file.baseline != "none" else 0.0,
    }
    return Forecast(phases, tuple(_bounds(sweep, [*todo, *chain(*every)])), tuple(unread))


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
        one = WORD_PIECES * sum(words_in(parts[name]) for name in names)
        batch = {**run.training, **stage["training"]}["batch_tokens"]
        schedule = stage["schedule"]
        limits = [
            schedule["epochs"] and one * schedule["epochs"],
            schedule["max_steps"] and batch * schedule["max_steps"],
        ]
        steps = unfreezing_steps(run) if stage["layers"] == "unfreeze" else 1
        total += steps * min((limit for limit in limits if limit is not None), default=ceil(one))
    return total


def _features_s(sweep: Sweep, runs: Sequence[Run], unread: Sequence[Reading]) -> float:
    """What frozen encoders have still to read, at the speed of the fastest model that reads them."""
    seconds = 0.0
    for reading in unread:
        own = (run for run in runs if reading.config.id in encoder_ids(run))
        batch_ms = min(known_cost(sweep.storage, run).figures[LATENCY_BATCH.name] for run in own)
        seconds += _reading_s(sum(int(text.lengths.sum()) for text in reading.texts), batch_ms)
    return seconds


def _reading_s(words: int, batch_ms: float) -> float:
    return WORD_PIECES * words / (BATCH * PIECES) * batch_ms / 1000


def _labelling_ms(sweep: Sweep, run: Run) -> float:
    """Milliseconds for a batch of what a teacher does itself: what frozen encoders give is stored."""
    if run.members:
        return sum(_labelling_ms(sweep, member) for member in run.members)
    cost = known_cost(sweep.storage, run)
    if not cost.shared:
        return cost.figures[LATENCY_BATCH.name]
    # The forward pass is about a third of a training step.
    return 1000 * BATCH * PIECES / cost.figures[TRAINING_SPEED.name] / 3


def _precompute_s(sweep: Sweep) -> float:
    seconds = 0.0
    for each in sweep.preparations.values():
        for teacher in each.preparation.teachers:
            batch_ms = _labelling_ms(sweep, teacher.run)
            words = sum(
                words_in(part)
                for name, part in each.preparation.of_languages(teacher.languages)[0].parts.items()
                if name in ("train", "unlabelled")
            )
            seconds += _reading_s(words, batch_ms) if each.needs else 0.0
    plan = sweep.transfer()
    pending = plan is not None and any(not part.complete for task in plan.coverage() for part in task.parts)
    return seconds if pending else 0.0


def words_in(part: pa.Table) -> int:
    """Words of a corpus part."""
    return sum(
        int(pc.call_function("list_value_length", [chunk]).sum().as_py() or 0)
        for chunk in part["tokens"].chunks
    )


def _bounds(sweep: Sweep, runs: Iterable[Run]) -> Iterator[str]:
    if any(stage["schedule"]["patience"] is not None for run in runs for stage in run.stages):
        yield "training that ends by patience is counted to its last step"
    if sweep.file.search.stopping.kind != "none":
        yield "trials that will be stopped early are counted whole"
