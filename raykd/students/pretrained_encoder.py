"""The student that starts as a Transformers checkpoint and is pretrained on as a masked language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.forms import PIECES, LabelForm
from raykd.identity import PlainObject
from raykd.students.pretrained import CheckpointStudent

if TYPE_CHECKING:
    from raykd.layers.encoder import MaskedLanguageModel
    from raykd.layers.model_config import BuildInputs


class PretrainedEncoderStudent(CheckpointStudent):
    """A Transformers checkpoint that is pretrained on, on other text (Gururangan et al. 2020) or with a teacher: one of
    the Hub, or what `raykd export` wrote of an encoder. Its sizes, its pieces and its dropout are the checkpoint's; one
    without the head of a masked language model gets one.

    What `raykd export` writes of it is read by `AutoModel`.
    """

    kind: Literal["pretrained_encoder"] = "pretrained_encoder"

    forms: ClassVar[tuple[LabelForm, ...]] = (PIECES,)
    export_obstacle: ClassVar[str] = "is a masked language model"

    def build(self, inputs: BuildInputs) -> MaskedLanguageModel:
        """The checkpoint; what its head lacks is drawn from torch's generator."""
        from raykd.layers.hf_masked_lm import masked_language_model

        return masked_language_model(self, inputs, trained=True)

    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> MaskedLanguageModel:
        from raykd.layers.hf_masked_lm import rebuilt_masked_lm

        return rebuilt_masked_lm(self, architecture)
