"""Labels as dependency trees: their heads and relations, and the best tree of scored heads.

A label is `offset@POS@relation`. A key is the number for the pair of offset and POS; a code is the place of a key in
the sorted keys of all labels. Labels of one code differ only in their relations.

Shapes: T words, Y labels, C codes, H = T + 1 heads that a word may have (0 the root, h the h-th word).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .lattice import log_sum
from .signs import Places
from .spans import Labelled, Span

UPOS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
))  # fmt: skip
"""The parts of speech of Universal Dependencies."""
FORBIDDEN = -1e4
"""Log-probability of a head without a label."""


class Arc(NamedTuple):
    """A word's head and relation."""

    head: int
    """0 the root, h the h-th word."""
    relation: str
    probability: float
    """Probability of head and relation together; 0 if only the tree needs this head, and no label stands for it."""
    repaired: bool
    """True if the word's best label names another head, or none of the sentence."""


class TreeLabels:
    """Meaning of a parser's labels: `offset@POS@relation` names a head and a relation.

    The head is named by its place, or by its part of speech (Strzyz et al., NAACL 2019).

    Args:
        stored: Content of `labels.json`.
    """

    def __init__(self, stored: Mapping[str, Any]):
        self.encoding: str = stored["encoding"]
        self.treebank_pos: tuple[str, ...] = tuple(stored["pos"])
        """The parts of speech of the treebank, some of which the labels name."""
        # A treebank may lack some universal parts of speech, which occur in other texts.
        missing = sorted(UPOS.difference(self.treebank_pos)) if UPOS.issuperset(self.treebank_pos) else ()
        self.pos = (*self.treebank_pos, *missing)
        """Valid parts of speech of words."""
        self._root = len(self.pos)
        marks = {name: mark for mark, name in enumerate((*self.pos, "ROOT", ""))}
        parts = [re.fullmatch("(.*?)@(.*)@(.*?)", tag, re.DOTALL) for tag in stored["tags"]]
        keys = [self._keys(int(part[1]), marks[part[2]]) for part in parts if part]
        self.relations = [part[3] for part in parts if part]
        """The relation of each label."""
        self._keys_C, self._code_Y = np.unique(keys, return_inverse=True)
        # Labels sorted by code, and the first place of each code among them: for `np.maximum.reduceat`.
        self._by_code = np.argsort(self._code_Y, kind="stable")
        self._first_C = np.searchsorted(self._code_Y[self._by_code], np.arange(len(self._keys_C)))

    @property
    def reads_pos(self) -> bool:
        """True if the heads of labels depend on parts of speech."""
        return self.encoding == "relative_pos"

    def check_pos(self, words: Sequence[str], pos: Sequence[str] | None, *, tagged: bool) -> None:
        """Raise ValueError unless `pos` has one known part of speech per word; None is valid if `tagged`.

        Args:
            words: Words of a sentence.
            pos: Their parts of speech.
            tagged: Whether a tagger adds missing parts of speech.
        """
        if pos is None:
            if tagged:
                return
            raise ValueError("its labels name parts of speech: give pos, one for every word")
        if len(pos) != len(words):
            raise ValueError(f"{len(words)} words and {len(pos)} parts of speech: {list(words)}, {list(pos)}")
        if unknown := [name for name in pos if name not in self.pos]:
            raise ValueError(f"unknown part of speech {unknown[0]!r} ({', '.join(self.treebank_pos)})")

    def arcs(self, scores_TY: np.ndarray, pos: Sequence[str] | None) -> list[Arc]:
        """Return the tree for scored labels: the best heads if these are a tree with one root, else the best tree.

        The score of a head is that of its best label.

        Args:
            scores_TY: Scores of the labels.
            pos: Parts of speech of the words, if labels name them.
        """
        scores_TY = scores_TY.astype(np.float64)
        scores_TY -= log_sum(scores_TY, 1)[:, None]
        codes_TH = self._codes(len(scores_TY), pos)
        by_code_TC = np.maximum.reduceat(scores_TY[:, self._by_code], self._first_C, axis=1)
        # Heads without a code (−1) read the added last column.
        by_code_TC = np.pad(by_code_TC, ((0, 0), (0, 1)), constant_values=FORBIDDEN)
        scores_TH = np.take_along_axis(by_code_TC, codes_TH, 1)
        words_T = np.arange(len(scores_TH))
        scores_TH[words_T, words_T + 1] = -np.inf
        best_T = scores_TH.argmax(1)
        heads_T = best_T if is_tree(best_T) else best_tree(scores_TH)
        arcs = []
        for t, head in enumerate(heads_T.tolist()):
            code, label = codes_TH[t, head], int(scores_TY[t].argmax())
            best_code = self._code_Y[label]
            if code >= 0:
                label = int(np.where(self._code_Y == code, scores_TY[t], -np.inf).argmax())
            probability = float(np.exp(scores_TY[t, label])) if code >= 0 else 0.0
            arcs.append(Arc(head, self.relations[label], probability, bool(best_code != code)))
        return arcs

    def _codes(self, words: int, pos: Sequence[str] | None) -> np.ndarray:
        """Return the codes of all heads by word [T, H]: the place in `_keys_C`, −1 if no label stands for it."""
        t_T1, h_T = np.arange(words)[:, None], np.arange(words)
        if self.reads_pos:
            marks_T = np.array([self.pos.index(name) for name in pos or ()])
            same_TT = marks_T[:, None] == marks_T
            upto_TT = same_TT.cumsum(0)  # [t, h]: words up to t with the part of speech of h
            at_T = upto_TT.diagonal()
            offsets_TT = np.where(h_T > t_T1, at_T - upto_TT, at_T - 1 - (upto_TT - same_TT))
            root = self._keys(-1, self._root)
        else:
            marks_T = np.full(words, self._root + 1)
            offsets_TT = h_T - t_T1
            root = self._keys(0, self._root)
        keys_TH = np.concatenate([np.full((words, 1), root), self._keys(offsets_TT, marks_T)], 1)
        places_TH = np.searchsorted(self._keys_C, keys_TH).clip(max=len(self._keys_C) - 1)
        has_code_TH = self._keys_C[places_TH] == keys_TH
        has_code_TH[h_T, h_T + 1] = False
        return np.where(has_code_TH, places_TH, -1)

    def _keys(self, offsets: Any, marks: Any) -> Any:
        return offsets * (self._root + 2) + marks


