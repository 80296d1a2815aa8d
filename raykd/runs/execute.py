"""Execute one run from the store and back into it: the body that both launchers call on each worker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

import torch
from pydantic import TypeAdapter

from raykd.errors import StoreError
from raykd.layers import Ensemble, Model, load_weights, save_weights
from raykd.objectives import ObjectiveConfig, annealed
from raykd.results import RunResult, Score, Scores
from raykd.runs.checkpoint import CHECKPOINT, Progress
from raykd.runs.data import corpus_of, evaluation_part, training_data
from raykd.runs.distil import Distiller, EpochReport, Worker
from raykd.runs.evaluate import score_part
from raykd.runs.run import Run
from raykd.runs.stages import StagePlan, TrainingPlan
from raykd.runs.vocabularies import open_vocabulary
from raykd.storage import Storage
from raykd.students import StudentConfig
from raykd.tasks import TASKS
from raykd.teachers import TeacherConfig
from raykd.training import ScheduleConfig, TrainingConfig

RESULT, WEIGHTS, MODEL = "result.json", "model.safetensors", "model.json"
VOCABULARY, LABELS = "vocabulary.json", "labels.json"


def find_result(storage: Storage, run: Run) -> RunResult | None:
    """The result of a finished run, or None: `result.json` is written last."""
    folder = storage.child(*run.folder)
    return RunResult.from_plain(folder.read_json(RESULT)) if folder.exists(RESULT) else None


def keep_place(storage: Storage, run: Run) -> None:
    """Note where a finished run's checkpoint or encoder is now: named by its content, it may have moved since."""
    folder = storage.child(*run.folder)
    plain = json.loads(json.dumps(run.to_plain()))
    if folder.exists(MODEL) and folder.read_json(MODEL) != plain:
        folder.write_json(MODEL, plain)


def build_model(storage: Storage, run: Run, *, dropout: float | None = None) -> Model:
    """The untrained model of `run`, initialised by its seed; of an ensemble, all of its members."""
    if run.members:
        return _ensemble(run, [build_model(storage, member, dropout=dropout) for member in run.members])
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    tag_set = corpus_of(storage.uri, run.corpus_id).tag_set
    config = model_config(run)
    training = validated(TrainingConfig, run.training)
    torch.manual_seed(training.seed)
    return config.build(
        vocabulary_size=vocabulary.pieces.size,
        characters=vocabulary.characters.size if vocabulary.characters else 0,
        tag_set=tag_set,
        unit=TASKS[run.task].unit,
        dropout=training.dropout if dropout is None else dropout,
    )


def model_config(run: Run) -> Any:
    """The configuration model that `run.model` was written from."""
    return validated(TeacherConfig if run.role == "teacher" else StudentConfig, run.model)


def load_model(storage: Storage, run: Run) -> Model:
    """The trained model of a finished run, or of an ensemble whose members are finished."""
    if run.members:
        return _ensemble(run, [load_model(storage, member) for member in run.members]).eval()
    model = build_model(storage, run, dropout=0.0)
    if is_trained(run):
        load_weights(model, storage.child(*run.folder).read(WEIGHTS))
    return model.eval()


def _ensemble(run: Run, members: Sequence[Model]) -> Model:
    return Ensemble(members, combine=run.model["combine"])


def is_trained(run: Run) -> bool:
    """Whether raykd trains the run's model; a teacher can be used as it is, or be the mean of others."""
    return run.role == "student" or (model_config(run).trained and not run.members)


def execute(store_uri: str, run: Run, *, worker: Worker, report: Callable[[EpochReport], None]) -> RunResult:
    """Train, select on dev, evaluate once on test, and store the model with its result. Found results are returned.
    What is not trained is evaluated only: a teacher that is given, an ensemble whose members are finished.

    Every worker of the run calls this; rank 0 writes. A run that was interrupted goes on from its last checkpoint.
    """
    storage = Storage(store_uri)
    found = find_result(storage, run)
    if found is not None:
        return found
    started = time.monotonic()
    model = (_starting_model if is_trained(run) else load_model)(storage, run).to(worker.device)
    evaluate = partial(_evaluate, store_uri, run, worker)
    folder, progress = storage.child(*run.folder), Progress()
    if is_trained(run):

        def on_dev(trained: Model) -> Score:
            return evaluate("dev", trained).by_part["dev"]["source"]

        distiller = Distiller(
            model, training_plan_of(store_uri, run), evaluate=on_dev, folder=folder, worker=worker
        )
        progress = distiller.train(report)
    result = RunResult(
        run_id=run.id,
        scores=Scores({**evaluate("dev", model).by_part, **evaluate("test", model).by_part}),
        best_epoch=progress.best_epoch,
        epochs=tuple(progress.history),
        wall_s=round(time.monotonic() - started, 2),
        workers=worker.world,
        parameters=count_parameters(model),
        bytes=parameter_bytes(model),
        weights_sha256=_keep(storage, run, model, worker),
    )
    if worker.rank == 0:
        folder.write_json(RESULT, result.to_plain())
        folder.remove(CHECKPOINT)
    return result


