"""The duration of a sweep, forecast from the speed of its models on this machine (`precompute/model_cost.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import ceil
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.vocabulary import count_words
from raykd.figures.table import TORCH_LATENCY_BATCH, TRAINING_SPEED
from raykd.objectives import ObjectiveConfig
from raykd.precompute.features import EncoderTask, encoder_tasks
from raykd.precompute.latency import BATCH, PIECES
from raykd.recipes.run import Run, validate_plain
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.sweep.course import RunCourse
from raykd.sweep.sweep import Sweep
from raykd.training.data import cached_corpus
from raykd.training.execute import unfinished_runs
from raykd.training.live import live_needs
from raykd.training.model_folder import is_annotator
from raykd.training.plan_length import unfreezing_steps
from raykd.training.stored_features import encoder_ids

WORD_PIECES = 1.35
"""Pieces per word of a frozen encoder, whose text has not been cut into pieces yet."""
SAMPLE = 1000
"""Sentences from which the pieces per word of a trained model's vocabulary are estimated."""

# Overheads that do not depend on the model's size, in seconds, measured on 2 cores with sweeps/quickstart.yaml.
START_S = 12.0
"""Start of a sweep: imports, and the start of Ray."""
PHASE_S = 6.0
"""Start of a phase with work to do: its processes start and import PyTorch."""
PHASES_IN_TRIAL_SLOTS = ("confirm", "baseline")
"""Phases that run in the processes of the trials."""
RUN_S = 2.0
"""One run: its start, reading its text, writing its model."""
STEP_S = 0.005
"""One optimiser step, in addition to the time from `precompute/model_cost.py`: gathering the batch, computing the
objective."""
REPORT_S = 5.0
"""End of a sweep: the front's page and files."""
MODEL_S = 6.0
"""One student of the front in MLflow: its export, the comparison with the model, and the upload."""
FRONT = 6
"""Typical number of students on a front, for searches with more trials."""


