"""Weights of a student that is cut from its teacher or from a checkpoint, before training.

<store>/importance/<id>.json        importance of the heads and neurons of an encoder

The importance is computed once for an encoder and a text, and serves all cuts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from raykd.corpora.batching import plan_batches
from raykd.corpora.piece_rows import checkpoint_rows, matching_rows
from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import StoreError
from raykd.identity import PlainObject, identity
from raykd.layers.checkpoint import embedding_matrix
from raykd.layers.cut import Cut
from raykd.layers.hf_model import HFModel
from raykd.layers.model import Model
from raykd.layers.part_importance import most_important, part_importance
from raykd.layers.smaller_encoder import Parts
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.layout import IMPORTANCE, MODEL
from raykd.storage.store import Storage
from raykd.training.data import encoded_part
from raykd.training.model_folder import build_model, load_model, model_config

FORMAT = 1
SENTENCES = 1000
"""Sentences of the training text, evenly over it, in which importance is measured."""
_BATCH_TOKENS = 4000


def initialise_cut(model: Model, storage: Storage, run: Run) -> None:
    """Set the weights of the untrained model of `run` to those of the encoder that it is cut from.

    Args:
        model: changed in place; models that are not cut stay as they are.
        storage: of the run.
        run: the run.

    Raises:
        StoreError: a part of the store is damaged, or the student has other labels than the teacher.
    """
    cut = _cut(run)
    is_copied = not run.cut_from and not cut.is_narrow and not cut.embedding_rank
    if run.start_from or is_copied or not isinstance(model, HFModel):
        return  # `build_model` has loaded the checkpoint's weights
    whole = _whole_encoder(storage, run)
    kept = most_important(_importance(storage, run, whole), cut) if cut.is_narrow else []
    source = whole.cut(cut, kept).model
    student = model.model.state_dict()
    weights = source.state_dict()
    if not run.cut_from:  # the new head was drawn by the run's seed
        prefix = f"{source.base_model_prefix}."
        weights = {name: tensor for name, tensor in weights.items() if name.startswith(prefix)}
    elif differing := {
        name for name in student if name not in weights or weights[name].shape != student[name].shape
    }:
        problem = f"has other labels or another head than the student ({min(differing)})"
        hint = "give teacher and student the same labels, or set student.start: pretrained"
        raise StoreError(run.cut_from, problem, hint)
    model.model.load_state_dict({**student, **weights})


def importance_id(run: Run) -> str:
    """Return the identity of the importance of heads and neurons that a run needs; empty if all of them stay.

    Args:
        run: the run.
    """
    if not _cut(run).is_narrow:
        return ""
    source = {"format": FORMAT, "of": run.cut_from or run.model["checksum"]}
    return identity("importance", {**source, "corpus": run.corpus_id, "vocabulary": run.vocabulary_id})


def _cut(run: Run) -> Cut:
    return getattr(model_config(run), "cut", Cut())


def _whole_encoder(storage: Storage, run: Run) -> HFModel:
    """The model before the cut, with the student's pieces: the teacher, or the checkpoint as published."""
    if not run.cut_from:
        whole = {**run.model, **dict.fromkeys(Cut.model_fields), "freeze": []}
        model = build_model(storage, replace(run, model=whole))
    else:
        teacher = storage.read_json(f"teachers/{run.cut_from}/{MODEL}", Run.from_plain)
        model = load_model(storage, teacher)
        _adapt_pieces(model, storage, teacher, run)
    if not isinstance(model, HFModel):
        raise TypeError("a student is cut from a Transformers model")
    return model.eval()


def _adapt_pieces(teacher: Model, storage: Storage, teacher_run: Run, run: Run) -> None:
    """Give the teacher the student's pieces; those that it lacks have the vectors of its published checkpoint."""
    assert isinstance(teacher, HFModel)
    if teacher_run.vocabulary_id == run.vocabulary_id:
        return
    own, new = (open_vocabulary(storage, model.vocabulary_id).pieces for model in (teacher_run, run))
    assert isinstance(new, HFVocabulary)
    rows = matching_rows(own, new)
    teacher.prune_embedding(np.maximum(rows, 0).tolist())
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        published = embedding_matrix(run.model["path"], run.model["checksum"])
        with torch.no_grad():
            teacher.embedding_matrix()[missing] = published[torch.from_numpy(checkpoint_rows(new)[missing])]


def _importance(storage: Storage, run: Run, whole: HFModel) -> list[Parts]:
    """Find or compute the importance of all heads and neurons of an encoder."""
    name = f"{IMPORTANCE}/{importance_id(run)}.json"
    stored = storage.find_json(name, parts_from_plain)
    if stored is not None:
        return stored
    text = encoded_part(storage.uri, run, "train", "unlabelled").text
    rows = np.flatnonzero(text.piece_lengths <= min(whole.piece_limit or _BATCH_TOKENS, _BATCH_TOKENS))
    rows = rows[np.linspace(0, len(rows) - 1, min(SENTENCES, len(rows))).astype(int)]
    plan = plan_batches(text.piece_lengths[rows], batch_tokens=_BATCH_TOKENS, seed=0, epoch=0, shuffle=False)
    importance = part_importance(whole, (text.gather(rows[batch]) for batch in plan))
    storage.write_json(name, {"layers": [{"heads": p.heads, "neurons": p.neurons} for p in importance]})
    return importance


def parts_from_plain(plain: PlainObject) -> list[Parts]:
    """Read the importance of all heads and neurons back from plain data.

    Args:
        plain: Content of the file.
    """
    return [Parts(**layer) for layer in plain["layers"]]
