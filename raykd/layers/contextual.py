"""Frozen inputs of a model beside the trained embeddings: word vectors from frozen encoders and from word-vector files.

A frozen encoder is no submodule: it is not trained, not stored with the model's weights, and identified by its
checksum. Its vectors for a sentence never change, so they are computed once and stored (`precompute/features.py`). A
model in training reads them from there, and loads the encoder only for text without stored vectors.

Shapes: B batch, T time (words), D size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Discriminator, Field, Tag

from raykd.corpora.pretrained import HFVocabulary
from raykd.identity import PlainObject, identity
from raykd.layers.checkpoint import checkpoint_folder, refuse_unreadable, weights_checksum
from raykd.layers.word_vectors import WordVectorsConfig
from raykd.spec import Frozen

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.corpora.encoded_text import TokenBatch


class FrozenFeatures(Protocol):
    """One frozen encoder or one table of word vectors, loaded on first use."""

    output_size: int
    """Components D of a word's vector."""
    key: str
    """Identity of the weights, wherever their file lies: parts with the same key share their weights."""

    def compute(self, batch: TokenBatch) -> Float[Tensor, "batch time size"]:
        """Return the vectors of the words of `batch` in float16; those of padding have no meaning.

        Args:
            batch: sentences in the pieces of this encoder or table.
        """
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """Return the parameters without values."""
        ...

    def __deepcopy__(self, memo: object) -> FrozenFeatures:
        """Return the same object: frozen parts are shared."""
        ...


class EncoderConfig(Frozen):
    """A frozen Transformers encoder, by name or local folder, that gives each word a vector."""

    path: Annotated[str, Field(min_length=1)]
    layers: Annotated[tuple[int, ...], Field(min_length=1)] = (-1,)
    """Layers of the hidden states: 0 the embeddings, 1 the first layer, -1 the last."""
    combine: Literal["concat", "mean"] = "concat"
    """Combination of several layers into one vector: concatenated, or their mean."""
    pooling: Literal["mean", "first"] = "mean"
    """A word's vector: the mean over its pieces, or that of its first piece."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (raykd sets it); a checkpoint that changed is refused."""

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Check the existence of the checkpoint, without loading it.

        Raises:
            MissingError: there is no such folder, and no such name.
            StoreError: the folder holds no checkpoint.
        """
        refuse_unreadable(self.path)

    def pinned(self, language: str | None = None) -> EncoderConfig:
        """Return the configuration with the checkpoint's checksum and absolute path.

        The checksum makes the identity that of the weights; the path is absolute because Ray's workers have other
        working directories.
        """
        path = str(Path(self.path).absolute()) if Path(self.path).is_dir() else self.path
        return self.model_copy(update={"path": path, "checksum": weights_checksum(path)})

    def vocabulary(self) -> HFVocabulary:
        """Return the encoder's tokenizer."""
        return HFVocabulary.load(str(checkpoint_folder(self.path)))

    def build(self) -> FrozenFeatures:
        """Return the encoder; its weights are read when it first computes.

        Raises:
            StoreError: there is no such checkpoint, it changed, or it has no such layers.
        """
        from raykd.layers.frozen_encoder import encoder_features

        return encoder_features(self)

    def shape(self) -> PlainObject:
        """Return the settings with an effect on latency."""
        return self.model_dump(mode="json", exclude={"path"} if self.checksum else set())

    @property
    def id(self) -> str:
        """Identity of the vectors."""
        return identity("encoder", self.shape())

    @property
    def title(self) -> str:
        """Name in messages."""
        return self.path.rstrip("/").rpartition("/")[2]


def _part_tag(value: object) -> str:
    is_table = "vectors" in value if isinstance(value, Mapping) else isinstance(value, WordVectorsConfig)
    return "a table" if is_table else "an encoder"


Part = EncoderConfig | WordVectorsConfig
FrozenConfig = Annotated[
    Annotated[EncoderConfig, Tag("an encoder")] | Annotated[WordVectorsConfig, Tag("a table")],
    Discriminator(_part_tag),
]


def part_class(plain: PlainObject) -> type[EncoderConfig] | type[WordVectorsConfig]:
    """Return the configuration class of plain data.

    Args:
        plain: a dumped `EncoderConfig` or `WordVectorsConfig`.
    """
    return WordVectorsConfig if _part_tag(plain) == "a table" else EncoderConfig


ContextualConfig = Annotated[
    Annotated[FrozenConfig, Tag("one")]
    | Annotated[Annotated[tuple[FrozenConfig, ...], Field(min_length=1)], Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one"),
]
"""One frozen encoder or word-vector file, or several side by side."""


def contextual_parts(config: Part | tuple[Part, ...] | None) -> tuple[Part, ...]:
    """Return the encoders and tables of a section `contextual`.

    Args:
        config: one encoder or table, several, or None.
    """
    return () if config is None else config if isinstance(config, tuple) else (config,)


def pinned_parts(
    config: Part | tuple[Part, ...] | None, language: str | None = None
) -> tuple[Part, ...] | None:
    """Return the parts with checksums, and with `{lang}` filled in; None where there are none.

    Args:
        config: one encoder or table, several, or None.
        language: the model's language; None for a model of several.
    """
    return tuple(part.pinned(language) for part in contextual_parts(config)) or None


def contextual_shape(config: Part | tuple[Part, ...] | None) -> PlainObject:
    """Return the settings with an effect on latency, under the key `contextual`; empty where there are no parts.

    Args:
        config: one encoder or table, several, or None.
    """
    parts = contextual_parts(config)
    return {"contextual": [part.shape() for part in parts]} if parts else {}
