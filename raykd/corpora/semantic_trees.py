"""Trees of intents and slots in files: brackets and words, `[IN:GET_WEATHER [SL:LOCATION boston ] ]`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from raykd.corpora.column_files import cut_at_spaces
from raykd.forms.steps import CLOSE, IN, OPEN, SL, WORD, Node, tree_from_steps
from raykd.forms.utterance_marks import UTTERANCE


def tree_of_text(text: str, words: Sequence[str]) -> Node:
    """Parse the tree of a sentence, brackets and words between spaces.

    Files do not say which of several equal words is meant. Words that stand together in the tree are searched side by
    side in the sentence, then one by one; the first word that the tree does not use yet is taken.

    Args:
        text: The tree as a file has it.
        words: Words of the sentence.

    Raises:
        ValueError: Brackets do not match, or the tree is not in the decoupled form. The message says what was
            expected.
    """
    steps: list[str] = []
    depth, used = 0, set[int]()
    for is_word, run in groupby(cut_at_spaces(text), lambda cell: cell[0] not in (OPEN, CLOSE)):
        if is_word:
            places = _places(list(run), words, used)
            used.update(places)
            steps += [f"{WORD}{place}" for place in places]
            continue
        for cell in run:
            if cell != CLOSE and not cell.startswith((OPEN + IN, OPEN + SL)):
                raise ValueError(f"{cell!r} is neither [IN:… nor [SL:… nor ], with spaces around it")
            if not depth and (steps or cell == CLOSE):
                raise ValueError(f"{cell!r} stands outside of the root: expected one tree, [IN:… ]")
            depth += -1 if cell == CLOSE else 1
            steps.append(cell.removeprefix(OPEN))
    if depth:
        raise ValueError(f"brackets are not closed: expected {depth} more ]")
    tree = tree_from_steps(steps, len(words))
    if tree is None:
        raise ValueError("expected an intent with slots below it, and words or intents below every slot")
    return tree


def _places(cells: list[str], words: Sequence[str], used: set[int]) -> list[int]:
    """Places of a run of words in the sentence. ValueError for a word that is not in it."""
    count = len(cells)
    for start in range(len(words) - count + 1):
        if [*words[start : start + count]] == cells and used.isdisjoint(range(start, start + count)):
            return [*range(start, start + count)]
    found_places: list[int] = []
    sentence = ", ".join(word for word in words if word != UTTERANCE)
    for cell in cells:
        word_places = [place for place, word in enumerate(words) if word == cell]
        if not word_places:
            raise ValueError(f"{cell!r} is none of the sentence's words: expected one of {sentence}")
        found_places.append(
            next(
                (place for place in word_places if place not in used and place not in found_places),
                word_places[0],
            )
        )
    return found_places
