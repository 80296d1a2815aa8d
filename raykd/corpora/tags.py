"""Tag schemes and tag sets. Inside, spans are BIOES and everything else is flat, except utterances.

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

An utterance has one more word in front, which stands for the whole of it, and whose tag is its intent,
`intent:atis_flight`; the tags of its other words are spans, its slots: IOB2 in files, BIOES inside.

The tags of a sentence with a tree of intents and slots are not those of its words, but the steps that write the tree
(`semantic_trees.py`): `IN:GET_WEATHER SL:LOCATION @5 ] ]`. The scheme is `parse`; a tag set of it has no word's `@5`,
whose number is 5 behind its last tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, SupportsIndex

import numpy as np

from raykd.metrics.bioes import OUTSIDE, Span, read_spans, split_tag

if TYPE_CHECKING:
    from jaxtyping import Bool, Int, Int16

SpanScheme = Literal["iob1", "iob2", "bioes", "bilou", "io"]
FileScheme = Literal["iob1", "iob2", "bioes", "bilou", "io", "flat", "auto"]
ReadScheme = Literal[FileScheme, "utterance", "parse"]
"""Those of files, and what some sources make of them."""
INTENT = "intent:"
"""The beginning of the label of an utterance: the word in front of it has this label."""
CLOSE, WORD = "]", "@"
"""Steps of a tree: what closes the last bracket; in front of a word's place, from 0."""

