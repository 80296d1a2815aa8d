"""The student from a Transformers checkpoint, for fine-tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.forms import FLAT, SPANS, TREE, UTTERANCES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.hf_config import HFConfig
from raykd.students.hf_student import HFStudent

if TYPE_CHECKING:
    from raykd.layers.hf_tagger import HFTagger
    from raykd.layers.model_config import BuildInputs


class CheckpointStudent(HFConfig, HFStudent):
    """A student from a Transformers checkpoint."""

    path: Annotated[str, Field(min_length=1)]
    """A checkpoint by folder or name on the Hub. `{seed}` in it stands for the run's seed: with several seeds, each run
    starts from its own checkpoint."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""

    @override
    def shape(self) -> PlainObject:
        return self.model_dump(include={"kind", "path", "checksum"})


class PretrainedStudent(CheckpointStudent):
    """A Transformers checkpoint with a new head over the corpus' tags.

    The checkpoint is an encoder that `raykd export` wrote after pretraining, or one of the Hub (Soltan et al. 2021,
    §3.2). Its sizes and its dropout are the checkpoint's.
    """

    kind: Literal["pretrained"] = "pretrained"

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES, TREE)

    @override
    def build(self, inputs: BuildInputs) -> HFTagger:
        """Load the checkpoint as a tagger with a new head, drawn from torch's generator."""
        from raykd.layers.hf_classifier import classifier

        return classifier(self, inputs, pools=inputs.unit == "sentence")

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> HFTagger:
        from raykd.layers.hf_classifier import rebuild_classifier

        return rebuild_classifier(self, architecture, inputs, pools=inputs.unit == "sentence")
