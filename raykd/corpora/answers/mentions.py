"""The places of names that an annotator lists without offsets.

Language models list names by type, and a name that occurs twice once or twice; some names they invent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from raykd.corpora.span_alignment import CharacterSpan

Repeat = Literal["first", "all"]


class Mention(NamedTuple):
    """A name and its label."""

    text: str
    label: str


class PlacedMentions(NamedTuple):
    """Mentions with their places, and those that are not in the text."""

    spans: list[CharacterSpan]
    invented: list[Mention]


def place_mentions(
    text: str, words: Sequence[tuple[int, int]], mentions: Sequence[Mention], *, repeat: Repeat
) -> PlacedMentions:
    """Find a place for each mention: the next free one in the text, whole words before parts of words.

    Longer mentions come first, as shorter ones may be inside of them. White space and upper case may differ where
    nothing matches exactly.

    Args:
        text: The text.
        words: Start and end of each word in the text, for scripts without spaces between words.
        mentions: Names as the annotator lists them.
        repeat: `all`: a name's label holds for all its other free places too, at whole words. `first`: a mention has
            one place.
    """
    places = _Places(text, frozenset(start for start, _ in words), frozenset(end for _, end in words))
    occupied = [False] * len(text)
    spans, invented = list[CharacterSpan](), list[Mention]()
    for mention in sorted(mentions, key=lambda mention: -len(mention.text)):
        place = next((place for place in places.find(mention.text) if not any(occupied[slice(*place)])), None)
        if place is None:
            # A name listed more often than it occurs is not invented.
            if not places.find(mention.text):
                invented.append(mention)
            continue
        occupied[slice(*place)] = [True] * (place[1] - place[0])
        spans.append(CharacterSpan(*place, mention.label))
    if repeat == "all":
        for mention in sorted(dict.fromkeys(mentions), key=lambda mention: -len(mention.text)):
            for first, behind in places.find(mention.text, whole_words=True):
                if not any(occupied[first:behind]):
                    occupied[first:behind] = [True] * (behind - first)
                    spans.append(CharacterSpan(first, behind, mention.label))
    return PlacedMentions(sorted(spans), invented)


class _Places(NamedTuple):
    """A text with the starts and ends of its words."""

    text: str
    starts: frozenset[int]
    ends: frozenset[int]

    def find(self, name: str, *, whole_words: bool = False) -> list[tuple[int, int]]:
        """Places of a name, whole words first; as it is written, or in any case where it is written nowhere."""
        pattern = r"\s+".join(map(re.escape, name.split()))
        for flags in (0, re.IGNORECASE) if pattern else ():
            places = [match.span() for match in re.finditer(pattern, self.text, flags)]
            if places:
                whole = [place for place in places if self._is_whole(*place)]
                return whole if whole_words else [*dict.fromkeys([*whole, *places])]
        return []

    def _is_whole(self, start: int, end: int) -> bool:
        begins = start in self.starts or not self.text[start - 1 : start].isalnum()
        return begins and (end in self.ends or not self.text[end : end + 1].isalnum())
