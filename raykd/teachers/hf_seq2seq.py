"""A Transformers encoder with a decoder of trees, for students of semantic parsing to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.forms import STEPS, LabelForm
from raykd.identity import PlainObject
from raykd.layers.hf_config import HFConfig
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration
from raykd.teachers.ensemble import EnsembleTeacher

if TYPE_CHECKING:
    from raykd.layers.model_config import BuildInputs
    from raykd.layers.pointer_generator import PointerGenerator


class HFSeq2SeqTeacher(HFConfig, EnsembleTeacher, Duration):
    """A checkpoint of an encoder with a new decoder of trees of intents and slots (Rongali et al. 2020).

    raykd fine-tunes it (Soltan et al. 2021, stage 2). Its signals are not stored: it reads each batch in the student's
    training step, with the steps of the gold trees, and scores each next step.
    """

    kind: Literal["hf_seq2seq"] = "hf_seq2seq"
    decoder_layers: Annotated[int, Field(ge=1)] = 3
    decoder_feed_forward_dim: Annotated[int, Field(ge=1)] = 512
    """Hidden size of the linear layers of the decoder that follow its attention."""
    beam: Annotated[int, Field(ge=1)] = 1
    """Hypotheses kept for each sentence while its own trees are generated for scoring."""
    epochs: Annotated[int, Field(ge=1)] | None = 20
    """Passes over its text at most; the best state is kept."""
    training: TrainingConfig = TrainingConfig(
        optimiser="adamw",
        learning_rate=1e-4,
        learning_rate_schedule="linear",
        warmup=0.1,
        loss_average="token",
        dropout=0.1,
    )
    forms: ClassVar[tuple[LabelForm, ...]] = (STEPS,)
    export_obstacle: ClassVar[str] = "generates trees"
    scope: ClassVar[Literal["all"]] = "all"
    trained: ClassVar[bool] = True
    stores: ClassVar[bool] = False
    model_signals: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "piece_states", "attention")

    @model_validator(mode="after")
    def _is_usable_in_training_step(self) -> Self:
        if self.count > 1:
            raise ValueError(
                "this teacher reads each batch in the training step, which has place for one; set count: 1"
            )
        return self

    @override
    def build(self, inputs: BuildInputs) -> PointerGenerator:
        """Load the checkpoint with a decoder drawn from torch's generator.

        Raises:
            StoreError: there is no such checkpoint, it changed, or it has no layer that `freeze` names.
        """
        from raykd.layers.hf_seq2seq import pointer_generator_from_checkpoint

        return pointer_generator_from_checkpoint(self, inputs, **self._decoder_settings)

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> PointerGenerator:
        from raykd.layers.hf_seq2seq import rebuild_pointer_generator

        return rebuild_pointer_generator(
            architecture, inputs.tag_set, freeze=self.freeze, **self._decoder_settings
        )

    @override
    def shape(self) -> PlainObject:
        return {**self.model_dump(include={"kind", "path", "checksum"}), **self._decoder_settings}

    @property
    def _decoder_settings(self) -> PlainObject:
        """Settings of the decoder."""
        return self.model_dump(include={"decoder_layers", "decoder_feed_forward_dim", "beam"})
