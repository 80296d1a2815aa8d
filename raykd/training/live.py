"""Live teachers: a teacher in the training step reads the student's batch and gives signals too large to store.

Shapes: B batch, T labels, Y tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import torch

from raykd.errors import RunError
from raykd.layers.hf_tagger import HFTagger
from raykd.layers.model import Model
from raykd.needs import LAYER_SIGNALS, live_signals
from raykd.recipes.run import Run
from raykd.signals import Need, TeacherBatch
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.structures import kbest
from raykd.training.data import run_labels
from raykd.training.model_folder import load_model

if TYPE_CHECKING:
    from raykd.corpora.encoded_text import TokenBatch


class LiveTeacher:
    """A teacher in the training step of a student with the same pieces.

    Args:
        model: the trained teacher.
        needs: the signals that it gives.
        tags: number of the student's labels.
    """

    def __init__(self, model: Model, needs: Sequence[Need], *, tags: int):
        self._model, self._needs, self._tags = model.eval().requires_grad_(False), tuple(needs), tags
        layers = {
            signal: tuple(need.layer for need in needs if need.signal == signal) for signal in LAYER_SIGNALS
        }
        self._layer_requests: dict[str, Any] = {
            "layers": tuple(dict.fromkeys(layers["hidden"] + layers["hidden_int8"])),
            "pieces": layers["piece_states"], "attention": layers["attention"],
        }  # fmt: skip
        self._k = max((need.k for need in needs), default=0)
        self._limits: tuple[int, ...] = ()

    def paired_with(self, student: Model) -> Self:
        """Return the teacher, prepared to refuse texts cut off at different pieces by teacher and student."""
        both = (self._model, student)
        limits = tuple(model.piece_limit for model in both if isinstance(model, HFTagger) and model.pools)
        self._limits = limits if len(set(limits)) > 1 else ()
        return self

    def to(self, device: torch.device) -> Self:
        """Move the teacher to a device; return the teacher."""
        self._model.to(device)
        return self

    def hidden_size(self, layer: int) -> int:
        """Return the number of components of the hidden states of a layer."""
        return self._model.hidden_size(layer)

    def read(self, text: TokenBatch, stored: TeacherBatch) -> TeacherBatch:
        """Return the teacher's signals for a batch: those computed now, merged with those from the store.

        Args:
            text: the batch, in the student's pieces.
            stored: signals of the batch from the store.

        Raises:
            RunError: teacher and student would cut off a text at different pieces, or have different numbers of labels.
        """
        longest = int(text.piece_lengths_B.max()) if self._limits else 0
        if longest > min(self._limits, default=0):
            teacher_limit, student_limit = self._limits
            raise RunError(
                f"a text has {longest} pieces: the teacher reads {teacher_limit}, the student {student_limit}. "
                "Shorten it, or use encoders that read the same number of pieces"
            )
        with torch.no_grad():
            output = self._model(text, **self._layer_requests)
        signals = replace(
            stored, pieces=at_least_float32(output.pieces), attention=at_least_float32(output.attention)
        )
        hidden_needs = [need for need in self._needs if need.signal in ("hidden", "hidden_int8")]
        if hidden_needs:
            states = at_least_float32(output.hidden)
            hidden = {need: (states[need.layer or 0], output.distribution.lengths_B) for need in hidden_needs}
            signals = replace(signals, hidden={**signals.hidden, **hidden})
        if self._reads_scores:
            chain: Any = output.distribution
            # A decoder of trees has the labels of the steps, and then one label for each word of the batch.
            self._check_labels(chain.tags - (0 if text.steps_BS is None else text.first_BT.shape[1]))
            paths = kbest(chain, self._k, output.legal) if self._k else (None, None)
            signals = replace(signals, chain=chain, paths_BKT=paths[0], scores_BK=paths[1])
        return signals

    @property
    def _reads_scores(self) -> bool:
        return any(need.signal not in LAYER_SIGNALS for need in self._needs)

    def _check_labels(self, labels: int) -> None:
        if labels != self._tags:
            raise RunError(
                f"the teacher predicts {labels} labels and the student {self._tags}; give them one vocabulary: "
                "student.vocabulary: {kind: teacher}"
            )


def live_teacher(store_uri: str, run: Run, needs: Sequence[Need]) -> LiveTeacher | None:
    """Return the teacher of a run's live signals; None if there are no such signals.

    Args:
        store_uri: of the store.
        run: the student's run.
        needs: the live signals.

    Raises:
        RunError: the run has several teachers.
    """
    if not needs:
        return None
    if len(run.sources) != 1:
        raise RunError(f"{len(run.sources)} teachers would read each batch; set teachers.scope: all")
    storage = Storage(store_uri)
    teacher = storage.read_json(f"teachers/{run.sources[0].teacher_id}/{MODEL}", Run.from_plain)
    return LiveTeacher(load_model(storage, teacher), needs, tags=len(run_labels(store_uri, run)))


def live_needs(run: Run, needs: Sequence[Need]) -> tuple[Need, ...]:
    """Return the needs met by a run's teacher in the training step.

    Args:
        run: the student's run.
        needs: of an objective.
    """
    return live_signals(needs, stores=any(source.signals for source in run.sources))


def at_least_float32(states: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """The states of layers in at least float32, the precision of losses."""
    return {
        layer: state.to(torch.promote_types(state.dtype, torch.float32)) for layer, state in states.items()
    }
