"""Tag schemes: how files write spans. Inside, spans are BIOES.

The schemes, on the spans [0, 2) PER, [2, 3) PER, [4, 5) LOC of five tokens:

    bioes   B-PER E-PER S-PER O S-LOC
    bilou   B-PER L-PER U-PER O U-LOC     the same with other letters: L for E, U for S
    iob2    B-PER I-PER B-PER O B-LOC     every span begins with B
    iob1    I-PER I-PER B-PER O I-LOC     B only where a span touches an earlier one of its type (CoNLL-2003)
    io      T-PER T-PER T-PER O T-LOC     one tag per token; neighbours with one tag are one span (SemEval-2016)

The first four are equivalent. Conversion is lossless: `from_bioes(to_bioes(tags, s)[0], s) == tags` for every
valid sequence of scheme `s`. An invalid sequence is read as conlleval reads it (a tag that cannot continue a span
begins a new one), and every tag that would be written otherwise counts as one repair. `io` cannot separate
touching spans of one type: they become one. Its types are whole tags (`T-POS`, not `POS`), so that the tags can be
written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from raykd.metrics.bioes import OUTSIDE, Span, read_spans, split_tag

if TYPE_CHECKING:
    from jaxtyping import Bool

SpanScheme = Literal["iob1", "iob2", "bioes", "bilou", "io"]
FileScheme = Literal["iob1", "iob2", "bioes", "bilou", "io", "flat", "auto"]
ReadScheme = Literal[FileScheme, "utterance", "parse"]
"""Those of files, and what some sources make of them."""

LETTERS: Mapping[str, str] = MappingProxyType(
    {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bilou": "BILU", "utterance": "BI"}
)
"""Scheme → the letters of its tags, where a tag is a letter, a dash and a type."""
_AS_BIOES = {"L": "E", "U": "S"}
_AS_BILOU = {"E": "L", "S": "U"}


def _read_runs(tags: Sequence[str]) -> list[Span]:
    """The spans of a sequence in `io`: runs of one tag."""
    ends = list(accumulate(len(list(run)) for _, run in groupby(tags)))
    spans = zip([0, *ends], ends, (tag for tag, _ in groupby(tags)), strict=False)
    return [span for span in spans if span[2] != OUTSIDE]


def write_spans(spans: Iterable[Span], length: int, scheme: SpanScheme) -> list[str]:
    """Tags of `scheme` for ordered, non-overlapping spans (end exclusive) over `length` tokens."""
    tags = [OUTSIDE] * length
    last_end, last_kind = -1, ""
    for start, end, kind in spans:
        if scheme == "io":
            tags[start:end] = [kind] * (end - start)
            continue
        touches = start == last_end and kind == last_kind
        first = "I-" if scheme == "iob1" and not touches else "B-"
        tags[start:end] = [first + kind] + ["I-" + kind] * (end - start - 1)
        if scheme in ("bioes", "bilou"):
            tags[end - 1] = ("S-" if end - start == 1 else "E-") + kind
        last_end, last_kind = end, kind
    return _with_letters(tags, _AS_BILOU) if scheme == "bilou" else tags


def _with_letters(tags: Iterable[str], letters: Mapping[str, str]) -> list[str]:
    return [letters.get(tag[0], tag[0]) + tag[1:] for tag in tags]


def to_bioes(tags: Sequence[str], scheme: SpanScheme) -> tuple[list[str], int]:
    """`tags` of a file's `scheme` in BIOES, and how many tags were not valid in `scheme` as they stood.

    Raises:
        ValueError: a tag does not belong to `scheme` at all.
    """
    if scheme == "io":
        return write_spans(_read_runs(tags), len(tags), "bioes"), 0
    for tag in tags:
        if tag != OUTSIDE and not has_span_form(tag, LETTERS[scheme]):
            raise ValueError(not_of_scheme(tag, scheme))
    spans = read_spans(_with_letters(tags, _AS_BIOES) if scheme == "bilou" else tags)
    written = write_spans(spans, len(tags), scheme)
    repairs = sum(tag != other for tag, other in zip(tags, written, strict=True))
    return write_spans(spans, len(tags), "bioes"), repairs


def from_bioes(tags: Sequence[str], scheme: SpanScheme) -> list[str]:
    """Valid BIOES `tags` in another scheme; the inverse of `to_bioes` on valid sequences."""
    return write_spans(read_spans(tags), len(tags), scheme)


def bioes_tags(types: Iterable[str]) -> Iterator[str]:
    """O, and the four tags of each span type."""
    yield OUTSIDE
    for kind in types:
        yield from (f"{letter}-{kind}" for letter in "BIES")


def types_in(tags: Iterable[str], scheme: SpanScheme) -> set[str]:
    """The span types of tags as a file of `scheme` has them: in `io` a tag is the type of its span; elsewhere the type
    is behind the letter."""
    used = set(tags) - {OUTSIDE}
    return used if scheme == "io" else {tag[2:] for tag in used if tag[1:2] == "-"} - {""}


def check_bioes(tags: Iterable[str], whole: tuple[str, ...]) -> None:
    """Raise ValueError where some `tags` of a `whole` set lack O or one of the four tags of a span type."""
    own = set(tags)
    types = {tag[2:] for tag in own if has_span_form(tag, "BIES")}
    if own != set(bioes_tags(types)):
        raise ValueError(f"a BIOES tag set has O and B-, I-, E-, S- of every type; got {whole}")


def shown_spans(tokens: Sequence[str], tags: Sequence[str], *, words: int) -> str:
    """The first `words` of a sentence with its spans in brackets: `[Angela Merkel]PER besucht …`."""
    cells = list(tokens)
    for start, end, label in read_spans(tags):
        cells[start] = f"[{cells[start]}"
        cells[end - 1] = f"{cells[end - 1]}]{label}"
    return " ".join(cells[:words]) + (" …" if len(tokens) > words else "")


def allowed_in_bioes(tags: Sequence[str]) -> Bool[np.ndarray, "tag tag"]:
    """Which BIOES tag may follow which: [from, to]. A sentence begins and ends as if O stood before and behind it."""
    parts = [split_tag(tag) for tag in tags]
    inside_Y = np.array([letter in "BI" for letter, _ in parts])
    continues_Y = np.array([letter in "IE" for letter, _ in parts])
    types_Y = np.unique([kind for _, kind in parts], return_inverse=True)[1]
    return (inside_Y[:, None] == continues_Y) & (~inside_Y[:, None] | (types_Y[:, None] == types_Y))


def guess_scheme(sequences: Iterable[Sequence[str]]) -> FileScheme:
    """The scheme of tag sequences, found by what only one scheme would write.

    E- or S- tags make it BIOES, L- or U- tags BILOU. Without them, a span that begins with I- makes it IOB1, unless
    some B- is where IOB1 writes I-: then it is IOB2 with faults. If all tags have another form it is flat, unless there
    is O and the other tags share one letter (T-POS, T-NEG): one such tag per token is `io`.

    Raises:
        ValueError: some tags have the form of spans and others do not, or some are of BIOES and others of BILOU.
    """
    letters: set[str] = set()
    others: set[str] = set()
    lasts: set[str] = set()
    begins_inside = begins_fresh = outside = False
    for tags in sequences:
        before, kind_before = "O", ""
        for tag in tags:
            if tag == OUTSIDE:
                before, kind_before, outside = "O", "", True
                continue
            if not has_span_form(tag):
                others.add(tag)
                continue
            if tag[0] == "L":
                lasts.add(tag)
            fresh = before == "O" or kind_before != tag[2:]
            begins_inside |= fresh and tag[0] == "I"
            begins_fresh |= fresh and tag[0] == "B"
            before, kind_before = tag[0], tag[2:]
            letters.add(before)
    if letters == {"L"}:
        # Nothing ends that did not begin: L- is the one letter of `io`, or of no scheme.
        letters, others = set(), others | lasts
    if others and letters & set("BI"):
        raise ValueError(f"some tags are spans (B-, I-) and others are not ({', '.join(sorted(others)[:5])})")
    if others or not letters:
        return "io" if outside and not letters and _share_a_letter(others) else "flat"
    if letters & set("ES") and letters & set("LU"):
        raise ValueError("some tags are of BIOES (E-, S-) and others of BILOU (L-, U-)")
    if letters & set("ESLU"):
        return "bioes" if letters & set("ES") else "bilou"
    return "iob1" if begins_inside and not begins_fresh else "iob2"


def has_span_form(tag: str, letters: str = "BIESLU") -> bool:
    """Whether a tag is one of the `letters`, by default of all span schemes, a dash and a type."""
    return len(tag) > 2 and tag[0] in letters and tag[1] == "-"


def not_of_scheme(tag: str, scheme: str) -> str:
    """What is wrong with a tag that is not of a scheme in `LETTERS`."""
    allowed = ", ".join(f"{letter}-TYPE" for letter in LETTERS[scheme])
    return f"tag {tag!r} is not of scheme {scheme} (O, {allowed})"


def _share_a_letter(tags: set[str]) -> bool:
    """Whether all `tags` are one and the same capital letter, a dash and a type."""
    formed = all(len(tag) > 2 and tag[0].isupper() and tag[1] == "-" for tag in tags)
    return formed and len({tag[0] for tag in tags}) == 1


def unknown_tags(tags: Iterable[str], scheme: ReadScheme) -> set[str]:
    """Those of `tags` that the `scheme` does not have. `auto`: where there are spans (B-, I-), the tags that have no
    span's form."""
    used = set(tags) - {OUTSIDE}
    letters = LETTERS.get(scheme)
    if scheme == "auto" and any(has_span_form(tag, "BI") for tag in used):
        letters = "BIESLU"
    return set() if letters is None else {tag for tag in used if not has_span_form(tag, letters)}
