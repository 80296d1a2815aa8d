"""Unusual spellings of span tags, different from `B-PER` and `O`.

    B_PER  B/PER  B:PER  B.PER  "B PER"   another sign between letter and type
    PER-B  PER_B  …                       the letter behind the type
    b-per  b_per  …                       small letters; types stay as they are
    B                                     a letter alone: spans of one type, `SPAN`
    o  0  _  -                            in the place of O, where no tag is O

One spelling is chosen for all tags of a language, as one scheme is; tags are converted to `B-PER` or `O`. If nothing
says that the files have spans, a spelling must fit almost every tag beside those of O; otherwise no tag is changed,
because tags of parts of speech look like some of these spellings too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

from raykd.forms.tag_schemes import LETTERS, SPAN_LETTERS, FileScheme, ReadScheme, has_span_form
from raykd.metrics.bioes import OUTSIDE

ONE_TYPE = "SPAN"
"""Type of spans whose tags name no type."""
NESTED_SEPARATOR = "|"
"""Sign between the labels of a word in several nested spans: `B-ORG|B-LOC`."""
MIN_FITTING_SHARE = 0.98
"""Share of the words in spans whose tags a spelling must fit; real files have some faulty tags."""
_SEPARATORS = "-_/:. "
_OUTSIDES = ("o", "0", "_", "-")
_PLAIN = "B-PER"


@dataclass(frozen=True)
class Spelling:
    """The spelling of a language's tags."""

    example: str = _PLAIN
    """`B-PER` in this spelling."""
    pattern: str = f"(?P<letter>[{SPAN_LETTERS}])-(?P<type>.+)"
    """Regular expression for the tags of spans."""
    outside: str = OUTSIDE
    """Tag of a word outside of all spans."""
    spaces: bool = False
    """True if some tags have white space around them."""

    def fits(self, tag: str) -> bool:
        """Return True if a tag, without white space around it, has this spelling."""
        return all(map(self._is_label, self._pieces(tag)))

    def read(self, tag: str) -> str | None:
        """Return a tag as `B-PER` or `O`, or None for a tag of another spelling. The usual spelling changes no tag."""
        tag = (tag.strip() or tag) if self.spaces else tag
        if tag == self.outside:
            return OUTSIDE
        if self.example == _PLAIN:
            return tag
        return NESTED_SEPARATOR.join(map(self._read_one, self._pieces(tag))) if self.fits(tag) else None

    def _pieces(self, tag: str) -> list[str]:
        """The labels of a tag: several only if each of them is a tag."""
        pieces = tag.split(NESTED_SEPARATOR)
        return pieces if all(map(self._is_label, pieces)) else [tag]

    def _is_label(self, piece: str) -> bool:
        return piece == self.outside or _compiled(self.pattern).fullmatch(piece) is not None

    def _read_one(self, piece: str) -> str:
        match = _compiled(self.pattern).fullmatch(piece)
        return OUTSIDE if match is None else f"{match['letter'].upper()}-{match['type'] or ONE_TYPE}"

    def describe(self) -> str:
        """Return a description of the changes to tags; empty without changes."""
        changes = []
        if self.example != _PLAIN:
            changes.append(f"tags as {self.example} are read as {self._read_one(self.example)}")
        if self.outside != OUTSIDE:
            changes.append(f"{self.outside} is read as {OUTSIDE}")
        if self.spaces:
            changes.append("white space around tags is left out")
        return ", ".join(changes)


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _spellings(letters: str) -> Iterator[Spelling]:
    """All spellings with `letters`, the usual ones first."""
    for cased_letters in (letters, letters.lower()):
        letter, kind = ("B", "PER") if cased_letters == letters else ("b", "per")
        for sign in _SEPARATORS:
            between = re.escape(sign)
            yield Spelling(f"{letter}{sign}{kind}", f"(?P<letter>[{cased_letters}]){between}(?P<type>.+)")
            yield Spelling(f"{kind}{sign}{letter}", f"(?P<type>.+){between}(?P<letter>[{cased_letters}])")
        yield Spelling(letter, f"(?P<letter>[{cased_letters}])-?(?P<type>)")


