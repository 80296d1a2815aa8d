"""Tag schemes: how files write spans. Inside, spans are BIOES.

The schemes, on the spans [0, 2) PER, [2, 3) PER, [4, 5) LOC of five tokens:

    bioes   B-PER E-PER S-PER O S-LOC     also called IOBES
    bilou   B-PER L-PER U-PER O U-LOC     the same with other letters: L for E, U for S (BIOUL)
    bmes    B-PER E-PER S-PER O S-LOC     the same with M for I, which stands in spans of three words and more
    bmewo   B-PER E-PER W-PER O W-LOC     the same with M for I, W for S
    iob2    B-PER I-PER B-PER O B-LOC     every span begins with B
    iob1    I-PER I-PER B-PER O I-LOC     B only where a span touches an earlier one of its type (CoNLL-2003)
    ioe2    I-PER E-PER E-PER O E-LOC     every span ends with E
    ioe1    I-PER E-PER I-PER O I-LOC     E only where a span touches a later one of its type
    io      T-PER T-PER T-PER O T-LOC     one tag per token; neighbours with one tag are one span (SemEval-2016)

All but the last are equivalent. Conversion is lossless: `from_bioes(to_bioes(tags, s)[0], s) == tags` for every
valid sequence of scheme `s`. An invalid sequence is read as conlleval reads it (a tag that cannot continue a span
begins a new one), and every tag that would be written otherwise counts as one repair. `io` cannot separate
touching spans of one type: they become one. Its types are whole tags (`T-POS`, not `POS`), so that the tags can be
written again. Tags that are spelled otherwise than `B-PER` and `O` are first brought to this form (`tag_spellings.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from raykd.metrics.bioes import OUTSIDE, Span, read_spans, split_tag

if TYPE_CHECKING:
    from jaxtyping import Bool

SpanScheme = Literal["iob1", "iob2", "ioe1", "ioe2", "bioes", "bilou", "bmes", "bmewo", "io"]
FileScheme = Literal[SpanScheme, "flat", "auto"]
ReadScheme = Literal[FileScheme, "utterance", "parse"]
"""Those of files, and what some sources make of them."""

LETTERS: Mapping[str, str] = MappingProxyType(
    {
        "iob1": "BI", "iob2": "BI", "ioe1": "IE", "ioe2": "IE", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES",
        "bmewo": "BMEW", "utterance": "BI",
    }
)  # fmt: skip
"""Scheme → the letters of its tags, where a tag is a letter, a dash and a type."""
SPAN_LETTERS = "BIESLUMW"
"""The letters of all of them."""
_MARK_BOTH_ENDS = ("bioes", "bilou", "bmes", "bmewo")
"""The schemes that mark both ends of a span."""
_LETTERS_BY_BIOES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"bilou": {"E": "L", "S": "U"}, "bmes": {"I": "M"}, "bmewo": {"I": "M", "S": "W"}}
)
"""Scheme → its letters in the place of those of BIOES."""


class MixedTagsError(ValueError):
    """Tags of several schemes, or spans beside other tags; `odd` are those of the fewer words."""

    def __init__(self, problem: str, odd: frozenset[str]):
        super().__init__(problem)
        self.odd = odd


def _read_runs(tags: Sequence[str]) -> list[Span]:
    """The spans of a sequence in `io`: runs of one tag."""
    ends = list(accumulate(len(list(run)) for _, run in groupby(tags)))
    spans = zip([0, *ends], ends, (tag for tag, _ in groupby(tags)), strict=False)
    return [span for span in spans if span[2] != OUTSIDE]


def write_spans(spans: Iterable[Span], length: int, scheme: SpanScheme) -> list[str]:
    """Tags of `scheme` for ordered, non-overlapping spans (end exclusive) over `length` tokens."""
    if scheme in ("ioe1", "ioe2"):
        # The mirror image of IOB: E ends a span as B begins it.
        mirrored = [(length - end, length - start, kind) for start, end, kind in reversed([*spans])]
        tags = write_spans(mirrored, length, "iob1" if scheme == "ioe1" else "iob2")
        return _with_letters(reversed(tags), {"B": "E"})
    tags = [OUTSIDE] * length
    last_end, last_kind = -1, ""
    for start, end, kind in spans:
        if scheme == "io":
            tags[start:end] = [kind] * (end - start)
            continue
        touches = start == last_end and kind == last_kind
        first = "I-" if scheme == "iob1" and not touches else "B-"
        tags[start:end] = [first + kind] + ["I-" + kind] * (end - start - 1)
        if scheme in _MARK_BOTH_ENDS:
            tags[end - 1] = ("S-" if end - start == 1 else "E-") + kind
        last_end, last_kind = end, kind
    return _with_letters(tags, _LETTERS_BY_BIOES[scheme]) if scheme in _LETTERS_BY_BIOES else tags


def _with_letters(tags: Iterable[str], letters: Mapping[str, str]) -> list[str]:
    return [letters.get(tag[0], tag[0]) + tag[1:] for tag in tags]


def with_bioes_letters(tags: Iterable[str], scheme: SpanScheme) -> list[str]:
    """Tags of `scheme` with the letters that BIOES has in their place; they need not be valid BIOES."""
    renamed = {other: letter for letter, other in _LETTERS_BY_BIOES.get(scheme, {}).items()}
    return _with_letters(tags, renamed) if renamed else [*tags]


def to_bioes(tags: Sequence[str], scheme: SpanScheme) -> tuple[list[str], int]:
    """`tags` of a file's `scheme` in BIOES, and how many tags were not valid in `scheme` as they stood.

    Raises:
        ValueError: a tag does not belong to `scheme` at all.
    """
    if scheme == "io":
        return write_spans(_read_runs(tags), len(tags), "bioes"), 0
    for tag in tags:
        if tag != OUTSIDE and not has_span_form(tag, LETTERS[scheme]):
            raise ValueError(scheme_problem(tag, scheme))
    spans = read_spans(with_bioes_letters(tags, scheme))
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


def span_types(tags: Iterable[str], scheme: SpanScheme) -> set[str]:
    """The span types of tags as a file of `scheme` has them: in `io` a tag is the type of its span; elsewhere the type
    is behind the letter.
    """
    used = set(tags) - {OUTSIDE}
    return used if scheme == "io" else {tag[2:] for tag in used if tag[1:2] == "-"} - {""}


def check_bioes(tags: Iterable[str], whole: tuple[str, ...]) -> None:
    """Raise ValueError where some `tags` of a `whole` set lack O or one of the four tags of a span type."""
    own = set(tags)
    types = {tag[2:] for tag in own if has_span_form(tag, "BIES")}
    if own != set(bioes_tags(types)):
        raise ValueError(f"a BIOES tag set has O and B-, I-, E-, S- of every type; got {whole}")


def bracket_spans(tokens: Sequence[str], tags: Sequence[str], *, words: int) -> str:
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

    The letters of the tags decide; of tags with I- and B- alone, or I- and E- alone, what stands at the ends of spans:
    a span that begins with I- makes it IOB1, unless some B- is where IOB1 writes I-: then it is IOB2 with faults; and
    E- alike. If all tags have another form it is flat, unless there is O and the other tags share one letter (T-POS,
    T-NEG): one such tag per token is `io`.

    Raises:
        MixedTagsError: some tags have the form of spans and others do not, or they have letters of several schemes.
    """
    counts = Counter[str]()
    firsts: set[str] = set()
    lasts: set[str] = set()
    for tags in sequences:
        counts.update(tags)
        parts = [("", ""), *(_letter_and_type(tag) for tag in tags), ("", "")]
        for (letter_before, type_before), (letter, kind) in pairwise(parts):
            if type_before != kind:
                lasts.add(letter_before)
                firsts.add(letter)
    return _guess(counts, firsts, lasts)


