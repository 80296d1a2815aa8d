"""Trees of intents and slots, as task-oriented semantic parsing predicts them, and the steps that write them.

    [IN:CREATE_ALARM [SL:DATE_TIME for 8 am ] [SL:ALARM_NAME [IN:GET_NAME [SL:NAME work ] ] ] ]

A tree in the decoupled form of mTOP (Li et al. 2021): its root is an intent, below an intent there are slots, below a
slot there are words of the sentence or further intents, and no slot is empty. What a sentence says outside of its slots
is not in the tree. A word is its place in the sentence, from 0; the word in front that stands for the utterance is
counted.

A tree is written step by step, from left to right: what opens a bracket (`IN:CREATE_ALARM`), what closes one (`]`), a
word (`@3`). A sequence of steps is complete with the bracket that closes its root, so nothing has to mark its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from raykd.corpora.column_files import cut_at_spaces
from raykd.corpora.sentence import UTTERANCE
from raykd.corpora.tags import CLOSE, INTENT, WORD, TagSet, is_intent
from raykd.metrics.bioes import read_spans

IN, SL = "IN:", "SL:"
OPEN = "["


class Node(NamedTuple):
    """An intent or a slot, with what is below it."""

    label: str
    """With `IN:` or `SL:` in front."""
    below: tuple[Node | int, ...] = ()
    """Nodes, and words by their places."""


def steps_of(tree: Node) -> list[str]:
    """The steps that write `tree`."""
    return [*_steps(tree)]


def _steps(tree: Node) -> Iterator[str]:
    yield tree.label
    for each in tree.below:
        if isinstance(each, Node):
            yield from _steps(each)
        else:
            yield f"{WORD}{each}"
    yield CLOSE


def tree_of(steps: Sequence[str], words: int) -> Node | None:
    """The tree that `steps` write of a sentence of so many `words`; None where they write none."""
    stack: list[tuple[str, list[Node | int]]] = []
    for place, step in enumerate(steps):
        above = (
            stack[-1][0][: len(IN)] if stack else SL
        )  # intents stand where words do not: at the root, below slots
        if step == CLOSE:
            if not stack or (above == SL and not stack[-1][1]):
                return None
            label, below = stack.pop()
            tree = Node(label, tuple(below))
            if not stack:
                return tree if place + 1 == len(steps) else None
            stack[-1][1].append(tree)
        elif step.startswith(WORD):
            number = int(step[len(WORD) :])
            if not stack or above == IN or number >= words:
                return None
            stack[-1][1].append(number)
        elif step.startswith(above):
            return None
        else:
            stack.append((step, []))
    return None


def written(steps: Sequence[str], words: Sequence[str]) -> str:
    """Steps with the words themselves, as files have them: `[IN:GET_WEATHER [SL:LOCATION boston ] ]`. They need not
    write a tree; a word that the sentence does not have stays `@40`."""
    return " ".join(_written(step, words) for step in steps)


def _written(step: str, words: Sequence[str]) -> str:
    if step.startswith(WORD):
        number = int(step[len(WORD) :])
        return words[number] if number < len(words) else step
    return step if step == CLOSE else OPEN + step


def tree_of_text(text: str, words: Sequence[str]) -> Node:
    """The tree that a file has as `text`, brackets and words between spaces, of the sentence with these `words`.

    Files do not say which of several equal words is meant. Words that stand together in the tree are looked for side by
    side in the sentence, then one by one; the first that the tree has not used yet is taken.

    Raises:
        ValueError: brackets do not match, or it is no tree in the decoupled form; what was expected is said.
    """
    found: list[str] = []
    depth, used = 0, set[int]()
    for is_word, run in groupby(cut_at_spaces(text), lambda cell: cell[0] not in (OPEN, CLOSE)):
        if is_word:
            places = _places(list(run), words, used)
            used.update(places)
            found += [f"{WORD}{place}" for place in places]
            continue
        for cell in run:
            if cell != CLOSE and not cell.startswith((OPEN + IN, OPEN + SL)):
                raise ValueError(f"{cell!r} is neither [IN:… nor [SL:… nor ], with spaces around it")
            if not depth and (found or cell == CLOSE):
                raise ValueError(f"{cell!r} stands outside of the root: expected one tree, [IN:… ]")
            depth += -1 if cell == CLOSE else 1
            found.append(cell.removeprefix(OPEN))
    if depth:
        raise ValueError(f"brackets are not closed: expected {depth} more ]")
    tree = tree_of(found, len(words))
    if tree is None:
        raise ValueError("expected an intent with slots below it, and words or intents below every slot")
    return tree


def _places(cells: list[str], words: Sequence[str], used: set[int]) -> list[int]:
    """Where the words of a run are in the sentence. Raises ValueError where it lacks one of them."""
    count = len(cells)
    for start in range(len(words) - count + 1):
        if [*words[start : start + count]] == cells and used.isdisjoint(range(start, start + count)):
            return [*range(start, start + count)]
    found: list[int] = []
    sentence = ", ".join(word for word in words if word != UTTERANCE)
    for cell in cells:
        own = [place for place, word in enumerate(words) if word == cell]
        if not own:
            raise ValueError(f"{cell!r} is none of the sentence's words: expected one of {sentence}")
        found.append(next((place for place in own if place not in used and place not in found), own[0]))
    return found


def tree_of_slots(tags: Sequence[str]) -> Node:
    """The tree of an utterance by its tags, of which the first is the intent and the others, in BIOES, are the slots of
    its words."""
    slots = (Node(SL + kind, tuple(range(start + 1, end + 1))) for start, end, kind in read_spans(tags[1:]))
    return Node(IN + tags[0].removeprefix(INTENT), tuple(slots))


def steps_of_slots(tag_set: TagSet) -> TagSet:
    """The tag set of the trees of utterances whose tags are `tag_set`."""
    return TagSet.steps(
        IN + label.removeprefix(INTENT) if is_intent(label) else SL + label for label in tag_set.labels
    )
