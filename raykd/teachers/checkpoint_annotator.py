"""A token classifier as an annotator: its token marginals are stored once, as answers.

Shapes: B batch, T words, Y tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.corpora.answers import AskedText
from raykd.corpora.sentence import Unit
from raykd.forms import FLAT, SPANS, LabelForm, TagSet
from raykd.forms.tag_schemes import has_span_form
from raykd.identity import PlainObject
from raykd.layers.checkpoint import labels_every_piece, refuse_unreadable, weights_checksum
from raykd.layers.transition_biases import DEFAULT, TransitionBiases
from raykd.teachers.asked_annotator import AnnotatorSource, AskedAnnotator, Labeller
from raykd.teachers.hf_token_classifier import HFTokenClassifierTeacher

_SMALLEST = 1e-7
"""Smallest probability that an answer has; most tags of a word have less."""
_BATCH_TOKENS = 8000


class CheckpointAnnotator(AskedAnnotator):
    """A Transformers token classifier as published, whose token marginals are its answers: a member of `combined`.

    As the only teacher, `kind: hf_token_classifier` gives more: its whole distribution, and hidden states.
    """

    kind: Literal["checkpoint"] = "checkpoint"
    path: str = Field(min_length=1)
    """The checkpoint by name or local folder; it must exist on all nodes."""
    answers: Literal["probabilities"] = "probabilities"
    """Always the probabilities of each word's labels."""
    labelled_pieces: Literal["first", "every"] | None = None
    """As of `hf_token_classifier`."""
    operating_point: str | TransitionBiases = DEFAULT
    """As of `hf_token_classifier`."""
    batch_size: int = Field(default=256, ge=1)
    """Texts that are put to it at once, and stored in one object."""
    units: ClassVar[tuple[Unit, ...]] = ("word",)
    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS)
    model_signals: ClassVar[tuple[str, ...]] = ("token_marginals", "kbest")

    @property
    @override
    def title(self) -> str:
        return f"{self.kind} {self.path}"

    @property
    @override
    def asking(self) -> PlainObject:
        reading = self._model.model_dump(mode="json", include={"labelled_pieces", "operating_point"})
        return {"checksum": weights_checksum(self.path), **reading}

    @property
    def _model(self) -> HFTokenClassifierTeacher:
        pieces = self.labelled_pieces
        if pieces is None:
            of_pieces, _ = labels_every_piece(self.path)
            pieces = "every" if of_pieces else "first"
        settings = {"path": self.path, "labelled_pieces": pieces, "operating_point": self.operating_point}
        return HFTokenClassifierTeacher.model_validate(settings)

    @override
    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        refuse_unreadable(self.path, head="ForTokenClassification")

    @override
    def find_source(self, folders: Sequence[Path]) -> AnnotatorSource:
        refuse_unreadable(self.path, head="ForTokenClassification")
        return AnnotatorSource(self.path)

    @override
    def open(self, source: AnnotatorSource) -> Labeller:
        import torch
        from transformers import AutoConfig

        from raykd.corpora.batching import plan_batches
        from raykd.corpora.encoded_text import encode_text
        from raykd.corpora.pretrained import HFVocabulary
        from raykd.layers.checkpoint import checkpoint_folder
        from raykd.layers.model_config import BuildInputs
        from raykd.structures import token_marginals

        folder = str(checkpoint_folder(self.path))
        config: Any = AutoConfig.from_pretrained(folder)
        tag_set = _own_tags(config.id2label.values())
        model, vocabulary = self._model.build(BuildInputs(tag_set=tag_set)).eval(), HFVocabulary.load(folder)

        def label(texts: Sequence[AskedText]) -> Iterator[Any]:
            encoded = encode_text([list(item.words) for item in texts], vocabulary)
            answers: dict[int, list[dict[str, float]]] = {}
            with torch.inference_mode():
                for rows in plan_batches(
                    encoded.piece_lengths, batch_tokens=_BATCH_TOKENS, seed=0, epoch=0, shuffle=False
                ):
                    marginals_BTY = token_marginals(model(encoded.gather(rows)).distribution)
                    for row, marginals_TY in zip(rows.tolist(), marginals_BTY.tolist(), strict=True):
                        words = marginals_TY[: len(texts[row].words)]
                        answers[row] = [_distribution(tag_set, marginals_Y) for marginals_Y in words]
            yield from (answers[row] for row in range(len(texts)))

        return label


def _own_tags(labels: Any) -> TagSet:
    """Return the tags of a checkpoint's own labels."""
    names = [*map(str, labels)]
    types = [name[2:] for name in names if has_span_form(name)]
    return SPANS.tag_set(types) if types else FLAT.tag_set(names)


def _distribution(tag_set: TagSet, marginals_Y: Sequence[float]) -> dict[str, float]:
    return {tag: mass for tag, mass in zip(tag_set.tags, marginals_Y, strict=True) if mass >= _SMALLEST}
