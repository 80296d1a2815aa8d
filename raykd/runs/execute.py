"""Execute one run from the store and back into it: the body that both launchers call on each worker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import nn

from raykd.layers import Ensemble, Tagger, load_weights, save_weights
from raykd.objectives import Objective, ObjectiveConfig
from raykd.runs.data import corpus_of, evaluation_part, training_data
from raykd.runs.distil import CHECKPOINT, Distiller, EpochReport, Progress, TrainingPlan, Worker
from raykd.runs.evaluate import score_part
from raykd.runs.recipe import TASKS
from raykd.runs.run import Run
from raykd.runs.vocabularies import open_vocabulary
from raykd.signals import Need
from raykd.storage import Storage
from raykd.students import StudentConfig
from raykd.teachers import TeacherConfig
from raykd.training import ScheduleConfig, TrainingConfig

RESULT, WEIGHTS, MODEL = "result.json", "model.safetensors", "model.json"


def find_result(storage: Storage, run: Run) -> dict[str, Any] | None:
    """The result of a finished run, or None: `result.json` is written last."""
    folder = storage.child(*run.folder)
    return folder.read_json(RESULT) if folder.exists(RESULT) else None


def keep_place(storage: Storage, run: Run) -> None:
    """Note where a finished run's checkpoint or encoder lies now: named by its content, it may have moved since."""
    folder = storage.child(*run.folder)
    plain = json.loads(json.dumps(run.to_plain()))
    if folder.exists(MODEL) and folder.read_json(MODEL) != plain:
        folder.write_json(MODEL, plain)


def build_model(storage: Storage, run: Run, *, dropout: float | None = None) -> Tagger:
    """The untrained model of `run`, initialised by its seed; of an ensemble, all of its members."""
    if run.members:
        return _ensemble(run, [build_model(storage, member, dropout=dropout) for member in run.members])
    vocabulary = open_vocabulary(storage, run.vocabulary_id)
    tag_set = corpus_of(storage.uri, run.corpus_id).tag_set
    config = model_config(run)
    training = _validated(TrainingConfig, run.training)
    torch.manual_seed(training.seed)
    return config.build(
        vocabulary_size=vocabulary.pieces.size,
        characters=vocabulary.characters.size if vocabulary.characters else 0,
        tag_set=tag_set,
        dropout=training.dropout if dropout is None else dropout,
    )


def model_config(run: Run) -> Any:
    """The configuration model that `run.model` was written from."""
    adapter = TypeAdapter(TeacherConfig if run.role == "teacher" else StudentConfig)
    return _validated_by(adapter, run.model)


def load_model(storage: Storage, run: Run) -> Tagger:
    """The trained model of a finished run, or of an ensemble whose members are finished."""
    if run.members:
        return _ensemble(run, [load_model(storage, member) for member in run.members]).eval()
    model = build_model(storage, run, dropout=0.0)
    if is_trained(run):
        load_weights(model, storage.child(*run.folder).read(WEIGHTS))
    return model.eval()


def _ensemble(run: Run, members: Sequence[Tagger]) -> Tagger:
    return Ensemble(members, combine=run.model["combine"])


def is_trained(run: Run) -> bool:
    """Whether raykd trains the run's model; a teacher can be given as it is, or be the mean of others."""
    return run.role == "student" or (model_config(run).trained and not run.members)


def needs_of(run: Run) -> tuple[Need, ...]:
    """What the run reads of the transfer set."""
    if not run.sources:
        return ()
    needs = objective_of(run).needs
    return (*needs, Need("kbest", 1)) if run.unlabelled else tuple(needs)


def objective_of(run: Run) -> Objective:
    """The run's objective."""
    return _validated_by(TypeAdapter(ObjectiveConfig), run.objective)


def execute(
    store_uri: str, run: Run, *, worker: Worker, report: Callable[[EpochReport], None]
) -> dict[str, Any]:
    """Train, select on dev, evaluate once on test, and store the model with its result. Found results are returned.
    What is not trained is evaluated only: a teacher that is given, an ensemble whose members are finished.

    Every worker of the run calls this; rank 0 writes. A run that was interrupted goes on from its last checkpoint.
    """
    storage = Storage(store_uri)
    found = find_result(storage, run)
    if found is not None:
        return found
    started = time.monotonic()
    model = (build_model if is_trained(run) else load_model)(storage, run).to(worker.device)

    def evaluate(part: str, trained: nn.Module) -> dict[str, Any]:
        held_out = evaluation_part(store_uri, run.corpus_id, run.vocabulary_id, part)
        corpus, metric = corpus_of(store_uri, run.corpus_id), TASKS[run.task].metric
        return score_part(trained, held_out, corpus.tag_set, metric, worker=worker, targets=corpus.targets)

    folder, progress = storage.child(*run.folder), Progress()
    if is_trained(run):
        data = training_data(store_uri, run, needs_of(run), verify=False)
        distiller = Distiller(
            model,
            data,
            training_plan_of(run),
            evaluate=partial(evaluate, "dev"),
            folder=folder,
            worker=worker,
        )
        progress = distiller.train(report)
    result = {
        "run_id": run.id,
        "dev": evaluate("dev", model),
        "test": evaluate("test", model),
        "best_epoch": progress.best_epoch,
        "epochs": progress.history,
        "wall_s": round(time.monotonic() - started, 2),
        "workers": worker.world,
        "parameters": count_parameters(model),
        "bytes": parameter_bytes(model),
    }
    if worker.rank == 0:
        result["weights_sha256"] = _keep_weights(storage, run, model)
        folder.write_json(MODEL, run.to_plain())
        folder.write_json(RESULT, result)
        folder.remove(CHECKPOINT)
    return result


def training_plan_of(run: Run) -> TrainingPlan:
    """How the run is to be trained."""
    schedule, training = _validated(ScheduleConfig, run.schedule), _validated(TrainingConfig, run.training)
    return TrainingPlan(objective_of(run), schedule, training, run.sampling_alpha)


def _keep_weights(storage: Storage, run: Run, model: Tagger) -> str:
    """Store the weights that raykd trained (given ones, and members', stay where they are); gives their checksum."""
    if run.members:
        results = [find_result(storage, member) or {} for member in run.members]
        return sha256("".join(result["weights_sha256"] for result in results).encode()).hexdigest()
    if not is_trained(run):
        return model_config(run).checksum
    weights = save_weights(model)
    storage.child(*run.folder).write(WEIGHTS, weights)
    return sha256(weights).hexdigest()


def count_parameters(model: Tagger) -> int:
    """All parameters, those of embeddings and of frozen encoders included."""
    return sum(p.numel() for p in model.all_parameters())


def parameter_bytes(model: Tagger) -> int:
    """Bytes of the parameters as they are stored."""
    return sum(p.numel() * p.element_size() for p in model.all_parameters())


def _validated(model: Any, plain: dict[str, Any]) -> Any:
    return _validated_by(TypeAdapter(model), plain)


def _validated_by(adapter: TypeAdapter, plain: dict[str, Any]) -> Any:
    # Strict mode accepts lists for tuples only from JSON, which is also how every configuration enters.
    return adapter.validate_json(json.dumps(plain))
