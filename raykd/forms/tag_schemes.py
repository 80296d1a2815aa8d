"""Tag schemes: the ways in which files write spans. Inside, spans are BIOES.

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
valid sequence of scheme `s`. An invalid sequence is read as conlleval reads it: a tag that cannot continue a span
begins a new one. Every tag that would be written differently counts as one repair. `io` cannot separate touching
spans of one type: they become one. Its types are whole tags (`T-POS`, not `POS`), so that the tags can be written
again. Tags spelled differently from `B-PER` and `O` are first brought to this form (`tag_spellings.py`).
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
"""Schemes of files, and of the tags that some sources produce."""

LETTERS: Mapping[str, str] = MappingProxyType(
    {
        "iob1": "BI", "iob2": "BI", "ioe1": "IE", "ioe2": "IE", "bioes": "BIES", "bilou": "BILU", "bmes": "BMES",
        "bmewo": "BMEW", "utterance": "BI",
    }
)  # fmt: skip
"""Scheme → the letters of its tags, for schemes whose tags are a letter, a dash and a type."""
SPAN_LETTERS = "BIESLUMW"
"""The letters of all schemes."""
_MARK_BOTH_ENDS = ("bioes", "bilou", "bmes", "bmewo")
"""Schemes that mark both ends of a span."""
_LETTERS_BY_BIOES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"bilou": {"E": "L", "S": "U"}, "bmes": {"I": "M"}, "bmewo": {"I": "M", "S": "W"}}
)
"""Scheme → letter of BIOES → the letter that the scheme writes instead."""


class MixedTagsError(ValueError):
    """Tags of several schemes, or spans mixed with other tags.

    Attributes:
        odd: Tags of the smaller group, by words.
    """

    def __init__(self, problem: str, odd: frozenset[str]):
        super().__init__(problem)
        self.odd = odd


def _read_runs(tags: Sequence[str]) -> list[Span]:
    """The spans of a sequence in `io`: runs of one tag."""
    ends = list(accumulate(len(list(run)) for _, run in groupby(tags)))
    spans = zip([0, *ends], ends, (tag for tag, _ in groupby(tags)), strict=False)
    return [span for span in spans if span[2] != OUTSIDE]


def write_spans(spans: Iterable[Span], length: int, scheme: SpanScheme) -> list[str]:
    """Write spans as tags of a scheme.

    Args:
        spans: Ordered spans that do not overlap; the end is exclusive.
        length: Number of tokens.
        scheme: Scheme of the tags.
    """
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
    """Replace the letters of `scheme` by those of BIOES; the result need not be valid BIOES.

    Args:
        tags: Tags in the scheme.
        scheme: Their scheme.
    """
    bioes_letters = {
        scheme_letter: letter for letter, scheme_letter in _LETTERS_BY_BIOES.get(scheme, {}).items()
    }
    return _with_letters(tags, bioes_letters) if bioes_letters else [*tags]


def to_bioes(tags: Sequence[str], scheme: SpanScheme) -> tuple[list[str], int]:
    """Convert the tags of a file to BIOES.

    Args:
        tags: Tags of one sentence.
        scheme: Scheme of the file.

    Returns:
        The tags in BIOES, and the number of tags that were invalid in `scheme`.

    Raises:
        ValueError: A tag does not belong to `scheme` at all.
    """
    if scheme == "io":
        return write_spans(_read_runs(tags), len(tags), "bioes"), 0
    for tag in tags:
        if tag != OUTSIDE and not has_span_form(tag, LETTERS[scheme]):
            raise ValueError(scheme_problem(tag, scheme))
    spans = read_spans(with_bioes_letters(tags, scheme))
    written = write_spans(spans, len(tags), scheme)
    repairs = sum(tag != valid_tag for tag, valid_tag in zip(tags, written, strict=True))
    return write_spans(spans, len(tags), "bioes"), repairs


def from_bioes(tags: Sequence[str], scheme: SpanScheme) -> list[str]:
    """Convert BIOES tags to a scheme; the inverse of `to_bioes` on valid sequences.

    Args:
        tags: Valid BIOES tags of one sentence.
        scheme: Scheme of the result.
    """
    return write_spans(read_spans(tags), len(tags), scheme)


def bioes_tags(types: Iterable[str]) -> Iterator[str]:
    """Return O, and the four tags of each span type."""
    yield OUTSIDE
    for kind in types:
        yield from (f"{letter}-{kind}" for letter in "BIES")


def span_types(tags: Iterable[str], scheme: SpanScheme) -> set[str]:
    """Return the span types of a file's tags.

    In `io` the whole tag is the type; in any other scheme the type follows the letter.

    Args:
        tags: Tags of the file.
        scheme: Scheme of the file.
    """
    used = set(tags) - {OUTSIDE}
    return used if scheme == "io" else {tag[2:] for tag in used if tag[1:2] == "-"} - {""}


def check_bioes(tags: Iterable[str], whole: tuple[str, ...]) -> None:
    """Refuse tags other than O and the four BIOES tags of each of their span types.

    Args:
        tags: Tags of spans in a tag set.
        whole: The whole tag set, for the message.

    Raises:
        ValueError: A tag is missing, or is not BIOES.
    """
    distinct_tags = set(tags)
    types = {tag[2:] for tag in distinct_tags if has_span_form(tag, "BIES")}
    if distinct_tags != set(bioes_tags(types)):
        raise ValueError(f"a BIOES tag set has O and B-, I-, E-, S- of every type; got {whole}")


def counted_type(tag: str) -> str | None:
    """Return the type of the span that a BIOES tag is counted for: of B and S, since every span has one of them."""
    return tag[2:] if tag != OUTSIDE and tag[0] in "BS" else None


def bracket_spans(tokens: Sequence[str], tags: Sequence[str], *, words: int) -> str:
    """Return the first `words` of a sentence with its spans in brackets: `[Angela Merkel]PER besucht …`."""
    cells = list(tokens)
    for start, end, label in read_spans(tags):
        cells[start] = f"[{cells[start]}"
        cells[end - 1] = f"{cells[end - 1]}]{label}"
    return " ".join(cells[:words]) + (" …" if len(tokens) > words else "")


def allowed_in_bioes(tags: Sequence[str]) -> Bool[np.ndarray, "tag tag"]:
    """Return the legal transitions between BIOES tags, bool [from, to].

    A sentence begins and ends as if O stood before and after it.
    """
    parts = [split_tag(tag) for tag in tags]
    inside_Y = np.array([letter in "BI" for letter, _ in parts])
    continues_Y = np.array([letter in "IE" for letter, _ in parts])
    types_Y = np.unique([kind for _, kind in parts], return_inverse=True)[1]
    return (inside_Y[:, None] == continues_Y) & (~inside_Y[:, None] | (types_Y[:, None] == types_Y))


def guess_scheme(sequences: Iterable[Sequence[str]]) -> FileScheme:
    """Guess the scheme of tag sequences.

    The letters of the tags decide between most schemes. With I- and B- alone, the first letters of spans decide: a
    span that begins with I- means IOB1, unless some B- stands where IOB1 writes I-; then it is IOB2 with faults. With
    I- and E- alone, the last letters decide in the same way. If no tag has the form of a span, the scheme is flat. The
    exception is `io`: there is O, and all other tags share one letter (T-POS, T-NEG).

    Args:
        sequences: Tags of each sentence.

    Raises:
        MixedTagsError: Some tags have the form of spans and others do not, or their letters are of several schemes.
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
    """The scheme by the tags, and by the letters at the beginnings and ends of spans."""
    problem, odd = _odd_tags(counts)
    if odd:
        raise MixedTagsError(problem, frozenset(odd))
    letters = _letters(counts)
    other_tags = {tag for tag in counts if tag != OUTSIDE and not (letters and has_span_form(tag))}
    if other_tags or not letters:
        return "io" if OUTSIDE in counts and not letters and _share_a_letter(other_tags) else "flat"
    if letters <= set("BI"):
        return "iob1" if "I" in firsts and "B" not in firsts else "iob2"
    if letters <= set("IE"):
        return "ioe1" if "I" in lasts and "E" not in lasts else "ioe2"
    return next(scheme for scheme in _MARK_BOTH_ENDS if letters <= set(LETTERS[scheme]))


