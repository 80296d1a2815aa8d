"""The folder of a run's model: the model is built from configuration, vocabulary and labels, written and read here.

The folder is self-contained. Only a model that reads a given checkpoint needs files outside it, at the checkpoint's
path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import torch

from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import StoreError
from raykd.figures.results import RunResult
from raykd.forms import Labels
from raykd.identity import PlainObject
from raykd.layers.ensemble import Ensemble
from raykd.layers.model import Model, load_weights, save_weights
from raykd.layers.model_config import BuildInputs
from raykd.layers.optimisation import TrainingConfig
from raykd.recipes.run import Run, validate_plain
from raykd.recipes.stored_vocabulary import StoredVocabulary, open_vocabulary, vocabulary_file
from raykd.storage.layout import ARCHITECTURE, LABELS, MODEL, RESULT, VOCABULARY, WEIGHTS
from raykd.storage.sealed_json import DOCTOR
from raykd.storage.store import Storage
from raykd.structures import LegalTransitions
from raykd.students import Student, StudentConfig
from raykd.tasks import find_task
from raykd.teachers import Teacher, TeacherConfig
from raykd.training.data import run_labels


def build_model(storage: Storage, run: Run, *, dropout: float | None = None) -> Model:
    """Return the untrained model of a run, initialised by its seed; for an ensemble, the mean of untrained members.

    Args:
        storage: of the vocabulary and the labels.
        run: the run.
        dropout: replaces the configured dropout rate.
    """
    if run.members:
        return _ensemble(run, [build_model(storage, member, dropout=dropout) for member in run.members])
    training = validate_plain(TrainingConfig, run.training)
    torch.manual_seed(training.seed)
    rate = training.dropout if dropout is None else dropout
    return _untrained(run, *_vocabulary_and_labels(storage, run), dropout=rate)


def load_model(storage: Storage, run: Run) -> Model:
    """Return the trained model of a finished run, or of an ensemble of finished runs.

    Args:
        storage: of the run.
        run: the run.
    """
    if run.members:
        return _ensemble(run, [load_model(storage, member) for member in run.members]).eval()
    return trained_model(storage.child(*run.folder), run, *_vocabulary_and_labels(storage, run))


def trained_model(folder: Storage, run: Run, vocabulary: StoredVocabulary, labels: Labels) -> Model:
    """Return the model of a run with the weights in `folder`; the state of torch's random generator does not change.

    Args:
        folder: of the run.
        run: not an ensemble.
        vocabulary: of the run.
        labels: of the run.

    Raises:
        StoreError: the weights are missing or another model's, or a checkpoint that the model reads is missing or
            changed.
    """
    with torch.random.fork_rng(devices=[]):
        model = _untrained(run, vocabulary, labels, dropout=0.0, architecture=folder.find_json(ARCHITECTURE))
    if is_trained(run):
        read_weights(model, folder)
    return model.eval()


def read_weights(model: Model, folder: Storage) -> None:
    """Set the weights of a model from a run's folder.

    Raises:
        StoreError: the weights are missing, another model's, or not those of the folder's result.
    """
    data = folder.read(WEIGHTS)
    check_weights(folder, data)
    try:
        load_weights(model, data)
    except StoreError as error:
        raise StoreError(file_address(folder, WEIGHTS), error.problem, error.hint) from error


def check_weights(folder: Storage, data: bytes) -> None:
    """Raise StoreError if weights differ from the folder's result.

    Args:
        folder: of the run.
        data: the bytes of the weights.
    """
    expected = folder.read_json(RESULT, RunResult.from_plain).weights_sha256
    if (actual := sha256(data).hexdigest()) != expected:
        problem = (
            f"the weights are damaged: their checksum is {actual[:12]}…, the result says {expected[:12]}…"
        )
        raise StoreError(file_address(folder, WEIGHTS), problem, DOCTOR)


def write_model(storage: Storage, run: Run, model: Model) -> str:
    """Complete the run's folder with the model's files; return the checksum of the weights."""
    folder = storage.child(*run.folder)
    folder.write(VOCABULARY, storage.read(vocabulary_file(run.vocabulary_id)))
    folder.write_json(LABELS, run_labels(storage.uri, run).to_plain())
    folder.write_json(MODEL, run.to_plain())
    if run.members:
        results = [
            storage.child(*member.folder).read_json(RESULT, RunResult.from_plain) for member in run.members
        ]
        return sha256("".join(result.weights_sha256 for result in results).encode()).hexdigest()
    if not is_trained(run):
        return run.model["checksum"]
    architecture = model.architecture()
    if architecture is not None:
        folder.write_json(ARCHITECTURE, architecture)
    weights = save_weights(model)
    folder.write(WEIGHTS, weights)
    return sha256(weights).hexdigest()


def model_config(run: Run) -> Teacher | Student:
    """Return the configuration of a run's model.

    Args:
        run: the run.
    """
    return validate_plain(TeacherConfig if run.role == "teacher" else StudentConfig, run.model)


def is_annotator(run: Run) -> bool:
    """Return true if a run's teacher is an annotator, whose answers are read and whose cost is not measured.

    Args:
        run: the run.
    """
    config = model_config(run)
    return isinstance(config, Teacher) and config.gives_answers


def is_trained(run: Run) -> bool:
    """Return true if raykd trains the run's model, false for a given teacher or the mean of an ensemble.

    Args:
        run: the run.
    """
    return model_config(run).trained and not run.members


def legal_transitions(run: Run, labels: Labels) -> LegalTransitions | None:
    """Return the transitions allowed in the best labelling of a run's model; None if all are.

    Args:
        run: the run; its `decoding` decides.
        labels: of the run.
    """
    return labels.legal() if run.decoding == "legal" else None


def teacher_signals_id(run: Run) -> str:
    """Return the identity of a teacher's signals: its id, without `decoding` if raykd did not train the weights.

    The decoding of given weights changes only the best paths, so all other signals are shared.

    Args:
        run: the teacher's run.
    """
    return run.id if run.members or is_trained(run) else replace(run, decoding="").id


def file_address(folder: Storage, name: str) -> str:
    """The address of the file `name`, for messages."""
    return f"{folder.address}/{name}"


def _untrained(
    run: Run,
    vocabulary: StoredVocabulary,
    labels: Labels,
    *,
    dropout: float,
    architecture: PlainObject | None = None,
) -> Model:
    config, pieces = model_config(run), vocabulary.pieces
    inputs = BuildInputs(
        tag_set=labels,  # type: ignore[arg-type]  # labels of a form that this model predicts
        unit=find_task(run.task).unit,
        vocabulary_size=pieces.size,
        special=pieces.special,
        kept_pieces=pieces.checkpoint_ids if isinstance(pieces, HFVocabulary) else None,
        characters=vocabulary.characters.size if vocabulary.characters else 0,
        dropout=dropout,
    )
    model = config.build(inputs) if architecture is None else config.rebuild(architecture, inputs)
    model.legal = legal_transitions(run, labels)
    return model


def _vocabulary_and_labels(storage: Storage, run: Run) -> tuple[StoredVocabulary, Labels]:
    return open_vocabulary(storage, run.vocabulary_id), run_labels(storage.uri, run)


def _ensemble(run: Run, members: Sequence[Model]) -> Model:
    ensemble = Ensemble(members, combine=run.model["combine"])
    ensemble.legal = members[0].legal
    return ensemble
