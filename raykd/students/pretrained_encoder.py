"""The student that starts as a Transformers checkpoint and is pretrained on as a masked language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from raykd.layers.hf_masked_lm import masked_language_model, rebuilt_masked_lm
from raykd.students.pretrained import CheckpointStudent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from raykd.forms import TagSet
    from raykd.layers.encoder import MaskedLanguageModel


class PretrainedEncoderStudent(CheckpointStudent):
    """A Transformers checkpoint that is pretrained on, on other text (Gururangan et al. 2020) or with a teacher: one of
    the Hub, or what `raykd export` wrote of an encoder. Its sizes, its pieces and its dropout are the checkpoint's; one
    without the head of a masked language model gets one.

    What `raykd export` writes of it is read by `AutoModel`.
    """

    kind: Literal["pretrained_encoder"] = "pretrained_encoder"

    def build(
        self,
        *,
        tag_set: TagSet,
        vocabulary_size: int,
        characters: int = 0,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
        kept: Sequence[int] | None = None,
    ) -> MaskedLanguageModel:
        """The checkpoint; what its head lacks is drawn from torch's generator. It predicts pieces, whatever `tag_set`
        and `unit` are.

        Raises:
            StoreError: there is no such checkpoint, it changed, or it has no layer that `freeze` names.
        """
        return masked_language_model(self, trained=True, pieces=vocabulary_size, kept=kept)

    def rebuild(
        self, architecture: Mapping[str, Any], *, tag_set: TagSet, unit: Literal["word", "sentence"] = "word"
    ) -> MaskedLanguageModel:
        """The model of an `architecture` that `MaskedLanguageModel.architecture` gave."""
        return rebuilt_masked_lm(self, architecture)
