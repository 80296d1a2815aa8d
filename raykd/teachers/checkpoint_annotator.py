"""A token classifier as an annotator: its token marginals are stored once, as answers."""

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
from raykd.layers.checkpoint import checkpoint_labels, labels_every_piece, refuse_unreadable, weights_checksum
from raykd.layers.transition_biases import DEFAULT, TransitionBiases
from raykd.teachers.asked_annotator import AnnotatorSource, AskedAnnotator, Labeller
from raykd.teachers.hf_token_classifier import HFTokenClassifierTeacher


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
        from raykd.layers.model_config import BuildInputs
        from raykd.layers.word_distributions import word_distributions  # torch takes seconds to import

        tag_set = _own_tags(checkpoint_labels(self.path))
        model, vocabulary = (
            self._model.build(BuildInputs(tag_set=tag_set)).eval(),
            self._model.tokenizer.build([]),
        )

        def label(texts: Sequence[AskedText]) -> Iterator[Any]:
            return word_distributions(model, vocabulary, tag_set.tags, [item.words for item in texts])

        return label


def _own_tags(names: Sequence[str]) -> TagSet:
    """Return the tags of a checkpoint's own labels."""
    types = [name[2:] for name in names if has_span_form(name)]
    return SPANS.tag_set(types) if types else FLAT.tag_set(names)
