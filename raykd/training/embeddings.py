"""Where a student's vectors of pieces start: rows of its teacher's or of a file, made as narrow as its own once.

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
    """Give `model`, the untrained one of `run`, the vectors of pieces that it starts from; others stay as drawn.

    Raises:
        StoreError: a part of the store is damaged, what is given changed, or it has none of the pieces.
    """
    if run.model.get("embeddings") is None:
        return
    found, rows_NE = _stored(storage, run)
    with torch.no_grad():
        model.embedding_matrix()[found] = rows_NE


def embeddings_id(run: Run) -> str:
    """The name of what `run` starts from."""
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
    """Whose vectors those of `student`, a pinned configuration, start from: as `Run.embeddings_from`. `teachers`: name
    → run of those that cover its languages.

    Raises:
        StoreError: they cannot become as wide as the student's.
    """
    start = student.embeddings
    if isinstance(start, VectorEmbeddings):
        if (width := start.vectors.build().output_size) != student.embedding_dim:
            problem = f"has vectors of {width} components, the student's have {student.embedding_dim}"
            raise StoreError(start.path, problem, f"set student.embedding_dim: {width}")
        return None
    if not isinstance(start, FromTeacher):
        return None
    # Where several teachers cover the languages, their checkpoint is one: `recipe_faults` refuses all else.
    name, teacher = next(iter(teachers.items()))
    if fault := start.fault(student.embedding_dim or 0, model_config(teacher).embedding_dim or 0):
        raise StoreError(name, *fault)
    if start.weights == "pretrained":
        return {part: teacher.model[part] for part in ("path", "checksum")}
    return {"teacher_id": teacher.id}


def open_embeddings(folder: Storage) -> tuple[torch.Tensor, torch.Tensor]:
    """The pieces [N] that a run starts with, and their vectors [N, E]. Raises StoreError where they are damaged."""
    manifest = folder.read_json(EMBEDDINGS_MANIFEST)
    data = folder.read(ROWS)
    try:
        if sha256(data).hexdigest() != manifest["rows_sha256"]:
            raise ValueError("its checksum is not the one in the manifest")
        stored = load(data)
    except (ValueError, SafetensorError) as error:
        raise StoreError(f"{folder.address}/{ROWS}", f"is damaged: {error}", DOCTOR) from error
    return stored["pieces"], stored["vectors"]


def _stored(storage: Storage, run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    name = embeddings_id(run)
    folder = storage.child(EMBEDDINGS, name)
    if not folder.exists(EMBEDDINGS_MANIFEST):
        # The actors of a node start together, and one of them is enough; two would write the same bytes.
        with node_lock(identity("lock", {"store": storage.uri, "name": name})):
            if not folder.exists(EMBEDDINGS_MANIFEST):
                _write(folder, *_computed(storage, run))
    return open_embeddings(folder)


def _write(folder: Storage, pieces_N: torch.Tensor, vectors_NE: torch.Tensor) -> None:
    data = save({"pieces": pieces_N, "vectors": vectors_NE.contiguous()})
    folder.write(ROWS, data)
    folder.write_json(EMBEDDINGS_MANIFEST, {"rows_sha256": sha256(data).hexdigest()})


def _computed(storage: Storage, run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    start = validate_plain(StudentConfig, run.model).embeddings
    own = open_vocabulary(storage, run.vocabulary_id).pieces
    if isinstance(start, VectorEmbeddings):
        return _of_file(start.vectors, piece_texts(own))
    if not isinstance(start, FromTeacher):
        raise TypeError("what is drawn at random starts from no vectors")
    matrix_VD, rows = _of_teacher(storage, run, own)
    # A checkpoint's tokenizer may have pieces that were added to it later.
    found = np.flatnonzero((rows >= 0) & (rows < len(matrix_VD)))
    if not len(found):
        raise StoreError(
            _origin(run), "has none of the student's pieces", "set student.vocabulary: {kind: teacher}"
        )
    vectors_ND = matrix_VD[torch.from_numpy(rows[found])]
    return torch.from_numpy(found), start.reduce(vectors_ND, run.model["embedding_dim"])


def _of_teacher(storage: Storage, run: Run, own: Vocabulary) -> tuple[torch.Tensor, np.ndarray]:
    """The teacher's matrix, and the row in it of each piece of the student, -1 where there is none."""
    given = run.embeddings_from or {}
    if "teacher_id" not in given:
        if not isinstance(own, HFVocabulary):
            raise TypeError("only a checkpoint's own vocabulary has rows in it")
        return embedding_matrix(given["path"], given["checksum"]), checkpoint_rows(own)
    teacher = storage.read_json(f"teachers/{given['teacher_id']}/{MODEL}", Run.from_plain)
    matrix_VD = load_model(storage, teacher).embedding_matrix().detach()
    return matrix_VD, matching_rows(open_vocabulary(storage, teacher.vocabulary_id).pieces, own)


def _of_file(file: WordVectorsConfig, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    known = file.vocabulary()
    ids = known.pieces(texts).values
    found = np.flatnonzero(ids != known.special.unknown)
    if not len(found):
        raise StoreError(file.vectors, "has none of the student's pieces", "use words or pieces that it has")
    return torch.from_numpy(found), torch.from_numpy(file.build().vectors_of(ids[found]))


def _origin(run: Run) -> str:
    given = run.embeddings_from or {}
    return given.get("teacher_id") or given["path"]
