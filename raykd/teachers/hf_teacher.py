"""The base of Transformers classifiers as teachers: a checkpoint, as published or fine-tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.forms import FLAT, SPANS, UTTERANCES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.checkpoint import refuse_unreadable
from raykd.layers.hf_config import CLASSES, HFConfig
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration
from raykd.teachers.ensemble import EnsembleTeacher

if TYPE_CHECKING:
    from raykd.layers.model import Model
    from raykd.layers.model_config import BuildInputs
    from raykd.layers.transition_biases import TransitionBiases


class HFTeacher(HFConfig, EnsembleTeacher, Duration):
    """A Transformers checkpoint by name or local folder, as published or fine-tuned by raykd.

    As published, its labels are matched to the corpus' tags by name; labels in IOB2, BILOU, BMES or BMEWO become BIOES
    exactly (`label_map.py`).
    Fine-tuned, it gets a new head over the corpus' tags; only then can it be pruned, and parts of it frozen.
    """

    scope: Literal["language", "all"] = "all"
    fine_tune: bool = False
    precision: Literal["float32", "bf16"] = "float32"
    """Precision in which it labels text: with `bf16` a processor or GPU with support for it is two to three times
    faster. The precision of its training is `training.precision`."""
    labels: dict[str, str | None] = Field(default_factory=dict)
    """Other names for the types of the checkpoint's labels: `{private_person: PER, "*": O}` names `B-private_person`,
    `I-private_person` and so on. `*` names all others; `O` adds their probability to that of O; null leaves them out,
    and the probabilities of the rest are renormalised. The name of a single label, `B-private_person: B-PER`, wins over
    that of its type. Only of a checkpoint as published; a new head has the labels of the corpus."""
    epochs: Annotated[int, Field(ge=1)] | None = 3
    """Passes over its text at most; the best state is kept. A new head takes some 600 optimiser steps: with fewer than
    10,000 sentences set `epochs: null`, `max_steps: 600` and smaller batches, as `raykd init` proposes."""
    training: TrainingConfig = TrainingConfig(
        optimiser="adamw", learning_rate=5e-5, learning_rate_schedule="linear", warmup=0.1
    )
    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES)
    model_signals: ClassVar[tuple[str, ...]] = (
        "emissions", "transitions", "hidden", "hidden_int8", "piece_states", "attention",
    )  # fmt: skip
    pools: ClassVar[bool]
    """True if it gives one label for a sentence by its own pooling."""

    @model_validator(mode="after")
    def _several_are_trained(self) -> Self:
        if self.count > 1 and not self.fine_tune:
            raise ValueError(
                "copies of one checkpoint as published are all the same; set fine_tune: true, or count: 1"
            )
        if self.freeze and not self.fine_tune:
            raise ValueError("freeze: the checkpoint is used as published; set fine_tune: true")
        if self.vocabulary == "pruned" and not self.fine_tune:
            raise ValueError(
                "a checkpoint used as published has no training text to be pruned to; set fine_tune: true, or "
                "vocabulary: whole"
            )
        return self

    @property
    @override
    def trained(self) -> bool:
        return self.fine_tune

    @override
    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Check the existence of the checkpoint, and of a trained head if it is used as published.

        Raises:
            MissingError: there is no such folder, and no such name.
            StoreError: the folder holds no checkpoint, or one without a trained head.
        """
        refuse_unreadable(
            self.path, head="" if self.fine_tune else CLASSES[self.pools].removeprefix("AutoModel")
        )

    @override
    def build(self, inputs: BuildInputs) -> Model:
        """Load the checkpoint as a tagger; with `fine_tune` it gets a new head, drawn at random.

        Raises:
            StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be fine-tuned, its
                labels do not correspond to the tags, or it has no layer that `freeze` names.
        """
        from raykd.layers.hf_classifier import classifier

        options = {"pools": self.pools, "precision": self.precision}
        return classifier(self, inputs, labels=self._label_names, reading=self._piece_reading, **options)

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> Model:
        from raykd.layers.hf_classifier import rebuild_classifier

        options = {"pools": self.pools, "precision": self.precision}
        return rebuild_classifier(self, architecture, inputs, labels=self._label_names, **options)

    @override
    def shape(self) -> PlainObject:
        return self.model_dump(include={"kind", "path", "checksum", "precision"})

    @property
    def _piece_reading(self) -> TransitionBiases | str | None:
        """Biases or an operating point of a checkpoint that labels every piece; None: words have that of the first."""
        return None

    @property
    def _label_names(self) -> Mapping[str, str | None] | None:
        """New names for the checkpoint's labels; None where it gets a new head."""
        return None if self.fine_tune else self.labels
