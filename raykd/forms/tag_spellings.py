"""How files spell tags of spans, where not as `B-PER` and `O`.

    B_PER  B/PER  B:PER  B.PER  "B PER"   another sign between letter and type
    PER-B  PER_B  …                       the letter behind the type
    b-per  b_per  …                       small letters; types stay as they are
    B                                     a letter alone: spans of one type, `SPAN`
    o  0  _  -                            in the place of O, where no tag is O

A spelling is decided once for all tags of a language, like their scheme, and brings each to `B-PER` or `O`. Where the
files do not say that they have spans, it must fit almost every tag beside those of O, or no tag is changed: tags of
parts of speech look like some of these too.
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
"""The type of spans whose tags name none."""
NESTED_SEPARATOR = "|"
"""The sign between the labels of a word that is in several spans, one inside the other: `B-ORG|B-LOC`."""
MIN_FITTING_SHARE = 0.98
"""The share of the words in spans whose tags a spelling must fit: some tags of real files are faulty."""
_SEPARATORS = "-_/:. "
_OUTSIDES = ("o", "0", "_", "-")
_PLAIN = "B-PER"


@dataclass(frozen=True)
class Spelling:
    """How the tags of a language are spelled."""

    example: str = _PLAIN
    """`B-PER` in this spelling."""
    pattern: str = f"(?P<letter>[{SPAN_LETTERS}])-(?P<type>.+)"
    """Matches the tags of spans."""
    outside: str = OUTSIDE
    """The tag of a word in no span."""
    spaces: bool = False
    """Whether some tags have white space around them."""

    def fits(self, tag: str) -> bool:
        """Whether a tag, without white space around it, is a span's of this spelling."""
        return all(
            piece == self.outside or _compiled(self.pattern).fullmatch(piece) for piece in self._pieces(tag)
        )

    def read(self, tag: str) -> str | None:
        """A tag as `B-PER` or `O`; None where it is not of this spelling. The usual one leaves tags as they are."""
        tag = (tag.strip() or tag) if self.spaces else tag
        if tag == self.outside:
            return OUTSIDE
        if self.example == _PLAIN:
            return tag
        return NESTED_SEPARATOR.join(map(self._read_one, self._pieces(tag))) if self.fits(tag) else None

    def _pieces(self, tag: str) -> list[str]:
        """The labels of a tag: one, unless each of several is a tag itself."""
        pieces = tag.split(NESTED_SEPARATOR)
        nested = all(piece == self.outside or _compiled(self.pattern).fullmatch(piece) for piece in pieces)
        return pieces if nested else [tag]

    def _read_one(self, piece: str) -> str:
        found = _compiled(self.pattern).fullmatch(piece)
        return OUTSIDE if found is None else f"{found['letter'].upper()}-{found['type'] or ONE_TYPE}"

    def describe(self) -> str:
        """What is read as something else; empty where nothing is."""
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
    """Every spelling of tags of these letters, the usual ones first."""
    for own in (letters, letters.lower()):
        letter, kind = ("B", "PER") if own == letters else ("b", "per")
        for sign in _SEPARATORS:
            between = re.escape(sign)
            yield Spelling(f"{letter}{sign}{kind}", f"(?P<letter>[{own}]){between}(?P<type>.+)")
            yield Spelling(f"{kind}{sign}{letter}", f"(?P<type>.+){between}(?P<letter>[{own}])")
        yield Spelling(letter, f"(?P<letter>[{own}])-?(?P<type>)")


def find_spelling(counts: Mapping[str, int], scheme: ReadScheme) -> Spelling:
    """The spelling of a language's tags.

    Args:
        counts: tag → its words.
        scheme: that of the files, or `auto`.
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
    found = Spelling() if scheme == "io" else _span_spelling(spans, scheme, outside is not None)
    if outside is None or (scheme == "auto" and not _shows_spans(found, spans)):
        outside = OUTSIDE
    return replace(found, outside=outside, spaces=spaces)


def outside_tag(counts: Mapping[str, int]) -> str | None:
    """The tag of words in no span: O, or the most frequent of what stands in its place."""
    if OUTSIDE in counts:
        return OUTSIDE
    return max((tag for tag in _OUTSIDES if tag in counts), key=counts.__getitem__, default=None)


def letters_read_as_types(counts: Mapping[str, int]) -> str | None:
    """A tag with a letter of spans, of tags that have both B and I: no scheme without letters wrote them.

    Args:
        counts: tag → its words.
    """
    spelling = find_spelling(counts, "auto")
    spans = {tag: name for tag in counts if (name := spelling.read(tag)) and has_span_form(name)}
    if not {"B", "I"} <= {name[0] for name in spans.values()}:
        return None
    return next(tag for tag, name in spans.items() if name[0] == "B")


def _span_spelling(spans: Mapping[str, int], scheme: ReadScheme, outside: bool) -> Spelling:
    """The spelling that fits the most words; the usual one where none fits almost all, or where tags of another one
    are not sure to be those of spans. `outside`: whether some words are in no span.
    """
    auto = scheme == "auto"
    words = sum(spans.values())
    best, most = Spelling(), 0
    for spelling in _spellings(SPAN_LETTERS if auto else LETTERS[scheme]):
        fitting = sum(count for tag, count in spans.items() if spelling.fits(tag))
        if fitting > most:
            best, most = spelling, fitting
    if best.example == _PLAIN or most < MIN_FITTING_SHARE * words:
        return Spelling()
    return best if not auto or _is_sure(best, spans, outside) else Spelling()


def _is_sure(spelling: Spelling, spans: Mapping[str, int], outside: bool) -> bool:
    """Whether tags that nobody called spans are some: they have letters of spans, and not every word is in one. Letters
    alone may have no O: each word of Chinese text is a span of letters.
    """
    letters = _letters(spelling, spans)
    if spelling.example.upper() == "B":
        return "B" in letters and bool(letters & set("IME"))
    return outside and bool(letters & set("BI"))


def _shows_spans(spelling: Spelling, spans: Mapping[str, int]) -> bool:
    """Whether almost all tags beside that of O are those of spans."""
    fitting = sum(count for tag, count in spans.items() if spelling.fits(tag))
    return fitting >= MIN_FITTING_SHARE * sum(spans.values()) and bool(_letters(spelling, spans) & set("BI"))


def _letters(spelling: Spelling, spans: Mapping[str, int]) -> set[str]:
    read = (spelling.read(tag) for tag in spans if spelling.fits(tag))
    return {tag[0] for tag in read if tag}
