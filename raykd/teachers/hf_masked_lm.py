"""A Transformers encoder with the head of a masked language model: what students learn from while they pretrain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raykd.forms import PIECES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.hf_config import HFConfig
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration
from raykd.teachers.ensemble import Seeded

if TYPE_CHECKING:
    from raykd.layers.encoder import MaskedLanguageModel
    from raykd.layers.model_config import BuildInputs


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
    forms: ClassVar[tuple[LabelForm, ...]] = (PIECES,)
    export_obstacle: ClassVar[str] = "is a masked language model"
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
        return self.fine_tune

    def build(self, inputs: BuildInputs) -> MaskedLanguageModel:
        """The checkpoint, of its own sizes; what its head lacks is drawn from torch's generator.

        Raises:
            StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be trained, or it
                has no layer that `freeze` names.
        """
        from raykd.layers.hf_masked_lm import masked_language_model

        return masked_language_model(self, inputs, trained=self.fine_tune)

    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> MaskedLanguageModel:
        from raykd.layers.hf_masked_lm import rebuilt_masked_lm

        return rebuilt_masked_lm(self, architecture)

    def shape(self) -> PlainObject:
        return self.model_dump(include={"kind", "path", "checksum"})
