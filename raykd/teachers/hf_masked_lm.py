"""A Transformers encoder with the head of a masked language model: what students learn from while they pretrain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raykd.layers.hf_config import HFConfig
from raykd.layers.optimisation import Duration, TrainingConfig
from raykd.teachers.ensemble import Seeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from raykd.layers.encoder import MaskedLanguageModel


class HFMaskedLMTeacher(HFConfig, Seeded, Duration):
    """A checkpoint that predicts masked pieces, as it is or trained on by raykd: what `raykd export` wrote of a
    pretrained student, or one of the Hub.

    One without such a head gets one, whose last layer is its transposed embedding, and is trained with `fine_tune:
    true`; with `freeze: [embeddings, 1, 2, …]` the head alone is. Nothing of it is stored: it reads each batch in the
    training step of the student.
    """

    kind: Literal["hf_masked_lm"] = "hf_masked_lm"
    fine_tune: bool = False
    epochs: Annotated[int, Field(ge=1)] | None = 1
    """Passes over its text at most, of which the best is kept."""
    training: TrainingConfig = TrainingConfig(
        optimiser="adamw",
        learning_rate=5e-4,
        learning_rate_schedule="linear",
        warmup=0.1,
        loss_average="token",
    )
    scope: ClassVar[Literal["all"]] = "all"
    stores: ClassVar[bool] = False
    own_signals: ClassVar[tuple[str, ...]] = (
        "emissions", "transitions", "hidden", "hidden_int8", "piece_states", "attention",
    )  # fmt: skip

    @model_validator(mode="after")
    def _one_that_can_be_asked(self) -> Self:
        if self.count > 1:
            raise ValueError("one teacher is asked in the training step; set count: 1")
        if not self.fine_tune and (self.freeze or self.vocabulary == "pruned"):
            raise ValueError(
                "the checkpoint is taken as it is; set fine_tune: true, or omit freeze and vocabulary"
            )
        return self

    @property
    def trained(self) -> bool:
        """Whether raykd trains it."""
        return self.fine_tune

    def build(
        self,
        *,
        tag_set: object,
        vocabulary_size: int,
        characters: int = 0,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
        kept: Sequence[int] | None = None,
    ) -> MaskedLanguageModel:
        """The checkpoint; what its head lacks is drawn from torch's generator. It predicts pieces, whatever `tag_set`
        is, and has its own sizes and dropout.

        Raises:
            StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be trained, or it
                has no layer that `freeze` names.
        """
        from raykd.layers.hf_masked_lm import masked_language_model

        return masked_language_model(self, trained=self.fine_tune, pieces=vocabulary_size, kept=kept)

    def rebuild(
        self,
        architecture: Mapping[str, Any],
        *,
        tag_set: object,
        unit: Literal["word", "sentence"] = "word",
    ) -> MaskedLanguageModel:
        """The model of an `architecture` that `MaskedLanguageModel.architecture` gave."""
        from raykd.layers.hf_masked_lm import rebuilt_masked_lm

        return rebuilt_masked_lm(self, architecture)

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the number of pieces."""
        return self.model_dump(include={"kind", "path", "checksum"})