def _letters(tags: Iterable[str]) -> set[str]:
    """Letters of the tags in the form of spans. L-, M- and W- alone do not count: they only continue or end spans."""
    letters = {tag[0] for tag in tags if has_span_form(tag)}
    return set() if letters <= set("LMW") else letters


def _odd_tags(counts: Mapping[str, int]) -> tuple[str, set[str]]:
    """The problem with a mixture of tags, and the tags of the smaller group; empty where the tags fit together.

    Where letters of several schemes are mixed, the smaller group is the one on fewer words.
    """
    letters = _letters(counts)
    other_tags = {tag for tag in counts if tag != OUTSIDE and not has_span_form(tag)}
    if other_tags and letters & set("BI"):
        return (
            f"some tags are spans (B-, I-) and others are not ({', '.join(sorted(other_tags)[:5])})",
            other_tags,
        )
    if other_tags or any(letters <= set(scheme_letters) for scheme_letters in LETTERS.values()):
        return "", set()

    def words(scheme: str) -> int:
        return sum(count for tag, count in counts.items() if tag[0] in LETTERS[scheme])

    best = max(LETTERS, key=words)
    odd = {tag for tag in counts if tag != OUTSIDE and tag[0] not in LETTERS[best]}
    letter_list, examples = (", ".join(f"{letter}-" for letter in LETTERS[best])), ", ".join(sorted(odd)[:5])
    return f"most tags are of {best.upper()} ({letter_list}) and others are not ({examples})", odd


