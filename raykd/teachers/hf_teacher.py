"""What the Transformers teachers have in common: a checkpoint, as it is or fine-tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import PretrainedConfig
from raykd.errors import StoreError
from raykd.layers.checkpoint import (
    SAFE,
    checked_weights,
    checkpoint_folder,
    embedding_dim,
    quietly,
    reading_limit,
    reads_types,
    weights_checksum,
)
from raykd.layers.heads import Places
from raykd.layers.model import checked_layer
from raykd.teachers.ensemble import Seeded
from raykd.teachers.hf_tagger import HFTagger
from raykd.teachers.label_map import LabelMap, match_labels
from raykd.training import Duration, TrainingConfig

if TYPE_CHECKING:
    from raykd.corpora.tags import TagSet
    from raykd.layers import Model


class HFTeacher(Seeded, Duration):
    """A Transformers checkpoint by name or local folder, as it is or fine-tuned by raykd.

    As it is, its labels are matched to the corpus' tags by name; IOB2 labels become BIOES exactly (`label_map.py`).
    Fine-tuned, it gets a new head over the corpus' tags.
    """

    path: Annotated[str, Field(min_length=1)]
    scope: Literal["language", "all"] = "all"
    fine_tune: bool = False
    vocabulary: Literal["whole", "pruned"] = "whole"
    """`pruned`, with `fine_tune`: to the pieces of its training and unlabelled text, which it reads exactly as before;
    other text is split into these pieces. The embeddings of multilingual checkpoints are most of their parameters."""
    freeze: tuple[Literal["embeddings"] | Annotated[int, Field(ge=1)], ...] = ()
    """With `fine_tune`, what is not trained: `embeddings`, and layers of the encoder by their numbers, from 1."""
    precision: Literal["float32", "bf16"] = "float32"
    """In which it labels text: with `bf16` a processor or GPU that has it is two to three times faster. For its
    training there is `training.precision`."""
    labels: dict[str, str | None] = Field(default_factory=dict)
    """Other names for the checkpoint's labels; null leaves a label out."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (`pinned` sets it); a checkpoint that changed is refused."""
    epochs: Annotated[int, Field(ge=1)] | None = 3
    """Passes over its text at most, of which the best is kept."""
    training: TrainingConfig = TrainingConfig(
        optimiser="adamw", learning_rate=5e-5, learning_rate_schedule="linear", warmup=0.1
    )
    own_signals: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "hidden", "hidden_int8")
    renamed = (("per", "scope"),)
    reads_characters: ClassVar[bool] = False
    contextual: ClassVar[None] = None
    decoder: ClassVar[Literal["crf", "maxent"]] = "maxent"
    pools: ClassVar[bool]
    """Whether it gives one label for a sentence by its own pooling."""
    auto_class: ClassVar[str]
    """The class of Transformers that reads it."""

    @model_validator(mode="after")
    def _several_are_trained(self) -> Self:
        if self.count > 1 and not self.fine_tune:
            raise ValueError(
                "several from one checkpoint as it is are all the same; set fine_tune: true, or count: 1"
            )
        if self.freeze and not self.fine_tune:
            raise ValueError("freeze: the checkpoint is taken as it is; set fine_tune: true")
        if self.vocabulary == "pruned" and not self.fine_tune:
            raise ValueError(
                "a checkpoint that is taken as it is has no training text to be pruned to; set fine_tune: true, or "
                "vocabulary: whole"
            )
        return self

    @property
    def trained(self) -> bool:
        """Whether raykd trains it."""
        return self.fine_tune

    @property
    def tokenizer(self) -> PretrainedConfig:
        """The checkpoint's own."""
        return PretrainedConfig(kind="pretrained", path=self.path, pruned=self.vocabulary == "pruned")

    def pinned(self, language: str | None = None) -> Self:
        """The same teacher with its checkpoint's checksum, which makes its identity that of the weights."""
        return self.model_copy(update={"checksum": weights_checksum(self.path)})

    def build(
        self,
        *,
        tag_set: TagSet,
        vocabulary_size: int = 0,
        characters: int = 0,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
        kept: Sequence[int] | None = None,
    ) -> Model:
        """The checkpoint as a tagger; with `fine_tune` its new head is drawn from torch's generator.

        The sizes and the dropout are the checkpoint's own: `vocabulary_size`, `characters` and `dropout` are ignored.
        `kept`: the pieces of a pruned vocabulary, by their ids in the checkpoint.

        Raises:
            StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be fine-tuned, its
                labels do not correspond to the tags, or it has no layer that `freeze` names.
        """
        folder = checkpoint_folder(self.path)
        checked_weights(self.path, self.checksum)
        model = self._load(str(folder), None if not self.fine_tune else tag_set)
        special = HFVocabulary.load(str(folder)).special
        sizes: dict[str, Any] = {"prefix": len(special.prefix), "suffix": len(special.suffix)}
        if unit == "sentence":
            places = {old: new for new, old in enumerate(kept)} if kept is not None else {}
            sizes["separator"] = [places.get(piece, piece) for piece in special.separator]
            sizes["types"] = reads_types(model, folder)
        tagger = self._tagger(model, tag_set, unit, limit=reading_limit(model, folder), **sizes)
        if kept is not None:
            tagger.keep_rows(kept)
        tagger.fixed()  # refuses layers that are not there
        return tagger

    def rebuild(
        self, architecture: Mapping[str, Any], *, tag_set: TagSet, unit: Literal["word", "sentence"] = "word"
    ) -> Model:
        """The tagger of an `architecture` that `HFTagger.architecture` gave, without the checkpoint and its weights."""
        from transformers import AutoConfig  # takes seconds to import

        config = AutoConfig.for_model(**architecture["config"])
        with quietly():
            model = self._class.from_config(config, dtype=torch.float32)
        names = ("limit", "prefix", "suffix", "separator", "types")
        # One of before there were pairs has neither separator nor types.
        sizes = {name: architecture[name] for name in names if name in architecture}
        return self._tagger(model, tag_set, unit, **sizes)

    @property
    def embedding_dim(self) -> int:
        """Components of its vectors of pieces."""
        return embedding_dim(str(checkpoint_folder(self.path)))

    def hidden_size(self, layer: int) -> int:
        from transformers import AutoConfig  # takes seconds to import

        config = AutoConfig.from_pretrained(str(checkpoint_folder(self.path)))
        checked_layer(layer, config.num_hidden_layers, self.path)
        return config.hidden_size

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the number of tags."""
        return self.model_dump(include={"kind", "path", "checksum", "precision"})

    @property
    def _class(self) -> Any:
        import transformers  # takes seconds to import

        return getattr(transformers, self.auto_class)

    def _tagger(self, model: Any, tag_set: TagSet, unit: Any, **sizes: Any) -> HFTagger:
        labels = self._label_map(model.config, tag_set)
        own = {"pools": self.pools, "precision": self.precision, "freeze": self.freeze}
        own["places"] = Places(tag_set.allowed_places())
        return HFTagger(model, labels, unit=unit, **sizes, **own)

    def _label_map(self, config: Any, tag_set: TagSet) -> LabelMap:
        names = [config.id2label[i] for i in range(config.num_labels)]
        return match_labels(names, tag_set, {} if self.fine_tune else self.labels, checkpoint=self.path)

    def _load(self, folder: str, tag_set: TagSet | None) -> Any:
        """The checkpoint with its own head, or with a new one over `tag_set`."""
        head: dict[str, Any] = {}
        if tag_set is not None:
            head = {
                "id2label": dict(enumerate(tag_set.tags)),
                "label2id": {t: i for i, t in enumerate(tag_set.tags)},
            }
            head |= {"num_labels": len(tag_set), "ignore_mismatched_sizes": True}
        try:
            with quietly():
                model, report = self._class.from_pretrained(
                    folder, dtype=torch.float32, output_loading_info=True, **SAFE, **head
                )
        except (OSError, ValueError) as error:
            hint = f"give a checkpoint that {self.auto_class} reads"
            raise StoreError(self.path, f"cannot be loaded ({error})", hint) from error
        if tag_set is None and report["missing_keys"]:
            first = sorted(report["missing_keys"])[0]
            what = self.kind.removeprefix("hf_").replace("_classifier", "-classification")  # type: ignore[attr-defined]
            raise StoreError(self.path, f"has no trained {what} head ({first})", "set fine_tune: true")
        return model
