"""The student from a Transformers checkpoint, for continued pretraining as a masked language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator
from typing_extensions import override

from raykd.forms import PIECES, LabelForm
from raykd.identity import PlainObject
from raykd.students.pretrained import CheckpointStudent

if TYPE_CHECKING:
    from raykd.layers.masked_language_model import MaskedLanguageModel
    from raykd.layers.model_config import BuildInputs


class PretrainedEncoderStudent(CheckpointStudent):
    """A Transformers checkpoint with continued pretraining, on other text or with a teacher (Gururangan et al. 2020).

    The checkpoint is one of the Hub, or an encoder that `raykd export` wrote. Its sizes, its pieces and its dropout are
    the checkpoint's. A checkpoint without the head of a masked language model gets a new one. It may be cut from a
    checkpoint, or from the teacher (`path: teacher`), in all but its vectors, which are its last layer too.

    `raykd export` writes it as a checkpoint that `AutoModel` reads.
    """

    kind: Literal["pretrained_encoder"] = "pretrained_encoder"

    forms: ClassVar[tuple[LabelForm, ...]] = (PIECES,)
    export_obstacle: ClassVar[str] = "is a masked language model"

    @model_validator(mode="after")
    def _keeps_its_vectors(self) -> Self:
        if self.embedding_rank is not None:
            raise ValueError(
                "the last layer of a masked language model is its embedding; omit embedding_rank"
            )
        return self

    @override
    def build(self, inputs: BuildInputs) -> MaskedLanguageModel:
        """Load the checkpoint; parameters that its head lacks are drawn from torch's generator."""
        from raykd.layers.hf_masked_lm import masked_language_model

        return masked_language_model(self, inputs, trained=True)

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> MaskedLanguageModel:
        from raykd.layers.hf_masked_lm import rebuild_masked_lm

        return rebuild_masked_lm(self, architecture)
