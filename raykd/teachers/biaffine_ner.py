"""NER as parsing: the biaffine teacher over spans."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.forms import SPANS, LabelForm
from raykd.layers.tagger_config import Size
from raykd.teachers.bilstm_teacher import BiLSTMTeacher

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.forms import TagSet
    from raykd.layers.heads import Head
    from raykd.structures import SpanTags


class BiaffineNERTeacher(BiLSTMTeacher):
    """The encoder of `bilstm_crf` with a biaffine score for all possible entities (Yu et al., ACL 2020).

    Trained on −log p of the gold entities among all flat segmentations, exactly. (The paper trains a softmax over the
    labels of each span separately, and keeps the best spans that do not overlap. That defines no distribution over
    segmentations, so it has no token marginals for a student to learn.) It is a non-chain teacher: it offers its token
    marginals and its best segmentation (Wang et al., ACL 2021, case 4).
    """

    kind: Literal["biaffine_ner"] = "biaffine_ner"
    biaffine_dim: Size = 100
    """Components of a word's vector as first and as last word of an entity."""
    span_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Dropout of these vectors."""
    forms: ClassVar[tuple[LabelForm, ...]] = (SPANS,)
    export_obstacle: ClassVar[str] = "finds spans"
    model_signals: ClassVar[tuple[str, ...]] = ("token_marginals", "kbest", "hidden", "hidden_int8")
    decoder: ClassVar[Literal["crf", "maxent", "spans", "arcs"]] = "spans"
    sizes: ClassVar[tuple[str, ...]] = (*BiLSTMTeacher.sizes, "biaffine_dim")

    @override
    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], Head]:
        from raykd.layers.biaffine import BiaffineHead

        return partial(
            BiaffineHead, tags=span_tags(tag_set), size=self.biaffine_dim, dropout=self.span_dropout
        )


def span_tags(tag_set: TagSet) -> SpanTags:
    """Return the numbers of the tags of a BIOES set, by position in a span.

    Args:
        tag_set: the tags.

    Raises:
        ValueError: the tags have another scheme.
    """
    from raykd.structures import SpanTags

    if not tag_set.form.bioes:
        raise ValueError(f"spans need BIOES tags; the tag set is {tag_set.form.scheme}")
    rows = (tuple(tag_set.index(f"{letter}-{label}") for label in tag_set.labels) for letter in "BIES")
    return SpanTags(*rows, outside=tag_set.index("O"))