@dataclass(frozen=True)
class Forecast:
    """Expected duration of a sweep.

    Attributes:
        phases: Phase → seconds.
        trial_s: Seconds of one trial, with its runs side by side as far as they fit.
        at_most: Reasons why the sweep may be faster: training may end by patience, and trials may be stopped.
        readings: Text that frozen encoders have still to read.
        trained_share: Share of its plan that a trial is expected to train; None for the whole plan.
    """

    phases: dict[str, float]
    trial_s: float
    at_most: tuple[str, ...] = ()
    readings: tuple[EncoderTask, ...] = ()
    trained_share: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds of all phases together."""
        return sum(self.phases.values())


def forecast_sweep(sweep: Sweep, concurrent: int) -> Forecast:
    """Forecast how long the remaining work of a sweep takes.

    Confirmation and baseline count with as many students as the search has trials, which is an upper bound; the true
    number is known after the search.

    Args:
        sweep: The sweep.
        concurrent: Runs at the same time.
    """
    todo = [run for _, run in unfinished_runs(sweep.storage, sweep.members)]
    settings = [sweep.settings.of(tree) for trees in sweep.settings.covering.values() for tree in trees]
    setting_runs = [setting.seeds[0] for setting in settings]
    seconds = fmean(sum(_run_s(sweep, run) for run in runs) for runs in setting_runs)
    trial_s = seconds * sweep.file.search.runs_per_setting
    trials = max(0, sweep.trials - len(sweep.earlier())) * trial_s
    share = trained_share(sweep)
    models = sweep.models()
    confirm, runs = sweep.file.search.confirm, sweep.file.search.runs_per_setting
    seeds = sweep.file.search.seeds_in_all
    unread = encoder_tasks(sweep.storage, models, sweep.teacher_texts())
    teachers = [_run_s(sweep, run) for run in todo]
    phases = {
        "features": _features_s(sweep, models, unread) / concurrent,
        "teachers": max(sum(teachers) / concurrent, max(teachers, default=0.0)),
        "precompute": _precompute_s(sweep) / concurrent,
        "trials": trials * (1.0 if share is None else share) / concurrent,
        "baseline": seeds / runs * trials / concurrent if sweep.file.baseline != "none" else 0.0,
        **({"confirm": (seeds - runs) / runs * trials / concurrent} if confirm is not None else {}),
    }
    phases = {
        name: seconds and seconds + PHASE_S * (name not in PHASES_IN_TRIAL_SLOTS)
        for name, seconds in phases.items()
    }
    phases = {"start": START_S, **phases, "report": REPORT_S, "models": _models_s(sweep)}
    bounds = tuple(_bounds(sweep, [*todo, *chain(*setting_runs)], share))
    side_by_side = min(concurrent, sweep.file.search.runs_per_setting)
    return Forecast(phases, trial_s / side_by_side, bounds, tuple(unread), share)


def trained_share(sweep: Sweep) -> float | None:
    """Return the trained share of the plan, as a mean over the sweep's trials so far.

    None if no trial is stopped early, or none has ended.
    """
    if not sweep.file.search.stopping.stops_trials:
        return None
    shares = []
    for record in sweep.earlier():
        runs = sweep.settings.of(record.resolved).runs if record.trial.state == "PRUNED" else ()
        courses = [RunCourse(run) for run in runs]
        for run, course in zip(runs, courses, strict=True):
            for metrics in record.epochs.get(run.id, ()):
                course.add(metrics)
        shares.append(fmean(course.done_share for course in courses) if courses else 1.0)
    return fmean(shares) if shares else None


def _run_s(sweep: Sweep, run: Run) -> float:
    """Return the seconds of a run: training, scoring dev after each epoch, and dev and test at the end."""
    speed = sweep.cost(run).figures.get(TRAINING_SPEED.name)
    training = list(_stages(sweep, run)) if speed else []
    trained = sum(stage.pieces / speed + stage.steps * STEP_S for stage in training) if speed else 0.0
    trained += sum(
        _reading_s(stage.pieces, ms) for stage in training for ms in _live_ms(sweep, run, stage.needs)
    )
    parts, share = cached_corpus(sweep.storage.uri, run.corpus_id).parts, pieces_per_word(sweep, run)
    scored = (1 + sum(stage.epochs for stage in training)) * words_in(parts["dev"]) + words_in(parts["test"])
    return RUN_S + trained + share * scored / (BATCH * PIECES) * labelling_ms(sweep, run) / 1000


@dataclass(frozen=True)
class _Training:
    """Upper bounds of the training of one stage."""

    pieces: float
    steps: float
    epochs: float
    needs: tuple[Need, ...]


def _stages(sweep: Sweep, run: Run) -> Iterator[_Training]:
    parts, share = cached_corpus(sweep.storage.uri, run.corpus_id).parts, pieces_per_word(sweep, run)
    for stage in run.stages:
        names = {"labelled": ["train"], "unlabelled": ["unlabelled"]}.get(
            stage["text"], ["train", "unlabelled"]
        )
        epoch_pieces = share * sum(words_in(parts[name]) for name in names)
        batch = {**run.training, **stage["training"]}["batch_tokens"]
        schedule = stage["schedule"]
        limits = [
            schedule["epochs"] and epoch_pieces * schedule["epochs"],
            schedule["max_steps"] and batch * schedule["max_steps"],
        ]
        objective = validate_plain(ObjectiveConfig, stage["objective"])
        scores = objective.reads_scores
        steps = unfreezing_steps(run, scores=scores) if stage["layers"] == "unfreeze" else 1
        pieces = steps * min((limit for limit in limits if limit is not None), default=ceil(epoch_pieces))
        yield _Training(pieces, pieces / batch, pieces / max(epoch_pieces, 1), objective.needs)


def _models_s(sweep: Sweep) -> float:
    """Return the seconds of logging the front's students as models; MLflow has them already if no trial is left."""
    logged = sweep.file.tracking.models == "front" and sweep.file.task_entry.form.labels_text
    remaining_trials = max(0, sweep.trials - len(sweep.earlier()))
    return MODEL_S * min(FRONT, remaining_trials) if logged else 0.0


