"""Trees of intents and slots as files write them: brackets and words, `[IN:GET_WEATHER [SL:LOCATION boston ] ]`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from raykd.corpora.column_files import cut_at_spaces
from raykd.forms.marks import UTTERANCE
from raykd.forms.steps import CLOSE, IN, OPEN, SL, WORD, Node, tree_from_steps


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
    tree = tree_from_steps(found, len(words))
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
