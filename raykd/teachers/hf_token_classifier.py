"""Any Transformers token classifier as a teacher."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import nn

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import PretrainedConfig
from raykd.errors import StoreError
from raykd.layers import Model, Output
from raykd.layers.checkpoint import (
    SAFE,
    checked_weights,
    checkpoint_folder,
    quietly,
    reading_limit,
    weights_checksum,
)
from raykd.layers.model import checked_layer
from raykd.layers.windows import in_windows
from raykd.structures import Chain
from raykd.teachers.ensemble import Seeded
from raykd.teachers.label_map import LabelMap, match_labels
from raykd.training import Duration, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from raykd.corpora.encoding import TokenBatch
    from raykd.corpora.tags import TagSet


class HFTagger(Model):
    """A token classifier that labels a word at its first piece, or a sentence at the first piece of all; its chain has
    no transitions.

    Shapes: B batch, P pieces, T words, L labels, Y tags, D size. Sentences longer than the model reads at
    once are read in overlapping windows (`layers/windows.py`).
    """

    def __init__(
        self,
        model: Any,
        labels: LabelMap,
        *,
        unit: Literal["word", "sentence"],
        limit: int,
        prefix: int,
        suffix: int,
    ):
        super().__init__()
        self.model, self.unit = model, unit
        self._labels, self._limit, self._prefix, self._suffix = labels, limit, prefix, suffix

    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        depth = self.model.config.num_hidden_layers
        wanted = {layer: checked_layer(layer, depth, "the checkpoint") for layer in layers}
        # Windows are joined once for all that is read of a piece: logits first, then the states of each layer.
        read_BPD = in_windows(
            partial(self._read, tuple(wanted.values())), batch.pieces_BP, batch.piece_lengths_B,
            limit=self._limit, prefix=self._prefix, suffix=self._suffix,
        )  # fmt: skip
        sizes = [self.model.config.num_labels, *(self.model.config.hidden_size for _ in wanted)]
        logits_BPL, *states = read_BPD.split(sizes, dim=-1)
        ones_B = torch.ones_like(batch.lengths_B)
        lengths_B = batch.lengths_B if self.unit == "word" else ones_B
        first_BT1 = batch.first_BT[:, :, None] if self.unit == "word" else 0 * ones_B[:, None, None]
        logits_BTL = logits_BPL.take_along_dim(first_BT1, 1).float()
        hidden = {layer: own.take_along_dim(first_BT1, 1) for layer, own in zip(wanted, states, strict=True)}
        return Output(Chain(self._labels.emissions(logits_BTL, lengths_B), lengths_B), hidden)

    def architecture(self) -> dict[str, Any]:
        # As JSON, since a Transformers configuration holds types and numbers as keys.
        config = json.loads(self.model.config.to_json_string(use_diff=False))
        return {"config": config, "limit": self._limit, "prefix": self._prefix, "suffix": self._suffix}

    def hidden_size(self, layer: int) -> int:
        checked_layer(layer, self.model.config.num_hidden_layers, "the checkpoint")
        return self.model.config.hidden_size

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        embeddings = [*self.model.base_model.embeddings.parameters()]
        body = {id(p): p for p in self.model.base_model.parameters()}
        known = {id(p) for p in embeddings}
        return {
            "head": [p for p in self.model.parameters() if id(p) not in body],
            "encoder": [p for key, p in body.items() if key not in known],
            "embeddings": embeddings,
        }

    def _read(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        mask_BP = torch.arange(pieces_BP.shape[1], device=lengths_B.device) < lengths_B[:, None]
        found = self.model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=bool(layers)
        )
        return (
            torch.cat([found.logits, *(found.hidden_states[layer] for layer in layers)], -1)
            if layers
            else found.logits
        )


class HFTokenClassifierTeacher(Seeded, Duration):
    """A Transformers checkpoint by name or local folder, as it is or fine-tuned by raykd.

    As it is, its labels are matched to the corpus' tags by name; IOB2 labels become BIOES exactly
    (`labels.py`). Fine-tuned, it gets a new head over the corpus' tags.
    """

    kind: Literal["hf_token_classifier"] = "hf_token_classifier"
    path: Annotated[str, Field(min_length=1)]
    scope: Literal["language", "all"] = "all"
    fine_tune: bool = False
    labels: dict[str, str | None] = Field(default_factory=dict)
    """Other names for the checkpoint's labels; null leaves a label out."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (`pinned` sets it); a checkpoint that changed is refused."""
    epochs: Annotated[int, Field(ge=1)] | None = 3
    """Passes over its text at most, of which the best is kept."""
    training: TrainingConfig = TrainingConfig(optimiser="adamw", learning_rate=5e-5)
    own_signals: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "hidden")
    renamed = (("per", "scope"),)
    reads_characters: ClassVar[bool] = False
    contextual: ClassVar[None] = None
    decoder: ClassVar[Literal["crf", "maxent"]] = "maxent"

    @model_validator(mode="after")
    def _several_are_trained(self) -> Self:
        if self.count > 1 and not self.fine_tune:
            raise ValueError(
                "several from one checkpoint as it is are all the same; set fine_tune: true, or count: 1"
            )
        return self

    @property
    def trained(self) -> bool:
        """Whether raykd trains it."""
        return self.fine_tune

    @property
    def vocabulary(self) -> PretrainedConfig:
        """The checkpoint's own tokenizer."""
        return PretrainedConfig(kind="pretrained", path=self.path)

    def pinned(self, language: str | None = None) -> HFTokenClassifierTeacher:
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
    ) -> Model:
        """The checkpoint as a tagger; with `fine_tune` its new head is drawn from torch's generator.

        The sizes and the dropout are the checkpoint's own: `vocabulary_size`, `characters` and `dropout`
        are ignored.

        Raises:
            StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be
                fine-tuned, or its labels do not correspond to the tags.
        """
        folder = checkpoint_folder(self.path)
        checked_weights(self.path, self.checksum)
        model = _load(folder, self.path, None if not self.fine_tune else tag_set)
        labels = self._label_map(model.config, tag_set)
        special = HFVocabulary.load(str(folder)).special
        prefix, suffix = len(special.prefix), len(special.suffix)
        return HFTagger(
            model, labels, unit=unit, limit=reading_limit(model, folder), prefix=prefix, suffix=suffix
        )

    def rebuild(
        self, architecture: Mapping[str, Any], *, tag_set: TagSet, unit: Literal["word", "sentence"] = "word"
    ) -> Model:
        """The tagger of an `architecture` that `HFTagger.architecture` gave, without the checkpoint and its weights."""
        from transformers import AutoConfig, AutoModelForTokenClassification  # takes seconds to import

        config = AutoConfig.for_model(**architecture["config"])
        with quietly():
            model = AutoModelForTokenClassification.from_config(config, dtype=torch.float32)
        sizes = {name: architecture[name] for name in ("limit", "prefix", "suffix")}
        return HFTagger(model, self._label_map(config, tag_set), unit=unit, **sizes)

    def _label_map(self, config: Any, tag_set: TagSet) -> LabelMap:
        names = [config.id2label[i] for i in range(config.num_labels)]
        return match_labels(names, tag_set, {} if self.fine_tune else self.labels, checkpoint=self.path)

    def hidden_size(self, layer: int) -> int:
        from transformers import AutoConfig  # takes seconds to import

        config = AutoConfig.from_pretrained(str(checkpoint_folder(self.path)))
        checked_layer(layer, config.num_hidden_layers, self.path)
        return config.hidden_size

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the number of tags."""
        return self.model_dump(include={"kind", "path", "checksum"})


def _load(folder: Path, path: str, tag_set: TagSet | None) -> Any:
    """The checkpoint with its own head, or with a new one over `tag_set`."""
    # Transformers takes seconds to import, and only this teacher needs it.
    from transformers import AutoModelForTokenClassification

    head: dict[str, Any] = {}
    if tag_set is not None:
        head = {
            "id2label": dict(enumerate(tag_set.tags)),
            "label2id": {t: i for i, t in enumerate(tag_set.tags)},
        }
        head |= {"num_labels": len(tag_set), "ignore_mismatched_sizes": True}
    try:
        with quietly():
            model, report = AutoModelForTokenClassification.from_pretrained(
                str(folder), dtype=torch.float32, output_loading_info=True, **SAFE, **head
            )
    except (OSError, ValueError) as error:
        hint = "give a checkpoint that AutoModelForTokenClassification reads"
        raise StoreError(path, f"cannot be loaded ({error})", hint) from error
    if tag_set is None and report["missing_keys"]:
        first = sorted(report["missing_keys"])[0]
        raise StoreError(path, f"has no trained token-classification head ({first})", "set fine_tune: true")
    return model