def _letter_and_type(tag: str) -> tuple[str, str]:
    return (tag[0], tag[2:]) if has_span_form(tag) else ("", "")


def _guess(counts: Mapping[str, int], firsts: set[str], lasts: set[str]) -> FileScheme:
    """The scheme by the tags and the letters that stand at the beginning and at the end of spans."""
    problem, odd = _odd_tags(counts)
    if odd:
        raise MixedTagsError(problem, frozenset(odd))
    letters = _letters(counts)
    others = {tag for tag in counts if tag != OUTSIDE and not (letters and has_span_form(tag))}
    if others or not letters:
        return "io" if OUTSIDE in counts and not letters and _share_a_letter(others) else "flat"
    if letters <= set("BI"):
        return "iob1" if "I" in firsts and "B" not in firsts else "iob2"
    if letters <= set("IE"):
        return "ioe1" if "I" in lasts and "E" not in lasts else "ioe2"
    return next(scheme for scheme in _MARK_BOTH_ENDS if letters <= set(LETTERS[scheme]))


def _letters(tags: Iterable[str]) -> set[str]:
    """The letters of the tags that have the form of spans. L-, M- and W- alone are none: nothing ends that did not
    begin, so they are letters of `io`, or of no scheme.
    """
    letters = {tag[0] for tag in tags if has_span_form(tag)}
    return set() if letters <= set("LMW") else letters