def _live_ms(sweep: Sweep, run: Run, needs: Sequence[Need]) -> Iterator[float]:
    """Yield the milliseconds for a batch of each teacher read in the training step of a run."""
    if live_needs(run, needs):
        teachers = {teacher.id: teacher for _, teacher in sweep.teachers}
        yield from (labelling_ms(sweep, teachers[source.teacher_id]) for source in run.sources)


def _features_s(sweep: Sweep, runs: Sequence[Run], unread: Sequence[EncoderTask]) -> float:
    """Return the remaining seconds of frozen encoders, each at the speed of the fastest model with the encoder."""
    seconds = 0.0
    for reading in unread:
        readers = (run for run in runs if reading.config.id in encoder_ids(run))
        # A model that reads a frozen encoder has no export, and is timed in PyTorch together with the encoder.
        batch_ms = min(sweep.cost(run).figures[TORCH_LATENCY_BATCH.name] for run in readers)
        words = sum(int(text.lengths.sum()) for text in reading.texts)
        seconds += _reading_s(WORD_PIECES * words, batch_ms)
    return seconds


def _reading_s(pieces: float, batch_ms: float) -> float:
    return pieces / (BATCH * PIECES) * batch_ms / 1000


def labelling_ms(sweep: Sweep, run: Run) -> float:
    """Return the milliseconds for a batch in PyTorch, without frozen encoders, whose vectors are stored.

    Args:
        sweep: The sweep, with the costs of all shapes in the store.
        run: A run of a teacher or student; an ensemble takes the sum of its members.
    """
    if run.members:
        return sum(labelling_ms(sweep, member) for member in run.members)
    if is_annotator(run):
        return 0.0  # its answers are stored
    cost = sweep.cost(run)
    if TORCH_LATENCY_BATCH.name in cost.figures and not cost.shared:
        return cost.figures[TORCH_LATENCY_BATCH.name]
    # The forward pass is about a third of a training step.
    return 1000 * BATCH * PIECES / cost.figures[TRAINING_SPEED.name] / 3


def _precompute_s(sweep: Sweep) -> float:
    seconds = 0.0
    for preparation in sweep.preparations.values():
        for teacher in preparation.preparation.teachers:
            batch_ms = labelling_ms(sweep, teacher.run)
            words = sum(
                words_in(part)
                for name, part in preparation.preparation.corpus_for(teacher.languages)[0].parts.items()
                if name in ("train", "unlabelled")
            )
            share = pieces_per_word(sweep, teacher.run)
            seconds += _reading_s(share * words, batch_ms) if preparation.needs else 0.0
    plan = sweep.transfer()
    pending = plan is not None and any(not part.complete for task in plan.coverage() for part in task.parts)
    return seconds if pending else 0.0


def pieces_per_word(sweep: Sweep, run: Run) -> float:
    """Return the pieces per word of the run's training text, estimated from a sample."""
    return _pieces_per_word(sweep.storage.uri, run.corpus_id, run.vocabulary_id)


@lru_cache(maxsize=64)
def _pieces_per_word(store_uri: str, corpus_id: str, vocabulary_id: str) -> float:
    train = cached_corpus(store_uri, corpus_id).parts["train"].select(["tokens"])
    rows = np.unique(np.linspace(0, train.num_rows - 1, min(SAMPLE, train.num_rows)).astype(np.int64))
    counts = count_words(train.take(pa.array(rows)))
    if not counts:
        return 1.0
    pieces = open_vocabulary(Storage(store_uri), vocabulary_id).pieces.pieces(list(counts))
    times = np.fromiter(counts.values(), np.int64, len(counts))
    return float((np.diff(pieces.offsets) * times).sum() / times.sum())


def words_in(part: pa.Table) -> int:
    """Return the number of words of a corpus part."""
    return sum(
        int(pc.call_function("list_value_length", [chunk]).sum().as_py() or 0)
        for chunk in part["tokens"].chunks
    )


def _bounds(sweep: Sweep, runs: Iterable[Run], share: float | None) -> Iterator[str]:
    if any(stage["schedule"]["patience"] is not None for run in runs for stage in run.stages):
        yield "training that ends by patience is counted to its last step"
    if sweep.file.search.stopping.stops_trials and share is None:
        yield "trials that will be stopped early are counted whole"
