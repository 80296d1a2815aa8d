"""Any Transformers token classifier as a teacher."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import model_validator
from typing_extensions import override

from raykd.errors import StoreError
from raykd.layers.checkpoint import labels_every_piece
from raykd.layers.transition_biases import DEFAULT, TransitionBiases
from raykd.teachers.hf_teacher import HFTeacher


class HFTokenClassifierTeacher(HFTeacher):
    """A Transformers checkpoint with a label for each word at its first piece or at every piece, or for a sentence."""

    kind: Literal["hf_token_classifier"] = "hf_token_classifier"
    labelled_pieces: Literal["first", "every"] | None = None
    """Pieces of a word that a checkpoint as published labels: the first, or every piece, so that a name of one word and
    two pieces is B E. None: every piece if its labels mark both ends of a span, as those of BIOES do, else the first.
    `raykd plan` shows sentences that it labelled."""
    operating_point: str | TransitionBiases = DEFAULT
    """Transition biases of a checkpoint that labels every piece in BIOES: the name of an operating point in the file
    `viterbi_calibration.json` beside its weights, or the biases themselves: `{background_to_start: 1.5}`."""
    reads_text_pairs: ClassVar[bool] = False
    pools: ClassVar[bool] = False

    @model_validator(mode="after")
    def _reads_as_published(self) -> Self:
        if self.fine_tune and self.labelled_pieces == "every":
            raise ValueError(
                "a new head labels words at their first pieces; omit labelled_pieces, or set fine_tune: false"
            )
        if self.operating_point != DEFAULT and (self.fine_tune or self.labelled_pieces == "first"):
            raise ValueError("an operating point is for a checkpoint as published that labels every piece")
        return self

    @property
    @override
    def decoder(self) -> Literal["crf", "maxent"]:
        if self.fine_tune or self.labelled_pieces == "first" or not Path(self.path).is_dir():
            return "maxent"
        try:
            of_pieces, marks_ends = labels_every_piece(self.path)
        except StoreError:  # `refuse_unreadable` names the place in the sweep file
            return "maxent"
        return "crf" if marks_ends and (of_pieces or self.labelled_pieces == "every") else "maxent"

    @property
    @override
    def published_reading(self) -> str:
        if self.fine_tune:
            return ""
        if self.labelled_pieces == "every":
            return "every piece of a word has a label (teachers.labelled_pieces: first reads the first piece alone)"
        return "a word has the label of its first piece (teachers.labelled_pieces: every reads them all)"

    @override
    def pinned(self, language: str | None = None) -> Self:
        """Return the configuration with the checkpoint's checksum, and with the pieces that it labels."""
        pinned = super().pinned(language)
        if self.fine_tune or self.labelled_pieces is not None:
            return pinned
        return pinned.model_copy(update={"labelled_pieces": "every" if self._labels_every_piece else "first"})

    @property
    def _labels_every_piece(self) -> bool:
        """True if every piece of a word has a label, by the setting or by the checkpoint's configuration."""
        if self.fine_tune or self.labelled_pieces is not None:
            return self.labelled_pieces == "every"
        of_pieces, _ = labels_every_piece(self.path)
        return of_pieces

    @property
    @override
    def _piece_reading(self) -> TransitionBiases | str | None:
        return self.operating_point if self._labels_every_piece else None