def _odd_tags(counts: Mapping[str, int]) -> tuple[str, set[str]]:
    """What is wrong with tags together, and which of them have another form than the others; of those that have
    letters of several schemes the ones that are not of the scheme of most words.
    """
    letters = _letters(counts)
    others = {tag for tag in counts if tag != OUTSIDE and not has_span_form(tag)}
    if others and letters & set("BI"):
        return f"some tags are spans (B-, I-) and others are not ({', '.join(sorted(others)[:5])})", others
    if others or any(letters <= set(own) for own in LETTERS.values()):
        return "", set()

    def words(scheme: str) -> int:
        return sum(count for tag, count in counts.items() if tag[0] in LETTERS[scheme])

    best = max(LETTERS, key=words)
    odd = {tag for tag in counts if tag != OUTSIDE and tag[0] not in LETTERS[best]}
    most, some = (", ".join(f"{letter}-" for letter in LETTERS[best])), ", ".join(sorted(odd)[:5])
    return f"most tags are of {best.upper()} ({most}) and others are not ({some})", odd


def has_letters(scheme: ReadScheme) -> bool:
    """Whether the tags that files have of a scheme are a letter and a type; `auto`: they may be."""
    return scheme == "auto" or (scheme in get_args(SpanScheme) and scheme in LETTERS)


def fitting_scheme(tags: Iterable[str]) -> str | None:
    """The first scheme of spans that has all of these tags; None where none has."""
    used = {tag for tag in tags if tag != OUTSIDE}
    fitting = (name for name in get_args(SpanScheme) if name in LETTERS)
    return next(
        (name for name in fitting if used and all(has_span_form(tag, LETTERS[name]) for tag in used)), None
    )


def has_span_form(tag: str, letters: str = SPAN_LETTERS) -> bool:
    """Whether a tag is one of the `letters`, by default of all span schemes, a dash and a type."""
    return len(tag) > 2 and tag[0] in letters and tag[1] == "-"


def scheme_problem(tag: str, scheme: str) -> str:
    """What is wrong with a tag that is not of a scheme in `LETTERS`."""
    allowed = ", ".join(f"{letter}-TYPE" for letter in LETTERS[scheme])
    return f"tag {tag!r} is not of scheme {scheme} (O, {allowed})"


def _share_a_letter(tags: set[str]) -> bool:
    """Whether all `tags` are one and the same capital letter, a dash and a type."""
    formed = all(len(tag) > 2 and tag[0].isupper() and tag[1] == "-" for tag in tags)
    return formed and len({tag[0] for tag in tags}) == 1


def unknown_tags(tags: Iterable[str], scheme: ReadScheme) -> set[str]:
    """Those of `tags` that the `scheme` does not have; of `auto` those that are of another form than most. Where
    `tags` is a mapping its values say how many words have each of them.
    """
    if scheme == "auto":
        return _odd_tags(Counter(tags))[1]
    letters = LETTERS.get(scheme)
    used = set(tags) - {OUTSIDE}
    return set() if letters is None else {tag for tag in used if not has_span_form(tag, letters)}