def find_spelling(counts: Mapping[str, int], scheme: ReadScheme) -> Spelling:
    """Find the spelling of a language's tags.

    Args:
        counts: Tag → number of words.
        scheme: Scheme of the files, or `auto`.
    """
    if scheme not in get_args(FileScheme):
        return Spelling()
    spaces = any(tag != tag.strip() for tag in counts)
    if scheme == "flat":
        return Spelling(spaces=spaces)
    stripped = Counter[str]()
    for tag, count in counts.items():
        stripped[tag.strip()] += count
    outside = outside_tag(stripped)
    spans = {tag: count for tag, count in stripped.items() if tag != outside}
    span_spelling = Spelling() if scheme == "io" else _span_spelling(spans, scheme, outside is not None)
    if outside is None or (scheme == "auto" and not _shows_spans(span_spelling, spans)):
        outside = OUTSIDE
    return replace(span_spelling, outside=outside, spaces=spaces)


def outside_tag(counts: Mapping[str, int]) -> str | None:
    """Return the tag of words outside of all spans: O, or the most frequent of its substitutes; None without either.

    Args:
        counts: Tag → number of words.
    """
    if OUTSIDE in counts:
        return OUTSIDE
    return max((tag for tag in _OUTSIDES if tag in counts), key=counts.__getitem__, default=None)


def letters_read_as_types(counts: Mapping[str, int]) -> str | None:
    """Return a tag that shows that files read as `io` are in a scheme with letters; None if no tag does.

    Tags with both B and I show it: in `io` all tags share one letter.

    Args:
        counts: Tag → number of words.
    """
    spelling = find_spelling(counts, "auto")
    spans = {tag: name for tag in counts if (name := spelling.read(tag)) and has_span_form(name)}
    if not {"B", "I"} <= {name[0] for name in spans.values()}:
        return None
    return next(tag for tag, name in spans.items() if name[0] == "B")


def _span_spelling(spans: Mapping[str, int], scheme: ReadScheme, outside: bool) -> Spelling:
    """The best fitting spelling by words; the usual one if none fits almost all, or if it is not sure."""
    auto = scheme == "auto"
    words = sum(spans.values())
    best, most_words = Spelling(), 0
    for spelling in _spellings(SPAN_LETTERS if auto else LETTERS[scheme]):
        fitting = sum(count for tag, count in spans.items() if spelling.fits(tag))
        if fitting > most_words:
            best, most_words = spelling, fitting
    if best.example == _PLAIN or most_words < MIN_FITTING_SHARE * words:
        return Spelling()
    return best if not auto or _is_sure(best, spans, outside) else Spelling()


def _is_sure(spelling: Spelling, spans: Mapping[str, int], outside: bool) -> bool:
    """True if the letters surely mark spans: some words are outside of spans, or letters stand alone."""
    letters = _letters(spelling, spans)
    # Letters alone may have no O: each word of segmented Chinese text is a span of letters.
    if spelling.example.upper() == "B":
        return "B" in letters and bool(letters & set("IME"))
    return outside and bool(letters & set("BI"))


def _shows_spans(spelling: Spelling, spans: Mapping[str, int]) -> bool:
    """True if almost all tags are those of spans, O aside."""
    fitting = sum(count for tag, count in spans.items() if spelling.fits(tag))
    return fitting >= MIN_FITTING_SHARE * sum(spans.values()) and bool(_letters(spelling, spans) & set("BI"))


def _letters(spelling: Spelling, spans: Mapping[str, int]) -> set[str]:
    read = (spelling.read(tag) for tag in spans if spelling.fits(tag))
    return {tag[0] for tag in read if tag}
