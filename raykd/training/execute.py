"""Execute one run from the store and back into it: the body that both launchers call on each worker."""

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
from raykd.tasks import TASKS
from raykd.training.checkpoint import Progress
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
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker

SIGN = ".sign.tmp"
"""Written into a run's folder and removed at once; named as temporary files are (`local_files.py`)."""
TRAINED = 0.95
"""The share of a run that its training takes, about; the rest is the scores on dev and test."""


def find_result(storage: Storage, run: Run) -> RunResult | None:
    """The result of a finished run, or None: `result.json` is written last."""
    return storage.child(*run.folder).find_json(RESULT, RunResult.from_plain)


def result_is_visible(storage: Storage, run: Run) -> bool:
    """Whether the result of a run that a node has just finished is in the store as this process sees it.

    Raises:
        StoreError: the store cannot be reached, or written.
    """
    folder = storage.child(*run.folder)
    if folder.exists(RESULT):
        return True
    # A network folder may go on showing for a minute what it showed before, unless something is written into it.
    folder.write(SIGN, b"")
    folder.remove(SIGN)
    return wait_for_file(folder, RESULT)


def unfinished_runs(storage: Storage, runs: Sequence[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """Those of `runs` that are not finished yet."""
    return [(name, run) for name, run in runs if find_result(storage, run) is None]


def update_model_paths(storage: Storage, run: Run) -> None:
    """Note where a finished run's checkpoint or encoder is now: named by its content, it may have moved since."""
    folder = storage.child(*run.folder)
    plain = json.loads(json.dumps(run.to_plain()))
    if folder.find_json(MODEL) not in (None, plain):
        folder.write_json(MODEL, plain)


def execute_run(
    store_uri: str, run: Run, *, worker: Worker, report: Callable[[EpochReport], None]
) -> RunResult:
    """Train, select on dev, evaluate once on test, and store the model with its result. Found results are returned.
    What is not trained is evaluated only: a teacher that is given, an ensemble whose members are finished.

    Every worker of the run calls this; rank 0 writes. A run that was interrupted goes on from its last checkpoint.
    """
    found = find_result(Storage(store_uri), run)
    if found is not None:
        return found
    with deterministic(worker.device, enabled=validate_plain(TrainingConfig, run.training).deterministic):
        return _train_and_evaluate(store_uri, run, worker, report)


def _train_and_evaluate(
    store_uri: str, run: Run, worker: Worker, report: Callable[[EpochReport], None]
) -> RunResult:
    storage = Storage(store_uri)
    started, first = time.monotonic(), TRAINED if is_trained(run) else 0.0
    report_progress(None, "loading")
    model = (_starting_model if is_trained(run) else load_model)(storage, run).to(worker.device)
    evaluate = partial(_evaluate, store_uri, run, worker)
    folder, progress = storage.child(*run.folder), Progress()
    if is_trained(run):

        def on_dev(trained: Model) -> Score:
            return evaluate("dev", trained).by_part["dev"]["source"]

        distiller = Distiller(
            model, training_plan(store_uri, run), evaluate=on_dev, folder=folder, worker=worker
        )
        with part_of_work(0.0, first):
            progress = distiller.train(report)
    with part_of_work(first, (first + 1) / 2, "scoring dev"):
        dev = evaluate("dev", model).by_part
    with part_of_work((first + 1) / 2, 1.0, "scoring test"):
        test = evaluate("test", model).by_part
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


def _evaluate(store_uri: str, run: Run, worker: Worker, part: str, model: Model) -> Scores:
    held_out = encoded_part(store_uri, run, part)
    corpus = cached_corpus(store_uri, run.corpus_id)
    groups = score_part(
        model, held_out, TASKS[run.task], corpus.tag_set, worker=worker, targets=corpus.targets
    )
    if corpus.outside_mean and "target" in groups:
        groups = {**groups, "target": groups["target"].excluding(corpus.outside_mean)}
    return Scores({part: {str(group): score for group, score in groups.items()}})


def _starting_model(storage: Storage, run: Run) -> Model:
    """The model before its first stage: drawn by its seed but for the vectors of pieces that are given, or with the
    weights of another run.
    """
    model = build_model(storage, run)
    initialise_embeddings(model, storage, run)
    if run.start_from:
        _take_weights(model, storage, run, **run.start_from)
    return model


def _take_weights(model: Model, storage: Storage, run: Run, *, folder: str, weights_sha256: str) -> None:
    """Set the weights to those of the run in `folder`.

    Raises:
        StoreError: they are missing, have changed, or belong to a model of another shape or vocabulary.
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
    """What launchers report of an epoch: its metrics below one key, apart from what Tune adds beside it."""
    return {"epoch_report": epoch.metrics(), "run_id": run.id}


def training_plan(store_uri: str, run: Run) -> TrainingPlan:
    """How the run is trained."""
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
    """All parameters, those of embeddings and of frozen encoders included."""
    return sum(p.numel() for p in model.all_parameters())


def parameter_bytes(model: Model) -> int:
    """Bytes of the parameters as they are stored."""
    return sum(p.numel() * p.element_size() for p in model.all_parameters())
