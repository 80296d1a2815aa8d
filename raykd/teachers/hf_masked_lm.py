"""A Transformers encoder with the head of a masked language model, for students in pretraining to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.forms import PIECES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.hf_config import HFConfig
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration
from raykd.teachers.ensemble import EnsembleTeacher

if TYPE_CHECKING:
    from raykd.layers.masked_language_model import MaskedLanguageModel
    from raykd.layers.model_config import BuildInputs


class HFMaskedLMTeacher(HFConfig, EnsembleTeacher, Duration):
    """A masked language model as the teacher: a checkpoint as published, or trained further by raykd.

    The checkpoint is a pretrained student that `raykd export` wrote, or one of the Hub. A checkpoint without such a
    head gets one, whose last layer is its transposed embedding, and is trained with `fine_tune: true`; with `freeze:
    [embeddings, 1, 2, …]` only the head is trained. Its signals are not stored: it reads each batch in the student's
    training step.
    """

    kind: Literal["hf_masked_lm"] = "hf_masked_lm"
    fine_tune: bool = False
    epochs: Annotated[int, Field(ge=1)] | None = 1
    """Passes over its text at most; the best state is kept."""
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
    model_signals: ClassVar[tuple[str, ...]] = (
        "emissions", "transitions", "hidden", "hidden_int8", "piece_states", "attention",
    )  # fmt: skip

    @model_validator(mode="after")
    def _is_usable_in_training_step(self) -> Self:
        if self.count > 1:
            raise ValueError(
                "this teacher reads each batch in the training step, which has place for one; set count: 1"
            )
        if not self.fine_tune and (self.freeze or self.vocabulary == "pruned"):
            raise ValueError(
                "the checkpoint is used as published; set fine_tune: true, or omit freeze and vocabulary"
            )
        return self

    @property
    @override
    def trained(self) -> bool:
        return self.fine_tune

    @override
    def build(self, inputs: BuildInputs) -> MaskedLanguageModel:
        """Load the checkpoint; parameters that its head lacks are drawn from torch's generator.

        Raises:
            StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be trained, or it
                has no layer that `freeze` names.
        """
        from raykd.layers.hf_masked_lm import masked_language_model

        return masked_language_model(self, inputs, trained=self.fine_tune)

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> MaskedLanguageModel:
        from raykd.layers.hf_masked_lm import rebuild_masked_lm

        return rebuild_masked_lm(self, architecture)

    @override
    def shape(self) -> PlainObject:
        return self.model_dump(include={"kind", "path", "checksum"})
