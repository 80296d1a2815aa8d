"""What the configurations of teachers and students state of themselves, and what their models are built for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from raykd.corpora.word_pieces import Special
from raykd.identity import PlainObject
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raykd.corpora.sentence import Unit
    from raykd.corpora.vocabulary import VocabularyConfig
    from raykd.forms import LabelForm, TagSet
    from raykd.layers.contextual import ContextualConfig
    from raykd.layers.model import Model


@dataclass(frozen=True, kw_only=True)
class BuildInputs:
    """What a model is built for, beside its configuration. A model reads of it what it needs."""

    tag_set: TagSet
    """The labels that it predicts."""
    unit: Unit = "word"
    """What gets one label."""
    vocabulary_size: int = 0
    """Pieces (or words) of its embedding."""
    special: Special = field(default=Special())
    """The pieces of its vocabulary that are none of a word."""
    kept: Sequence[int] | None = None
    """The pieces of a checkpoint's pruned vocabulary, by their ids in the checkpoint."""
    characters: int = 0
    """Characters of its character embedding."""
    dropout: float = 0.0
    """Active in training alone; a checkpoint has its own."""


class ModelConfig(Frozen):
    """What every teacher and every student states. Whether two things fit is one rule over two statements
    (`recipes/`): nothing asks for a kind by its name.
    """

    forms: ClassVar[tuple[LabelForm, ...]]
    """The label forms that it predicts."""
    units: ClassVar[tuple[Unit, ...]] = ("word", "sentence")
    """What may get one label."""
    reads_text_pairs: ClassVar[bool] = True
    """Whether a sentence may be a pair of texts."""
    shows_pieces: ClassVar[bool] = False
    """Whether the states and the attention of every piece can be read: it is a Transformers encoder."""
    export_obstacle: ClassVar[str] = ""
    """Why it has no export, in words that follow "it"; empty where it has one."""

    if TYPE_CHECKING:
        kind: str
        trained: bool
        """Whether raykd trains it, or takes it as it is."""
        scope: Literal["language", "all"]
        """One for each language, or one for all."""
        decoder: Literal["crf", "maxent", "spans", "arcs"]
        """What gives the distribution over labels."""
        tokenizer: VocabularyConfig
        """How its text becomes pieces."""
        reads_characters: bool
        """Whether it reads words' characters too."""
        contextual: ContextualConfig | None
        """The frozen encoders and word vectors that it reads too."""
        embedding_dim: int | None
        """Components of its vectors of pieces; 0 or None where it has none of its own."""

    @property
    def depth(self) -> int | None:
        """Layers that have hidden states; None where only a checkpoint says."""
        return None

    @property
    def has_transitions(self) -> bool:
        """Whether it scores pairs of neighbouring labels."""
        return self.decoder == "crf"

    @property
    def gives_chain(self) -> bool:
        """Whether it gives a chain of labels, among which the best legal labelling is sought."""
        return self.decoder in ("crf", "maxent")

    @property
    def not_exported(self) -> str:
        """Why such a model has no export, in words that follow "it"; empty where it has one."""
        return self.export_obstacle if self.contextual is None else "reads frozen encoders or vectors"

    def pinned(self, language: str | None = None) -> Self:
        """The same with the checksums of what it is given; with the `language`'s own files, if it has one."""
        return self

    def build(self, inputs: BuildInputs) -> Model:
        """Build the untrained model; what is new of it is drawn from torch's generator.

        Raises:
            StoreError: a checkpoint or file that it reads is missing, changed, or not one that it can read.
        """
        raise NotImplementedError(f"{type(self).__name__} has no model")

    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> Model:
        """Build the model of an `architecture` that `Model.architecture` gave, without a checkpoint."""
        return self.build(inputs)

    def shape(self) -> PlainObject:
        """What its latency depends on, apart from the numbers of pieces, characters and labels."""
        raise NotImplementedError(f"{type(self).__name__} has no model")