LETTERS: Mapping[str, str] = MappingProxyType(
    {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bilou": "BILU", "utterance": "BI"}
)
"""Scheme → the letters of its tags, where a tag is a letter, a dash and a type."""
CONSTRAINED = ("bioes", "utterance")
"""The schemes in which some labels may not follow others."""
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


def is_intent(tag: str) -> bool:
    """Whether a tag of an utterance is its intent."""
    return tag.startswith(INTENT)


def to_bioes(tags: Sequence[str], scheme: SpanScheme | Literal["utterance"]) -> tuple[list[str], int]:
    """`tags` of a file's `scheme` in BIOES, and how many tags were not valid in `scheme` as they stood.

    Raises:
        ValueError: a tag does not belong to `scheme` at all.
    """
    if scheme == "utterance":
        slots, repairs = to_bioes(tags[1:], "iob2")
        return [*tags[:1], *slots], repairs
    if scheme == "io":
        return write_spans(_read_runs(tags), len(tags), "bioes"), 0
    for tag in tags:
        if tag != OUTSIDE and not has_span_form(tag, LETTERS[scheme]):
            raise ValueError(not_of_scheme(tag, scheme))
    spans = read_spans(_with_letters(tags, _AS_BIOES) if scheme == "bilou" else tags)
    written = write_spans(spans, len(tags), scheme)
    repairs = sum(tag != other for tag, other in zip(tags, written, strict=True))
    return write_spans(spans, len(tags), "bioes"), repairs


def from_bioes(tags: Sequence[str], scheme: SpanScheme | Literal["utterance"]) -> list[str]:
    """Valid BIOES `tags` in another scheme; the inverse of `to_bioes` on valid sequences."""
    if scheme == "utterance":
        return [*tags[:1], *from_bioes(tags[1:], "iob2")]
    return write_spans(read_spans(tags), len(tags), scheme)


@dataclass(frozen=True)
class TagSet:
    """The tags of a task in a fixed order; a tag's number is its place.

    Raises:
        ValueError: a tag occurs twice, a BIOES set or one of utterances lacks O or one of the four tags of a type, or
            one of utterances has no intent.
    """

    tags: tuple[str, ...]
    scheme: Literal["bioes", "flat", "utterance", "parse"]

    def __post_init__(self) -> None:
        if len(self._numbers) != len(self.tags):
            twice = sorted({tag for tag in self.tags if self.tags.count(tag) > 1})
            raise ValueError(f"tags occur twice: {', '.join(twice)}")
        slots = {tag for tag in self.tags if not self._is_intent(tag)}
        if self.scheme in ("bioes", "utterance") and slots != set(_bioes_tags(_types(slots))):
            raise ValueError(f"a BIOES tag set has O and B-, I-, E-, S- of every type; got {self.tags}")
        if self.scheme == "utterance" and len(slots) == len(self.tags):
            raise ValueError(f"a tag set of utterances has intents ({INTENT}NAME); got {self.tags}")

    @classmethod
    def of_types(cls, types: Iterable[str]) -> TagSet:
        """The BIOES tags over span types, in alphabetical order of the types, O first."""
        return cls(tuple(_bioes_tags(sorted(set(types)))), "bioes")

    @classmethod
    def flat(cls, tags: Iterable[str]) -> TagSet:
        """One tag per token without structure: O first where it occurs, then alphabetical order."""
        return cls(tuple(sorted(set(tags), key=lambda tag: (tag != OUTSIDE, tag))), "flat")

    @classmethod
    def utterances(cls, types: Iterable[str], intents: Iterable[str]) -> TagSet:
        """The tags of utterances: those of the span types, then the `intents`, which are tags, in alphabetical
        order."""
        return cls((*_bioes_tags(sorted(set(types))), *sorted(set(intents))), "utterance")

    @classmethod
    def steps(cls, steps: Iterable[str]) -> TagSet:
        """What opens and closes the brackets of trees, of some of their steps: what closes them first, then in
        alphabetical order."""
        opening = {step for step in steps if step != CLOSE and not step.startswith(WORD)}
        return cls((CLOSE, *sorted(opening)), "parse")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Span types (BIOES), of utterances their intents as well, what opens the brackets of trees, or the tags
        themselves (flat)."""
        if self.scheme == "flat":
            return self.tags
        if self.scheme == "parse":
            return tuple(tag for tag in self.tags if tag != CLOSE)
        return (*_types(self.tags), *filter(self._is_intent, self.tags))

    def __len__(self) -> int:
        return len(self.tags)

    def index(self, tag: str) -> int:
        """The number of `tag`; ValueError naming the tags when there is none."""
        number = self._numbers.get(tag)
        if number is None:
            raise ValueError(f"unknown tag {tag!r} ({', '.join(self.tags)})")
        return number

    def encode(self, tags: Sequence[str]) -> Int16[np.ndarray, " token"]:
        """Numbers of `tags`; ValueError names a tag that is not in the set."""
        number = self._number_of_step if self.scheme == "parse" else self._numbers.__getitem__
        try:
            return np.fromiter(map(number, tags), np.int16, len(tags))
        except KeyError as error:
            raise ValueError(f"unknown tag {error.args[0]!r} ({', '.join(self.tags)})") from None

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """The tags of these numbers."""
        if self.scheme == "parse":
            steps = (int(number) for number in numbers)
            return [self.tags[step] if step < len(self) else f"{WORD}{step - len(self)}" for step in steps]
        return [self.tags[number] for number in numbers]

    def _number_of_step(self, step: str) -> int:
        return len(self) + int(step[1:]) if step.startswith(WORD) else self._numbers[step]

    def allowed_places(self) -> Bool[np.ndarray, "2 tag"] | None:
        """Which tags the first word of a sentence may have, and which the others; None where every word may have any of
        them: of utterances the first has an intent, the others have slots."""
        if self.scheme != "utterance":
            return None
        intents = np.array([self._is_intent(tag) for tag in self.tags], dtype=bool)
        return np.stack([intents, ~intents])

    @property
    def constrained(self) -> bool:
        """Whether some labels may not follow others: those of spans and of utterances."""
        return self.scheme in CONSTRAINED

    def allowed_transitions(self) -> Bool[np.ndarray, "tag tag"]:
        """Which tag may follow which: [from, to]. Everything, unless BIOES or the place of an intent forbids it."""
        if not self.constrained:
            return np.ones((len(self), len(self)), dtype=bool)
        intents_Y = np.array([self._is_intent(tag) for tag in self.tags])
        # An intent ends nothing and begins nothing, as O does; it follows no tag.
        parts = [split_tag(OUTSIDE if self._is_intent(tag) else tag) for tag in self.tags]
        inside_Y = np.array([letter in "BI" for letter, _ in parts])
        continues_Y = np.array([letter in "IE" for letter, _ in parts])
        types_Y = np.unique([kind for _, kind in parts], return_inverse=True)[1]
        same_YY = types_Y[:, None] == types_Y
        return (inside_Y[:, None] == continues_Y) & (~inside_Y[:, None] | same_YY) & ~intents_Y

    def allowed_start(self) -> Bool[np.ndarray, " tag"]:
        """Which tags may begin a sentence."""
        if self.scheme == "utterance":
            return np.array([self._is_intent(tag) for tag in self.tags], dtype=bool)
        # A sentence begins and ends as if O stood before and behind it.
        return self.allowed_transitions()[self.index(OUTSIDE) if self.constrained else 0]

    def allowed_end(self) -> Bool[np.ndarray, " tag"]:
        """Which tags may end a sentence."""
        return self.allowed_transitions()[:, self.index(OUTSIDE) if self.constrained else 0]

    def bracket_changes(self) -> Int[np.ndarray, " tag"]:
        """What each step of a tree does to the number of its open brackets: 1, or −1 for what closes them."""
        return np.array([-1 if tag == CLOSE else 1 for tag in self.tags])

    def _is_intent(self, tag: str) -> bool:
        return self.scheme == "utterance" and is_intent(tag)


def _types(tags: Iterable[str]) -> Iterable[str]:
    """The span types of BIOES tags, in their order."""
    return dict.fromkeys(split_tag(tag)[1] for tag in tags if tag != OUTSIDE and not is_intent(tag))


def _bioes_tags(types: Iterable[str]) -> Iterator[str]:
    yield OUTSIDE
    for kind in types:
        yield from (f"{letter}-{kind}" for letter in "BIES")


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
