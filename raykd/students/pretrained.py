"""The student that starts as a Transformers checkpoint and is fine-tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from raykd.forms import FLAT, SPANS, TREE, UTTERANCES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.hf_config import HFConfig
from raykd.students.transformers_student import TransformersStudent

if TYPE_CHECKING:
    from raykd.layers.hf_tagger import HFTagger
    from raykd.layers.model_config import BuildInputs


class CheckpointStudent(HFConfig, TransformersStudent):
    """What all students that start as a Transformers checkpoint have in common."""

    path: Annotated[str, Field(min_length=1)]
    """A checkpoint by folder or name on the Hub. `{seed}` in it stands for the run's seed: where there are several,
    each starts from a checkpoint of its own."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""

    def shape(self) -> PlainObject:
        return self.model_dump(include={"kind", "path", "checksum"})


class PretrainedStudent(CheckpointStudent):
    """A Transformers checkpoint with a new head over the corpus' tags: what `raykd export` wrote of an encoder that was
    pretrained here, or one of the Hub (Soltan et al. 2021, §3.2). Its sizes and its dropout are the checkpoint's.
    """

    kind: Literal["pretrained"] = "pretrained"

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES, TREE)

    def build(self, inputs: BuildInputs) -> HFTagger:
        """The checkpoint as a tagger, its head drawn from torch's generator; of sentences by its own pooling."""
        from raykd.layers.hf_classifier import classifier

        return classifier(self, inputs, pools=inputs.unit == "sentence")

    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> HFTagger:
        from raykd.layers.hf_classifier import rebuilt

        return rebuilt(self, architecture, inputs, pools=inputs.unit == "sentence")
