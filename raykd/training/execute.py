"""Execution of one run, from the store and back into it: both launchers call it on each worker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256

from raykd.errors import StoreError
from raykd.figures.results import RunResult, Score, Scores
from raykd.identity import PlainObject
from raykd.layers.model import Model, load_weights
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import ScheduleConfig
from raykd.objectives import ObjectiveConfig, annealed_objective
from raykd.progress import part_of_work, report_progress
from raykd.recipes.run import Run, validate_plain
from raykd.recipes.stored_vocabulary import vocabulary_file
from raykd.storage.layout import CHECKPOINT
from raykd.storage.store import Storage
from raykd.tasks import find_task
from raykd.training.checkpoint import Progress
from raykd.training.cut_weights import initialise_cut
from raykd.training.data import cached_corpus, encoded_part, run_labels, training_data
from raykd.training.device import deterministic
from raykd.training.embeddings import initialise_embeddings
from raykd.training.epoch_report import EpochReport
from raykd.training.evaluate import score_part
from raykd.training.live import live_needs, live_teacher
from raykd.training.model_folder import (
    MODEL,
    RESULT,
    VOCABULARY,
    WEIGHTS,
    build_model,
    is_trained,
    load_model,
    write_model,
)
from raykd.training.node_check import wait_for_file
from raykd.training.stages import StagePlan, TrainingPlan
from raykd.training.teacher_answers import answer_reader, answered_part, taught_by
from raykd.training.teacher_labels import fresh_answer_scores, teacher_reference
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker

PROBE_FILE = ".sign.tmp"
"""Written into a run's folder and removed at once; named like a temporary file (`local_files.py`)."""
TRAINING_SHARE = 0.95
"""Approximate share of a run spent on training; the rest is the scoring of dev and test."""


def find_result(storage: Storage, run: Run) -> RunResult | None:
    """Return the result of a finished run, or None: `result.json` is written last.

    Args:
        storage: of the run.
        run: the run.
    """
    return storage.child(*run.folder).find_json(RESULT, RunResult.from_plain)


def result_is_visible(storage: Storage, run: Run) -> bool:
    """Return true if the result of a run, just finished on another node, is in the store as seen by this process.

    Args:
        storage: of the run.
        run: the run.

    Raises:
        StoreError: the store cannot be reached, or written.
    """
    folder = storage.child(*run.folder)
    if folder.exists(RESULT):
        return True
    # A network folder may show an old listing for up to a minute, unless something is written into it.
    folder.write(PROBE_FILE, b"")
    folder.remove(PROBE_FILE)
    return wait_for_file(folder, RESULT)


