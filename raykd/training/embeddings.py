"""Initial embeddings of a student: rows of its teacher's embeddings or of a file, reduced once to the student's width.

<store>/embeddings/<id>/rows.safetensors, embeddings.json        the manifest last
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from raykd.corpora.piece_rows import checkpoint_rows, matching_rows, piece_texts
from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import Vocabulary
from raykd.errors import StoreError
from raykd.identity import identity
from raykd.layers.checkpoint import embedding_matrix
from raykd.layers.model import Model
from raykd.layers.word_vectors import WordVectorsConfig
from raykd.recipes.run import Run, validate_plain, without_location
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.cache import node_lock
from raykd.storage.layout import EMBEDDINGS, EMBEDDINGS_MANIFEST, MODEL, ROWS
from raykd.storage.sealed_json import DOCTOR
from raykd.storage.store import Storage
from raykd.students import Student, StudentConfig
from raykd.students.embeddings import FromTeacher, VectorEmbeddings
from raykd.training.model_folder import load_model, model_config

FORMAT = 1


def initialise_embeddings(model: Model, storage: Storage, run: Run) -> None:
    """Set the initial embeddings of the untrained model of `run`; pieces without a vector stay random.

    Args:
        model: changed in place.
        storage: of the run.
        run: the run.

    Raises:
        StoreError: a part of the store is damaged, the source has changed, or it has none of the pieces.
    """
    if run.model.get("embeddings") is None:
        return
    pieces_N, vectors_NE = _find_or_compute(storage, run)
    with torch.no_grad():
        model.embedding_matrix()[pieces_N] = vectors_NE


def embeddings_id(run: Run) -> str:
    """Return the identity of a run's initial embeddings.

    Args:
        run: the run.
    """
    return identity(
        "embeddings",
        {
            "format": FORMAT,
            "start": without_location(run.model["embeddings"]),
            "from": without_location(run.embeddings_from or {}),
            "vocabulary": run.vocabulary_id,
            "size": run.model["embedding_dim"],
        },
    )


def embedding_source(student: Student, teachers: Mapping[str, Run]) -> dict[str, str] | None:
    """Return the source of a student's initial embeddings, as in `Run.embeddings_from`; None if they have no teacher.

    Args:
        student: a pinned configuration.
        teachers: name → run of the teachers of the student's languages.

    Raises:
        StoreError: the vectors cannot be reduced to the student's width.
    """
    start = student.embeddings
    if isinstance(start, VectorEmbeddings):
        if (width := start.vectors.build().output_size) != student.embedding_dim:
            problem = f"has vectors of {width} components, the student's have {student.embedding_dim}"
            raise StoreError(start.path, problem, f"set student.embedding_dim: {width}")
        return None
    if not isinstance(start, FromTeacher):
        return None
    # If several teachers cover the languages, they share one checkpoint: `recipe_faults` refuses all else.
    name, teacher = next(iter(teachers.items()))
    if fault := start.fault(student.embedding_dim or 0, model_config(teacher).embedding_dim or 0):
        raise StoreError(name, *fault)
    if start.weights == "pretrained":
        return {part: teacher.model[part] for part in ("path", "checksum")}
    return {"teacher_id": teacher.id}


def open_embeddings(folder: Storage) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pieces [N] with initial vectors, and the vectors [N, E].

    Args:
        folder: of the embeddings.

    Raises:
        StoreError: the files are damaged.
    """
    manifest = folder.read_json(EMBEDDINGS_MANIFEST)
    data = folder.read(ROWS)
    try:
        if sha256(data).hexdigest() != manifest["rows_sha256"]:
            raise ValueError("its checksum is not the one in the manifest")
        stored = load(data)
    except (ValueError, SafetensorError) as error:
        raise StoreError(f"{folder.address}/{ROWS}", f"is damaged: {error}", DOCTOR) from error
    return stored["pieces"], stored["vectors"]


def _find_or_compute(storage: Storage, run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    name = embeddings_id(run)
    folder = storage.child(EMBEDDINGS, name)
    if not folder.exists(EMBEDDINGS_MANIFEST):
        # The actors of a node start together, and one of them is enough; two would write the same bytes.
        with node_lock(identity("lock", {"store": storage.uri, "name": name})):
            if not folder.exists(EMBEDDINGS_MANIFEST):
                _write(folder, *_compute(storage, run))
    return open_embeddings(folder)


def _write(folder: Storage, pieces_N: torch.Tensor, vectors_NE: torch.Tensor) -> None:
    data = save({"pieces": pieces_N, "vectors": vectors_NE.contiguous()})
    folder.write(ROWS, data)
    folder.write_json(EMBEDDINGS_MANIFEST, {"rows_sha256": sha256(data).hexdigest()})


def _compute(storage: Storage, run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    start = validate_plain(StudentConfig, run.model).embeddings
    student_pieces = open_vocabulary(storage, run.vocabulary_id).pieces
    if isinstance(start, VectorEmbeddings):
        return _vectors_of_file(start.vectors, piece_texts(student_pieces))
    if not isinstance(start, FromTeacher):
        raise TypeError("random embeddings have no source")
    matrix_VD, rows = _teacher_rows(storage, run, student_pieces)
    # A checkpoint's tokenizer may have pieces that were added to it later.
    shared_pieces = np.flatnonzero((rows >= 0) & (rows < len(matrix_VD)))
    if not len(shared_pieces):
        raise StoreError(
            _source_name(run), "has none of the student's pieces", "set student.vocabulary: {kind: teacher}"
        )
    vectors_ND = matrix_VD[torch.from_numpy(rows[shared_pieces])]
    return torch.from_numpy(shared_pieces), start.reduce(vectors_ND, run.model["embedding_dim"])


def _teacher_rows(storage: Storage, run: Run, student_pieces: Vocabulary) -> tuple[torch.Tensor, np.ndarray]:
    """The teacher's embedding matrix, and the row of each student's piece in it, -1 if it has none."""
    source = run.embeddings_from or {}
    if "teacher_id" not in source:
        if not isinstance(student_pieces, HFVocabulary):
            raise TypeError("a checkpoint has rows for its own vocabulary only")
        return embedding_matrix(source["path"], source["checksum"]), checkpoint_rows(student_pieces)
    teacher = storage.read_json(f"teachers/{source['teacher_id']}/{MODEL}", Run.from_plain)
    matrix_VD = load_model(storage, teacher).embedding_matrix().detach()
    return matrix_VD, matching_rows(open_vocabulary(storage, teacher.vocabulary_id).pieces, student_pieces)


def _vectors_of_file(file: WordVectorsConfig, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    vocabulary = file.vocabulary()
    ids = vocabulary.pieces(texts).values
    pieces = np.flatnonzero(ids != vocabulary.special.unknown)
    if not len(pieces):
        raise StoreError(file.vectors, "has none of the student's pieces", "use words or pieces of this file")
    return torch.from_numpy(pieces), torch.from_numpy(file.build().vectors_of(ids[pieces]))


def _source_name(run: Run) -> str:
    source = run.embeddings_from or {}
    return source.get("teacher_id") or source["path"]
