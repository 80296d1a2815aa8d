"""The configuration of models from Transformers checkpoints, teachers and students alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary_config import PretrainedConfig
from raykd.layers.checkpoint import (
    checkpoint_folder,
    embedding_dim,
    read_model,
    reading_limit,
    refuse_unreadable,
    verified_weights_checksum,
    weights_checksum,
)
from raykd.layers.cut import Cut
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedModel


CLASSES = {False: "AutoModelForTokenClassification", True: "AutoModelForSequenceClassification"}
"""Class of Transformers for a checkpoint: False for a token classifier, True for a sequence classifier, which gives a
sentence one label by its own pooling."""


class HFConfig(Frozen):
    """A Transformers checkpoint by name or local folder."""

    path: Annotated[str, Field(min_length=1)]
    vocabulary: Literal["whole", "pruned"] = "whole"
    """`pruned`: only the pieces of its training and unlabelled text are kept. This text is split as before, other text
    into the kept pieces. Most parameters of multilingual checkpoints are in their embeddings."""
    freeze: tuple[Literal["embeddings"] | Annotated[int, Field(ge=1)], ...] = ()
    """Parts that are not trained: `embeddings`, and layers of the encoder by their numbers, from 1."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (`pinned` sets it); a checkpoint that changed is refused."""
    shows_pieces: ClassVar[bool] = True
    reads_characters: ClassVar[bool] = False
    contextual: ClassVar[None] = None

    @property
    def decoder(self) -> Literal["crf", "maxent"]:
        """Labels are independent, but for a checkpoint that labels every piece in BIOES."""
        return "maxent"

    @property
    def cut(self) -> Cut:
        """Parts of the checkpoint's encoder that stay."""
        return Cut()

    @property
    def encoder_path(self) -> str:
        """The checkpoint, of which a student may be cut."""
        return self.path

    @property
    def tokenizer(self) -> PretrainedConfig:
        """The checkpoint's tokenizer."""
        return PretrainedConfig(kind="pretrained", path=self.path, pruned=self.vocabulary == "pruned")

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Check the existence of the checkpoint, without loading it.

        Raises:
            MissingError: there is no such folder, and no such name.
            StoreError: the folder holds no checkpoint.
        """
        refuse_unreadable(self.path)

    def refuse_hidden_attention(self) -> None:
        """Check that attention scores can be read from its layers; a name on the Hub is not looked up.

        Raises:
            StoreError: they cannot.
        """
        from raykd.layers.attention_scores import refuse_hidden_attention  # torch takes seconds to import

        if Path(self.path).is_dir():
            refuse_hidden_attention(self.path)

    def pinned(self, language: str | None = None) -> Self:
        """Return the configuration with the checkpoint's checksum, which makes its identity that of the weights."""
        return self.model_copy(update={"checksum": weights_checksum(self.path)})

    @property
    def embedding_dim(self) -> int:
        """Number of components of the checkpoint's piece vectors."""
        return embedding_dim(str(checkpoint_folder(self.path)))

    def hidden_size(self, layer: int) -> int:
        """Return the number of components of the hidden states of a layer.

        Args:
            layer: number of the layer; 0 is the encoder's input.

        Raises:
            ValueError: the checkpoint has no such layer.
        """
        from transformers import AutoConfig  # takes seconds to import

        from raykd.layers.model import resolve_layer

        config = AutoConfig.from_pretrained(str(checkpoint_folder(self.path)))
        resolve_layer(layer, config.num_hidden_layers, self.path)
        return config.hidden_size

    def load(self, auto_class: str, **options: object) -> tuple[PreTrainedModel, Sequence[str]]:
        """Load the checkpoint with a class of Transformers.

        Args:
            auto_class: name of the class, such as `AutoModel`.
            **options: options of its `from_pretrained`.

        Returns:
            The model, and the names of parameters that the checkpoint lacks; these are drawn from torch's generator.

        Raises:
            StoreError: there is no such checkpoint, it changed, or the class cannot read it.
        """
        verified_weights_checksum(self.path, self.checksum)
        return read_model(self.path, auto_class, **options)

    def sizes(self, model: PreTrainedModel) -> dict[str, int]:
        """Return how many pieces the model reads at once, and how many special pieces stand around a sentence."""
        folder = checkpoint_folder(self.path)
        special = HFVocabulary.load(str(folder)).special
        return {
            "limit": reading_limit(model, folder), "prefix": len(special.prefix), "suffix": len(special.suffix),
        }  # fmt: skip