def unfinished_runs(storage: Storage, runs: Sequence[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """Return the runs without a result, with their names.

    Args:
        storage: of the runs.
        runs: names and runs.
    """
    return [(name, run) for name, run in runs if find_result(storage, run) is None]


def update_model_paths(storage: Storage, run: Run) -> None:
    """Update the path of a finished run's checkpoint or encoder, which may have moved: its identity is its content.

    Args:
        storage: of the run.
        run: with the current paths.
    """
    folder = storage.child(*run.folder)
    plain = json.loads(json.dumps(run.to_plain()))
    if folder.find_json(MODEL) not in (None, plain):
        folder.write_json(MODEL, plain)


def execute_run(
    store_uri: str, run: Run, *, worker: Worker, report: Callable[[EpochReport], None]
) -> RunResult:
    """Train a run, select on dev, evaluate once on test, and store the model with its result.

    A run with a result is not executed again: the result is returned. A model that needs no training (a given teacher,
    an ensemble of finished members) is only evaluated. All workers of the run call this function; rank 0 writes. An
    interrupted run continues from its last checkpoint.

    Args:
        store_uri: of the store.
        run: the run.
        worker: of this process.
        report: called after each epoch; may be a barrier between workers.

    Returns:
        The result, the same on all workers.
    """
    result = find_result(Storage(store_uri), run)
    if result is not None:
        return result
    with deterministic(worker.device, enabled=validate_plain(TrainingConfig, run.training).deterministic):
        return _train_and_evaluate(store_uri, run, worker, report)


def _train_and_evaluate(
    store_uri: str, run: Run, worker: Worker, report: Callable[[EpochReport], None]
) -> RunResult:
    storage, needs_training, started = Storage(store_uri), is_trained(run), time.monotonic()
    report_progress(None, "loading")
    model = (_starting_model if needs_training else load_model)(storage, run).to(worker.device)
    evaluate = partial(_evaluate, store_uri, run, worker)
    folder, progress = storage.child(*run.folder), Progress()
    if needs_training:

        def score_dev(trained_model: Model) -> Score:
            return evaluate("dev", trained_model).by_part["dev"]["source"]

        distiller = Distiller(
            model, training_plan(store_uri, run), evaluate=score_dev, folder=folder, worker=worker
        )
        with part_of_work(0.0, TRAINING_SHARE):
            progress = distiller.train(report)
    dev_begins = TRAINING_SHARE if needs_training else 0.0
    test_begins = (dev_begins + 1) / 2
    with part_of_work(dev_begins, test_begins, "scoring dev"):
        dev = evaluate("dev", model, final=True).by_part
    with part_of_work(test_begins, 1.0, "scoring test"):
        test = evaluate("test", model, final=True).by_part
    result = RunResult(
        run_id=run.id,
        scores=Scores({**dev, **test}),
        best_epoch=progress.best_epoch,
        epochs=tuple(progress.history),
        wall_s=round(time.monotonic() - started, 2),
        workers=worker.world,
        parameters=count_parameters(model),
        bytes=parameter_bytes(model),
        weights_sha256=write_model(storage, run, model) if worker.rank == 0 else "",
    )
    if worker.rank == 0:
        folder.write_json(RESULT, result.to_plain())
        folder.remove(CHECKPOINT)
    return result


def _evaluate(
    store_uri: str, run: Run, worker: Worker, part: str, model: Model, *, final: bool = False
) -> Scores:
    """The scores on one part; the mean over target languages leaves out those of `corpus.outside_mean`.

    The `final` ones of a student have its agreement with an annotator beside those against gold labels.
    """
    corpus = cached_corpus(store_uri, run.corpus_id)
    storage = Storage(store_uri)
    reader = answer_reader(storage, run, corpus.tag_set)
    held_out = (
        encoded_part(store_uri, run, part) if reader is None else answered_part(corpus, run, part, reader)
    )
    if not len(held_out):
        return Scores({})  # an annotator that answered no text of this part has no score there
    task = find_task(run.task)
    answers = taught_by(storage, run, corpus.tag_set) if final and task.has_gold else None
    reference = answers and teacher_reference(corpus, task.form, part, answers)
    groups = None
    if reader is not None and not task.has_gold:
        groups = fresh_answer_scores(reader, corpus, task, part)
    if groups is None:
        groups = score_part(
            model, held_out, task, corpus.tag_set, worker=worker, targets=corpus.targets, reference=reference
        )
    if corpus.outside_mean and "target" in groups:
        groups = {**groups, "target": groups["target"].excluding(corpus.outside_mean)}
    return Scores({part: {str(group): score for group, score in groups.items()}})


def _starting_model(storage: Storage, run: Run) -> Model:
    """The model before the first stage: random but for its initial embeddings, or with the weights of another run."""
    model = build_model(storage, run)
    initialise_embeddings(model, storage, run)
    initialise_cut(model, storage, run)
    if run.start_from:
        _load_starting_weights(model, storage, run, **run.start_from)
    return model


def _load_starting_weights(
    model: Model, storage: Storage, run: Run, *, folder: str, weights_sha256: str
) -> None:
    """Set the weights of the model to those of the finished run in `folder`.

    Raises:
        StoreError: The weights are missing, have changed, or belong to a model of another shape or vocabulary.
    """
    start = Storage(folder)
    weights = start.read(WEIGHTS)
    if sha256(weights).hexdigest() != weights_sha256:
        hint = "use another start_from, or train that run again"
        raise StoreError(f"{start.address}/{WEIGHTS}", "the weights are not those of the run's result", hint)
    if start.read_json(VOCABULARY) != storage.read_json(vocabulary_file(run.vocabulary_id)):
        hint = "set corpus and student.vocabulary to those of the run in start_from"
        raise StoreError(start.address, "its model reads another vocabulary", hint)
    try:
        load_weights(model, weights)
    except StoreError as error:
        hint = "give student the shape of the run in start_from"
        raise StoreError(start.address, error.problem, hint) from error


def launcher_report(run: Run, epoch: EpochReport) -> PlainObject:
    """Return an epoch's metrics below one key, apart from the entries that Ray Tune adds.

    Args:
        run: the run.
        epoch: the epoch's report.
    """
    return {"epoch_report": epoch.metrics(), "run_id": run.id}


def training_plan(store_uri: str, run: Run) -> TrainingPlan:
    """Return the plan of a run: its stages, objectives and data.

    Args:
        store_uri: of the store.
        run: the run.
    """
    tags = len(run_labels(store_uri, run))
    return TrainingPlan(
        [_stage_plan(store_uri, run, stage) for stage in run.stages], tags, run.sampling_alpha
    )


def _stage_plan(store_uri: str, run: Run, stage: PlainObject) -> StagePlan:
    objective = annealed_objective(
        validate_plain(ObjectiveConfig, stage["objective"]), unlabelled=stage["text"] != "labelled"
    )
    live = live_needs(run, objective.needs)
    stored = [need for need in objective.needs if need not in live]
    return StagePlan(
        objective=objective,
        schedule=validate_plain(ScheduleConfig, stage["schedule"]),
        training=validate_plain(TrainingConfig, {**run.training, **stage["training"]}),
        data=partial(training_data, store_uri, run, stored, text=stage["text"]),
        live=partial(live_teacher, store_uri, run, live),
        layers=stage["layers"],
        head=stage.get("head", "keep"),
        select=stage["select"],
        held_out=stage.get("held_out", 0.0),
    )


def count_parameters(model: Model) -> int:
    """Number of all parameters, including those of embeddings and of frozen encoders."""
    return sum(p.numel() for p in model.all_parameters())


def parameter_bytes(model: Model) -> int:
    """Bytes of all parameters as stored."""
    return sum(p.numel() * p.element_size() for p in model.all_parameters())
