"""The common configuration of teachers and students, and the inputs of building a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from raykd.corpora.word_pieces import Special
from raykd.identity import PlainObject
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from raykd.corpora.sentence import Unit
    from raykd.corpora.vocabulary_config import VocabularyConfig
    from raykd.forms import LabelForm, TagSet
    from raykd.layers.contextual import ContextualConfig
    from raykd.layers.model import Model


@dataclass(frozen=True, kw_only=True)
class BuildInputs:
    """Inputs of `ModelConfig.build` that follow from corpus and vocabulary; a model uses those it needs."""

    tag_set: TagSet
    """The labels to predict."""
    unit: Unit = "word"
    """Unit with one label."""
    vocabulary_size: int = 0
    """Number of pieces (or words) in the vocabulary."""
    special: Special = field(default=Special())
    """Special pieces of the vocabulary, which belong to no word."""
    kept_pieces: Sequence[int] | None = None
    """Pieces of a checkpoint's pruned vocabulary, by their ids in the checkpoint; None: it is not pruned."""
    characters: int = 0
    """Number of characters in the character vocabulary."""
    dropout: float = 0.0
    """Dropout in training; a checkpoint has its own."""


class ModelConfig(Frozen):
    """Settings and capabilities of a teacher or a student.

    A student fits a teacher and a task if their capabilities do (`recipes/`). No code compares the name of a kind.
    """

    forms: ClassVar[tuple[LabelForm, ...]]
    """Label forms of predictions."""
    units: ClassVar[tuple[Unit, ...]] = ("word", "sentence")
    """Units with one label, for which the model can be built."""
    reads_text_pairs: ClassVar[bool] = True
    """True if a sentence may be a pair of texts."""
    shows_pieces: ClassVar[bool] = False
    """True for a Transformers encoder: states and attention of all its pieces can be read."""
    export_obstacle: ClassVar[str] = ""
    """Reason why the model cannot be exported, in words that follow "it"; empty: it can."""

    if TYPE_CHECKING:
        kind: str
        trained: bool
        """True if raykd trains the model; False if a checkpoint is used as published."""
        scope: Literal["language", "all"]
        """One model for each language, or one for all."""
        decoder: Literal["crf", "maxent", "spans", "arcs"]
        """The decoder: the layer that gives the distribution over labels."""
        tokenizer: VocabularyConfig
        """Vocabulary and splitting of text into pieces."""
        reads_characters: bool
        """True if the model reads words' characters too."""
        contextual: ContextualConfig | None
        """Frozen encoders and word vectors that the model reads too."""
        embedding_dim: int | None
        """Components of piece vectors; 0 or None where the model has none of its own."""

    @property
    def depth(self) -> int | None:
        """Number of layers with hidden states; None where only a checkpoint states it."""
        return None

    @property
    def has_transitions(self) -> bool:
        """True if the model scores pairs of neighbouring labels."""
        return self.decoder == "crf"

    @property
    def gives_chain(self) -> bool:
        """True if the model's labels form a chain, in which the best legal labelling is sought."""
        return self.decoder in ("crf", "maxent")

    @property
    def no_export_reason(self) -> str:
        """Reason why this configuration cannot be exported, in words that follow "it"; empty: it can."""
        return self.export_obstacle if self.contextual is None else "reads frozen encoders or vectors"

    @property
    def encoder_path(self) -> str:
        """The checkpoint whose encoder the model has, of which a student may be cut; empty: none."""
        return ""

    @property
    def published_reading(self) -> str:
        """Pieces of a word that a checkpoint as published labels, as a sentence; empty for other models."""
        return ""

    @property
    def stated_costs(self) -> Mapping[str, float]:
        """Name of a figure → its value, for costs that the sweep file states and nobody measures."""
        return {}

    def pinned(self, language: str | None = None) -> Self:
        """Return the configuration with the checksums of input files.

        Args:
            language: the model's language, for files that differ by language; None for a model of several.
        """
        return self

    def build(self, inputs: BuildInputs) -> Model:
        """Build the untrained model; new parameters are drawn from torch's generator.

        Args:
            inputs: labels, vocabulary and sizes that follow from the corpus.

        Raises:
            StoreError: a checkpoint or file is missing, changed, or of an unreadable format.
        """
        raise NotImplementedError(f"{type(self).__name__} has no model")

    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> Model:
        """Build the model of a stored architecture, without the checkpoint.

        Args:
            architecture: result of `Model.architecture`.
            inputs: labels, vocabulary and sizes that follow from the corpus.
        """
        return self.build(inputs)

    def shape(self) -> PlainObject:
        """Return the settings with an effect on latency, apart from the numbers of pieces, characters and labels."""
        raise NotImplementedError(f"{type(self).__name__} has no model")