def is_tree(heads_T: np.ndarray) -> bool:
    """Return True if heads (0 the root) have one root, and every word leads to it.

    Args:
        heads_T: Head of each word.
    """
    up_H = np.concatenate([[0], heads_T])
    for _ in range(len(up_H).bit_length()):  # each pass doubles the number of arcs that are followed
        up_H = up_H[up_H]
    return bool((heads_T == 0).sum() == 1 and not up_H.any())


def best_tree(scores_TH: np.ndarray) -> np.ndarray:
    """Return the heads [T] of the tree with one root and the largest sum of scores (Chu & Liu 1965; Edmonds 1967).

    Follow the best heads from each word. If the path comes back to itself, the cycle becomes a group, whose arc from a
    head is worth the score that it adds to the cycle. In the end groups are opened, the last first. One more arc of the
    root costs more than all other arcs can bring.

    Args:
        scores_TH: Scores, −∞ for a word under itself, else finite.
    """
    count = len(scores_TH)
    finite = scores_TH[np.isfinite(scores_TH)]
    gains_TH = scores_TH.astype(np.float64)
    gains_TH[:, 0] -= count * (finite.max() - finite.min()) + 1
    # Words and groups of words are numbered together: words from 1 to `count`, groups from there on.
    gains = dict(enumerate(gains_TH, start=1))  # of the arcs from all heads
    into = {word: np.full(count + 1, word) for word in gains}  # the word that the arc from each head enters
    group_H = np.arange(count + 1)  # the outermost group of each word
    chosen: dict[int, int] = {}  # the head (a word) of a word or group
    parent: dict[int, int] = {}  # the group of a member
    finished = {0}
    for word in range(1, count + 1):
        path: list[int] = []
        x = int(group_H[word])
        while x not in finished:
            if x not in path:
                path.append(x)
            chosen[x] = int(np.where(group_H == x, -np.inf, gains[x]).argmax())
            x = int(group_H[chosen[x]])
            if x in path:
                cycle, path = path[path.index(x) :], path[: path.index(x)]
                x = len(gains) + 1
                added_XH = np.stack([gains[y] - gains[y][chosen[y]] for y in cycle])
                best_H = added_XH.argmax(0)
                gains[x] = added_XH.max(0)
                into[x] = np.stack([into[y] for y in cycle])[best_H, np.arange(count + 1)]
                parent.update(dict.fromkeys(cycle, x))
                group_H[np.isin(group_H, cycle)] = x
        finished.update(path)
    for x in range(len(gains), count, -1):
        y = int(into[x][chosen[x]])
        while y != x:
            chosen[y] = chosen[x]
            y = parent[y]
    return np.array([chosen[word] for word in range(1, count + 1)])


def describe_tree(text: str, places: Places, arcs: Sequence[Arc]) -> Labelled:
    """Return a text with heads and relations of the words."""
    words = [
        Span(text[a:b], a, b, arc.relation, arc.probability) for (a, b), arc in zip(places, arcs, strict=True)
    ]
    return Labelled(text, tuple(words), heads=tuple(arc.head for arc in arcs))
