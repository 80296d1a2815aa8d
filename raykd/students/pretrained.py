"""The student that starts as a Transformers checkpoint and is fine-tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from raykd.layers.hf_classifier import classifier, rebuilt
from raykd.layers.hf_config import HFConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from raykd.forms import TagSet
    from raykd.layers.hf_tagger import HFTagger


class CheckpointStudent(HFConfig):
    """What all students that start as a Transformers checkpoint have in common."""

    path: Annotated[str, Field(min_length=1)]
    """A checkpoint by folder or name on the Hub. `{seed}` in it stands for the run's seed: where there are several,
    each starts from a checkpoint of its own."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""
    projection: ClassVar[None] = None
    embeddings: ClassVar[None] = None
    encoding: ClassVar[Literal["relative_pos"]] = "relative_pos"
    word_dropout: ClassVar[float] = 0.0
    depth: ClassVar[None] = None

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the number of tags or pieces."""
        return self.model_dump(include={"kind", "path", "checksum"})


class PretrainedStudent(CheckpointStudent):
    """A Transformers checkpoint with a new head over the corpus' tags: what `raykd export` wrote of an encoder that was
    pretrained here, or one of the Hub (Soltan et al. 2021, §3.2). Its sizes and its dropout are the checkpoint's."""

    kind: Literal["pretrained"] = "pretrained"

    def build(
        self,
        *,
        tag_set: TagSet,
        vocabulary_size: int = 0,
        characters: int = 0,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
        kept: Sequence[int] | None = None,
    ) -> HFTagger:
        """The checkpoint as a tagger, its head drawn from torch's generator; of sentences by its own pooling.

        Raises:
            StoreError: there is no such checkpoint, it changed, or it has no layer that `freeze` names.
        """
        return classifier(self, tag_set, unit, pools=unit == "sentence", kept=kept)

    def rebuild(
        self, architecture: Mapping[str, Any], *, tag_set: TagSet, unit: Literal["word", "sentence"] = "word"
    ) -> HFTagger:
        """The tagger of an `architecture` that `HFTagger.architecture` gave, without the checkpoint and its weights."""
        return rebuilt(self, architecture, tag_set, unit, pools=unit == "sentence")
