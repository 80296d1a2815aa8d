"""What a model reads next to its own embeddings: vectors of words from frozen encoders and from word-vector files.

What is frozen is no submodule: it is not trained, not stored with the model's weights, and named by its checksum. What
it gives for a sentence never changes, so it is computed once and stored (`precompute/features.py`); a model in
training reads it from there, and loads the encoder only where it meets text that has not been read before.

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
    """One encoder or one table of vectors, loaded when it first computes."""

    output_size: int
    key: str
    """What it is, wherever it lies: parts with the same key share their weights."""

    def compute(self, batch: TokenBatch) -> Float[Tensor, "batch time size"]:
        """The vectors of the words of `batch`, which is in its own pieces, in float16; meaningless on padding."""
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """Its parameters, without their values."""
        ...

    def __deepcopy__(self, memo: object) -> FrozenFeatures:
        """Itself: what is frozen is shared."""
        ...


class EncoderConfig(Frozen):
    """A frozen Transformers encoder, by name or local folder, that gives each word a vector."""

    path: Annotated[str, Field(min_length=1)]
    layers: Annotated[tuple[int, ...], Field(min_length=1)] = (-1,)
    """Hidden states that are read: 0 the embeddings, 1 the first layer, -1 the last."""
    combine: Literal["concat", "mean"] = "concat"
    """How several layers become one vector."""
    pooling: Literal["mean", "first"] = "mean"
    """A word's vector: the mean of its pieces, or its first piece."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (raykd sets it); a checkpoint that changed is refused."""

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Raise StoreError where there is no such checkpoint; MissingError where there is nothing."""
        refuse_unreadable(self.path)

    def pinned(self, language: str | None = None) -> EncoderConfig:
        """The same encoder with its checksum, which makes its identity that of the weights, and its whole path: Ray's
        workers have other working directories.
        """
        path = str(Path(self.path).absolute()) if Path(self.path).is_dir() else self.path
        return self.model_copy(update={"path": path, "checksum": weights_checksum(path)})

    def vocabulary(self) -> HFVocabulary:
        """The encoder's own tokenizer."""
        return HFVocabulary.load(str(checkpoint_folder(self.path)))

    def build(self) -> FrozenFeatures:
        """The encoder; its weights are read when it first computes.

        Raises:
            StoreError: there is no such checkpoint, it changed, or it has no such layers.
        """
        from raykd.layers.frozen_encoder import encoder_features

        return encoder_features(self)

    def shape(self) -> PlainObject:
        """What latency depends on."""
        return self.model_dump(mode="json", exclude={"path"} if self.checksum else set())

    @property
    def id(self) -> str:
        """The identity of what it gives."""
        return identity("encoder", self.shape())

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.path.rstrip("/").rpartition("/")[2]


def _form(value: object) -> str:
    return "a table" if _has(value, "vectors") else "an encoder"


def _has(value: object, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else isinstance(value, WordVectorsConfig)


Part = EncoderConfig | WordVectorsConfig
FrozenConfig = Annotated[
    Annotated[EncoderConfig, Tag("an encoder")] | Annotated[WordVectorsConfig, Tag("a table")],
    Discriminator(_form),
]


def part_class(plain: PlainObject) -> type[EncoderConfig] | type[WordVectorsConfig]:
    """The configuration that `plain` was dumped from."""
    return WordVectorsConfig if _form(plain) == "a table" else EncoderConfig


ContextualConfig = Annotated[
    Annotated[FrozenConfig, Tag("one")]
    | Annotated[Annotated[tuple[FrozenConfig, ...], Field(min_length=1)], Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one"),
]
"""One frozen encoder or word-vector file, or several side by side."""


def parts_of(config: Part | tuple[Part, ...] | None) -> tuple[Part, ...]:
    """The encoders and tables of a section `contextual`; none where it is None."""
    return () if config is None else config if isinstance(config, tuple) else (config,)


def pinned(config: Part | tuple[Part, ...] | None, language: str | None = None) -> tuple[Part, ...] | None:
    """The same with checksums, which make the identity that of the weights, and `{lang}` filled in."""
    return tuple(part.pinned(language) for part in parts_of(config)) or None


def shape_of(config: Part | tuple[Part, ...] | None) -> PlainObject:
    """What latency depends on."""
    return {"contextual": [part.shape() for part in parts_of(config)]} if parts_of(config) else {}