def has_letters(scheme: ReadScheme) -> bool:
    """Return True if tags of a scheme are, or with `auto` may be, a letter and a type.

    Args:
        scheme: Scheme of a file.
    """
    return scheme == "auto" or (scheme in get_args(SpanScheme) and scheme in LETTERS)


def fitting_scheme(tags: Iterable[str]) -> SpanScheme | None:
    """Return the first span scheme with all of the tags; None without one.

    Args:
        tags: Tags of a file.
    """
    used = {tag for tag in tags if tag != OUTSIDE}
    fitting = (name for name in get_args(SpanScheme) if name in LETTERS)
    return next(
        (name for name in fitting if used and all(has_span_form(tag, LETTERS[name]) for tag in used)), None
    )


def marks_both_ends(labels: Iterable[str]) -> bool:
    """Return True if labels of spans mark the first word and the last, as those of BIOES do.

    Args:
        labels: Labels of a model.
    """
    return fitting_scheme(label for label in labels if has_span_form(label)) in _MARK_BOTH_ENDS


def has_span_form(tag: str, letters: str = SPAN_LETTERS) -> bool:
    """Return True if a tag is a letter, a dash and a type.

    Args:
        tag: Tag of a word.
        letters: Letters that count; by default those of all span schemes.
    """
    return len(tag) > 2 and tag[0] in letters and tag[1] == "-"


def scheme_problem(tag: str, scheme: str) -> str:
    """Return the message for a tag outside a scheme.

    Args:
        tag: Tag of a file.
        scheme: Scheme in `LETTERS`.
    """
    allowed = ", ".join(f"{letter}-TYPE" for letter in LETTERS[scheme])
    return f"tag {tag!r} is not of scheme {scheme} (O, {allowed})"


def _share_a_letter(tags: set[str]) -> bool:
    """True if all tags are the same capital letter, a dash and a type."""
    formed = all(len(tag) > 2 and tag[0].isupper() and tag[1] == "-" for tag in tags)
    return formed and len({tag[0] for tag in tags}) == 1


def unknown_tags(tags: Iterable[str], scheme: ReadScheme) -> set[str]:
    """Return the tags outside a scheme.

    Args:
        tags: Tags of a file. The values of a mapping are the number of words with each tag.
        scheme: Scheme of the file. With `auto`, the tags that have another form than most are unknown.
    """
    if scheme == "auto":
        return _odd_tags(Counter(tags))[1]
    letters = LETTERS.get(scheme)
    used = set(tags) - {OUTSIDE}
    return set() if letters is None else {tag for tag in used if not has_span_form(tag, letters)}
