"""Entity F1 as the papers report it: exact spans and types, micro-averaged, counted by seqeval.

Only well-formed BIOES spans count (seqeval's strict mode): a B without its E, or an I after neither B nor I, is
not an entity. Source: Nakayama, seqeval, `mode="strict", scheme=IOBES` (its v1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from raykd.metrics.accuracy import check_aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIXES = ("B-", "I-", "E-", "S-")


class F1(NamedTuple):
    """Precision, recall and their harmonic mean, each in 0..1."""

    precision: float
    recall: float
    f1: float


def entity_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> F1:
    """Micro-averaged precision, recall and F1 of entities in BIOES tags.

    Precision is 0 where nothing is predicted and recall 0 where there is nothing to find. Raises ValueError
    when the sentences differ in number or length, and for a tag that is not BIOES.
    """
    check_aligned(gold, predicted)
    check_bioes(gold)
    check_bioes(predicted)
    if not any(map(len, gold)):
        return F1(0.0, 0.0, 0.0)
    # Imported here: seqeval imports scikit-learn, which reading a sweep file does not need.
    from seqeval.metrics.v1 import precision_recall_fscore_support
    from seqeval.scheme import IOBES

    options: Any = {"average": "micro", "scheme": IOBES, "zero_division": 0}
    scores: Any = precision_recall_fscore_support(
        list(map(list, gold)), list(map(list, predicted)), **options
    )
    precision, recall, f1, _ = scores
    return F1(float(precision), float(recall), float(f1))


def check_bioes(sentences: Sequence[Sequence[str]]) -> None:
    """Raise ValueError for a tag that is not BIOES."""
    for tag in set().union(*sentences):
        if tag != "O" and not tag.startswith(PREFIXES):
            raise ValueError(f"entity F1 is defined for BIOES tags (O, B-…, I-…, E-…, S-…), got {tag!r}")