def _evaluate(store_uri: str, run: Run, worker: Worker, part: str, model: Model) -> Scores:
    held_out = evaluation_part(store_uri, run.corpus_id, run.vocabulary_id, run.task, part)
    corpus = corpus_of(store_uri, run.corpus_id)
    groups = score_part(
        model, held_out, TASKS[run.task], corpus.tag_set, worker=worker, targets=corpus.targets
    )
    return Scores({part: {str(group): score for group, score in groups.items()}})


def _starting_model(storage: Storage, run: Run) -> Model:
    """The model before its first stage: drawn by its seed, or with the weights of another run."""
    model = build_model(storage, run)
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
        raise StoreError(f"{start.uri}/{WEIGHTS}", "the weights are not those of the run's result", hint)
    if start.read_json(VOCABULARY) != storage.read_json(f"vocabularies/{run.vocabulary_id}.json"):
        hint = "set corpus and student.vocabulary to those of the run in start_from"
        raise StoreError(start.uri, "its model reads another vocabulary", hint)
    try:
        load_weights(model, weights)
    except StoreError as error:
        hint = "give student the shape of the run in start_from"
        raise StoreError(start.uri, error.problem, hint) from error


def training_plan_of(store_uri: str, run: Run) -> TrainingPlan:
    """How the run is trained."""
    tags = len(corpus_of(store_uri, run.corpus_id).tag_set)
    return TrainingPlan(
        [_stage_plan(store_uri, run, stage) for stage in run.stages], tags, run.sampling_alpha
    )


def _stage_plan(store_uri: str, run: Run, stage: dict[str, Any]) -> StagePlan:
    objective = annealed(
        validated(ObjectiveConfig, stage["objective"]), unlabelled=stage["text"] != "labelled"
    )
    return StagePlan(
        objective=objective,
        schedule=validated(ScheduleConfig, stage["schedule"]),
        training=validated(TrainingConfig, {**run.training, **stage["training"]}),
        data=partial(training_data, store_uri, run, objective.needs, text=stage["text"], verify=False),
        layers=stage["layers"],
        select=stage["select"],
        held_out=stage.get("held_out", 0.0),
    )


def _keep(storage: Storage, run: Run, model: Model, worker: Worker) -> str:
    """Store what the run's folder needs to be used alone; gives the checksum of the weights.

    Weights that raykd did not train, and those of an ensemble's members, stay where they are.
    """
    if worker.rank > 0:
        return ""
    folder = storage.child(*run.folder)
    folder.write(VOCABULARY, storage.read(f"vocabularies/{run.vocabulary_id}.json"))
    tag_set = corpus_of(storage.uri, run.corpus_id).tag_set
    folder.write_json(LABELS, {"scheme": tag_set.scheme, "tags": list(tag_set.tags)})
    folder.write_json(MODEL, run.to_plain())
    if run.members:
        results = [find_result(storage, member) for member in run.members]
        return sha256("".join(result.weights_sha256 for result in results if result).encode()).hexdigest()
    if not is_trained(run):
        return model_config(run).checksum
    weights = save_weights(model)
    folder.write(WEIGHTS, weights)
    return sha256(weights).hexdigest()


def count_parameters(model: Model) -> int:
    """All parameters, those of embeddings and of frozen encoders included."""
    return sum(p.numel() for p in model.all_parameters())


def parameter_bytes(model: Model) -> int:
    """Bytes of the parameters as they are stored."""
    return sum(p.numel() * p.element_size() for p in model.all_parameters())


def validated(model: Any, plain: dict[str, Any]) -> Any:
    """The configuration that `plain` was dumped from."""
    # Strict mode accepts lists for tuples only from JSON, which is also how every configuration enters.
    return _adapter(model).validate_json(json.dumps(plain))


@lru_cache(maxsize=32)
def _adapter(model: Any) -> TypeAdapter:
    return TypeAdapter(model)
