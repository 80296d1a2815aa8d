"""The teacher in the training step: it reads each batch of the student and gives what is too much to store.

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
    """A teacher that reads the pieces of its student.

    Args:
        model: the trained teacher.
        needs: what is asked of it.
        tags: how many labels the student has.
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
        """The same teacher, which refuses texts that it and `student` would cut at different pieces."""
        both = (self._model, student)
        limits = tuple(model.piece_limit for model in both if isinstance(model, HFTagger) and model.pools)
        self._limits = limits if len(set(limits)) > 1 else ()
        return self

    def to(self, device: torch.device) -> Self:
        """The same teacher on a device."""
        self._model.to(device)
        return self

    def hidden_size(self, layer: int) -> int:
        """Components of the hidden states of `layer`."""
        return self._model.hidden_size(layer)

    def read(self, text: TokenBatch, stored: TeacherBatch) -> TeacherBatch:
        """What it gives for a batch, beside what is `stored` of it.

        Raises:
            RunError: it and its student would cut a text at different pieces.
        """
        longest = int(text.piece_lengths_B.max()) if self._limits else 0
        if longest > min(self._limits, default=0):
            own, its = self._limits
            raise RunError(
                f"a text has {longest} pieces, of which the teacher reads {own} and the student {its}; shorten it, "
                "or give encoders that read the same number of pieces"
            )
        with torch.no_grad():
            output = self._model(text, **self._layer_requests)
        given = replace(
            stored, pieces=at_least_float32(output.pieces), attention=at_least_float32(output.attention)
        )
        asked = [need for need in self._needs if need.signal in ("hidden", "hidden_int8")]
        if asked:
            states = at_least_float32(output.hidden)
            own = {need: (states[need.layer or 0], output.distribution.lengths_B) for need in asked}
            given = replace(given, hidden={**given.hidden, **own})
        if self._reads_scores:
            chain: Any = output.distribution
            # Behind the steps of a tree each word of the batch is one.
            self._check_labels(chain.tags - (0 if text.steps_BS is None else text.first_BT.shape[1]))
            paths = kbest(chain, self._k, output.legal) if self._k else (None, None)
            given = replace(given, chain=chain, paths_BKT=paths[0], scores_BK=paths[1])
        return given

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
    """The teacher that gives `needs` in the training step of a run; None where there are none.

    Raises:
        RunError: several teachers would be asked.
    """
    if not needs:
        return None
    if len(run.sources) != 1:
        raise RunError(f"{len(run.sources)} teachers would read each batch; set teachers.scope: all")
    storage = Storage(store_uri)
    teacher = storage.read_json(f"teachers/{run.sources[0].teacher_id}/{MODEL}", Run.from_plain)
    return LiveTeacher(load_model(storage, teacher), needs, tags=len(run_labels(store_uri, run)))


def live_needs(run: Run, needs: Sequence[Need]) -> tuple[Need, ...]:
    """What of `needs` a run's teacher gives in the training step."""
    return live_signals(needs, stores=any(source.signals for source in run.sources))


def at_least_float32(states: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """What a model gives of its layers in at least float32, as losses are computed."""
    return {layer: each.to(torch.promote_types(each.dtype, torch.float32)) for layer, each in states.items()}
