"""A model that `raykd export` wrote, as a labeller of text. It needs onnxruntime and numpy, and nothing of raykd: the
file lies beside the model too.

    from labeller import load            # in raykd: raykd.load(DIR)
    label = load("student")
    for span in label("Ada Lovelace lives in London.").spans:
        print(span.label, span.text, span.start, span.end, span.probability)

Shapes: B sentences of a batch, P pieces, T words, C characters of a word, Y labels, H = T + 1 heads that a word may
have (0 the root, h the h-th word).
"""

from __future__ import annotations

import json
import os
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FLOAT32, INT8 = "model.onnx", "model-int8.onnx"
CARD, LABELS, VOCABULARY, WEIGHTS = "export.json", "labels.json", "vocabulary.json", "model.safetensors"
_MARKS = "".join(
    sign for sign in map(chr, range(0x300, 0x20000)) if unicodedata.category(sign)[0] == "M"
) + "\u200c\u200d"  # fmt: skip
WORDS = re.compile(
    # Ideographs, kana and the scripts of South-East Asia have no spaces: each character is a word.
    rf"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff][{_MARKS}]*"
    rf"|(?:[^\W_][{_MARKS}]*)+(?:['’.,\-·](?:[^\W_][{_MARKS}]*)+)*"
    rf"|[^\s\w][{_MARKS}]*|_+"
)
"""What is a word in text: letters and digits, with what joins them (O'Neill, 3.5, Jean-Luc); any other sign alone.
Accents, vowel signs and joiners belong to the character before them."""
READ_AHEAD = 32
"""Batches whose texts are sorted by length together."""
PADDED = 2**9
"""Pieces that are read at once, as padded to the longest text: ONNX Runtime keeps the memory of the largest batch."""
SEPARATOR = "\t"
"""The word between the two texts of a pair: white space, which no other word is."""
LONG = 2**11
"""A text of more pieces is read alone, and its memory is then given back."""
UPOS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
))  # fmt: skip
"""The parts of speech of Universal Dependencies."""
UTTERANCE, INTENT = "<utterance>", "intent:"
"""The word in front of an utterance that stands for the whole of it, and what its label begins with."""
NEVER = -1e4
"""Log-probability of a head that no label means."""


class LabellerError(Exception):
    """What is wrong with an exported folder or its input, with a hint."""


@dataclass(frozen=True)
class Span:
    """A word of a text with its label, or a span of words. `start` and `end` count characters of the text.

    `probability`, between 0 and 1, is under the model, of a CRF over all labellings: of a word its label's marginal, of
    a span that of exactly its words, its label and its two ends. Of a word of a parse `label` is its relation, and
    `probability` that of its head and its relation.
    """

    text: str
    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True)
class Labelled:
    """A text with what the model says of it: words and spans, words and their heads where the model parses (0 the root,
    h the h-th word), or one label where the task labels whole texts. Of an utterance the label is its intent, and its
    spans are its slots."""

    text: str
    words: tuple[Span, ...] = ()
    spans: tuple[Span, ...] = ()
    label: str | None = None
    probability: float | None = None
    heads: tuple[int, ...] | None = None


class Arc(NamedTuple):
    """What a parser says of a word."""

    head: int
    """0 the root, h the h-th word."""
    relation: str
    probability: float
    """Of head and relation together; 0 where only the tree needs this head, and no label means it."""
    repaired: bool
    """Whether another head is the best for this word alone, and the best heads together are no tree."""


Text = str | Sequence[str] | Sequence[tuple[str, str]]
"""A text, its words, or its words with their parts of speech."""


def model_file(*, int8: bool) -> str:
    """The file of 8 bits, or that in float32."""
    return INT8 if int8 else FLOAT32


def load(
    folder: str | Path, *, file: str = FLOAT32, threads: int = 1, pos: str | Path | None = None
) -> Labeller:
    """The model in a folder that `raykd export` wrote.

    Args:
        folder: it has `export.json`.
        file: `model.onnx`, or `model-int8.onnx`: a quarter of the size, some labels differ (`export.json` says how
            many).
        threads: of the processor.
        pos: of a model that parses, the folder of one of task `pos`: it gives the parts of speech of what comes
            without them.

    Raises:
        LabellerError: a file is missing or another than was exported, or a package is; or `pos` is not such a model, or
            of no use.
    """
    own = Labeller(Path(folder), file=file, threads=threads)
    if pos is not None:
        own.tag_with(Labeller(Path(pos), file=file, threads=threads))
    return own


class Labeller:
    """An exported model. Call it with a text or an iterable of texts; see `label` for words."""

    def __init__(self, folder: Path, *, file: str = FLOAT32, threads: int = 1):
        self.folder, self.file, self.card = folder, file, _json(folder, CARD)
        if "decoder" not in self.card:
            raise LabellerError(f"{folder / CARD}: an earlier version wrote it; export the model again")
        if file not in (FLOAT32, INT8):
            raise LabellerError(f"file: {file!r} is no model; use {FLOAT32!r} or {INT8!r}")
        labels = _json(folder, LABELS)
        self.labels: tuple[str, ...] = tuple(labels["tags"])
        self.utterances = labels.get("scheme") == "utterance"
        """Whether it gives an intent for each text, beside the slots of its words."""
        self.has_spans = labels.get("scheme") in ("bioes", "utterance")
        self.trees = TreeLabels(labels) if "encoding" in labels else None
        """Of a model that parses: what its labels mean."""
        self.tagger: Labeller | None = None
        self.unit: str = self.card["unit"]
        self.pairs: bool = self.card.get("pairs", False)
        """Whether it labels pairs of texts, with a tab between the two."""
        self._session = _session(folder, file, self.card["files"].get(file, {}).get("bytes"), threads)
        self._giving_back = _giving_back()
        self._reads = [each.name for each in self._session.get_inputs()]
        stored = _json(folder, VOCABULARY)
        make = splitter if self.card["tokenizer"] == "own" else with_package
        self._pieces = make(stored["pieces"], unknown=self.card["special"]["unknown"])
        self._characters = _characters(stored["characters"]) if "characters" in self._reads else None
        self._special, self._limit = self.card["special"], self.card["piece_limit"]
        self._chain = _chain(folder) if self.card["decoder"] == "crf" else None
        self._decoding = self._chain
        if "legal" in labels:
            legal, own = _legal(labels["legal"], len(self.labels)), self._chain or (0.0, 0.0, 0.0)
            self._decoding = (own[0] + legal[0], own[1] + legal[1], own[2] + legal[2])
        """Transitions, start and end by which the best labelling is found; None: each word has its best label."""
        self._known: dict[str, list[int]] = {}

    @property
    def needs_pos(self) -> bool:
        """Whether sentences must come with parts of speech: it parses, its labels name them, and it has no tagger."""
        return self.trees is not None and self.trees.reads_pos and self.tagger is None

    def tag_with(self, tagger: Labeller) -> None:
        """Have `tagger` give the parts of speech of what comes without; it raises what `check_tagger` raises."""
        self.check_tagger(tagger)
        self.tagger = tagger

    def check_tagger(self, tagger: Labeller) -> None:
        """Raise LabellerError where `tagger` does not give the parts of speech that the labels name."""
        if self.trees is None or not self.trees.reads_pos:
            problem = "its labels name no parts of speech, so that a model of these has no effect"
            raise LabellerError(f"{self.folder}: {problem}; leave it out")
        if tagger.card["task"] != "pos":
            problem = f"it is a model of task {tagger.card['task']!r}, and one of task 'pos' is needed"
            raise LabellerError(f"{tagger.folder}: {problem}; export a student of that task")
        if unknown := sorted(set(tagger.labels) - set(self.trees.pos)):
            problem = f"it gives the parts of speech {', '.join(unknown[:5])}, which the labels of {self.folder} do not"
            hint = f"give a model of {', '.join(self.trees.own_pos)}"
            raise LabellerError(f"{tagger.folder}: {problem} have; {hint}")

    def __call__(self, text: str | Iterable[Text], *, batch: int = 32) -> Any:
        """What the model says of a text (`Labelled`), or of each of several (an iterator, in their order).

        Texts are read in batches of similar length, `batch` at once, as they come: any number of them. A text has one
        sentence or a few (to a parser one); it is split into words at white space and signs. A text among several may
        also be a list of its words, which are then taken as they are: its `text` has a space between them. Where a
        parser needs parts of speech and has no model of them, it is a list of pairs, a word and its part of speech. A
        pair of texts, for a model of these, is one text with a tab between the two.

        Raises what `parse` raises where the model parses, and what `check_pair` raises of pairs.
        """
        if isinstance(text, str):
            return next(self._of_texts([text], batch))
        return self._of_texts(text, batch)

    def parse(
        self,
        sentences: Sequence[Sequence[str]],
        pos: Sequence[Sequence[str] | None] | None = None,
        *,
        batch: int = 32,
    ) -> list[list[tuple[int, str]]]:
        """The tree of each sentence, a list of words: of every word its head (0 the root, h the h-th word) and its
        relation. It has one root. A model whose labels name parts of speech needs these, `pos`: one for every word.

        Raises:
            TypeError: a sentence is a string, not a list of words; or the model does not parse.
            ValueError: a sentence has no words, or parts of speech are missing or unknown.
        """
        return [[(arc.head, arc.relation) for arc in own] for own in self.arcs(sentences, pos, batch=batch)]

    def arcs(
        self,
        sentences: Sequence[Sequence[str]],
        pos: Sequence[Sequence[str] | None] | None = None,
        *,
        batch: int = 32,
    ) -> list[list[Arc]]:
        """What `parse` gives, with probabilities, and whether a head was changed to make a tree."""
        if self.trees is None:
            raise TypeError(f"{self.folder}: task {self.card['task']!r} predicts no trees; call label")
        words = _checked(sentences)
        given = self._pos_of(words, [None] * len(words) if pos is None else pos, batch)
        found = self._sorted(words, batch)
        return [self.trees.arcs(scores_TY, own) for (_, scores_TY), own in zip(found, given, strict=True)]

    def label(self, sentences: Sequence[Sequence[str]], *, batch: int = 32) -> list[list[str]]:
        """The labels of each sentence, a list of words: one per word, or one for a task that labels whole texts; of a
        model that parses those that say its heads, which `parse` reads, of utterances their slots. A pair of texts is
        the words of both, with a tab as a word between them.

        Raises:
            TypeError: a sentence is a string, not a list of words.
            ValueError: a sentence has no words, or is no pair where the model labels pairs.
        """
        found = [
            [self.labels[y] for y in best_T] for best_T, _ in self._sorted(self._of_words(sentences), batch)
        ]
        return [slots for _, *slots in found] if self.utterances else found

    def intents_and_slots(
        self, sentences: Sequence[Sequence[str]], *, batch: int = 32
    ) -> list[tuple[str, list[str]]]:
        """The intent of each utterance, a list of words, and the slot of each of its words, in BIOES tags. It raises
        what `label` raises, and TypeError where the model gives no intents."""
        if not self.utterances:
            raise TypeError(f"{self.folder}: task {self.card['task']!r} predicts no intents; call label")
        found = [
            [self.labels[y] for y in best_T] for best_T, _ in self._sorted(self._of_words(sentences), batch)
        ]
        return [(intent.removeprefix(INTENT), slots) for intent, *slots in found]

    def probabilities(self, sentences: Sequence[Sequence[str]], *, batch: int = 32) -> list[np.ndarray]:
        """The probability of each label, in the order of `labels`, for each word of each sentence, a list of words:
        float64 [T, Y], or [1, Y] for a task that labels whole texts. It raises what `label` raises."""
        found = self._sorted(self._of_words(sentences), batch)
        sure = [Lattice(scores_TY, self._chain).marginals() for _, scores_TY in found]
        return [sure_TY[1:] for sure_TY in sure] if self.utterances else sure

    def _of_words(self, sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        checked = _checked(sentences)
        for words in checked if self.pairs else ():
            check_pair(words)
        return checked

    def _of_texts(self, texts: Iterable[Text], batch: int) -> Iterator[Labelled]:
        texts = iter(texts)
        # Texts with one label each are split at white space in training too.
        word = re.compile(rf"{SEPARATOR}|\S+" if self.pairs else r"\S+") if self.unit == "sentence" else WORDS
        while block := [_with_pos(text) for text in islice(texts, READ_AHEAD * batch)]:
            for text, _ in block if self.pairs else ():
                check_pair(text)
            own = [(*_divided(text, word), pos) for text, pos in block]
            words = [[text[a:b] for a, b in places] for text, places, _ in own]
            given = [pos for _, places, pos in own if places]
            read = [each for each in words if each]
            parts = iter(self._pos_of(read, given, batch) if self.trees else given)
            found = iter(self._sorted(read, batch))
            for text, places, _ in own:
                yield self._said(text, places, next(parts), *next(found)) if places else Labelled(text)

    def _pos_of(
        self, sentences: Sequence[Sequence[str]], given: Sequence[Sequence[str] | None], batch: int
    ) -> list[Sequence[str] | None]:
        """The parts of speech that a parser reads: those that are given, or else the tagger's."""
        if len(given) != len(sentences):
            raise ValueError(f"{len(sentences)} sentences, and parts of speech of {len(given)}")
        if self.trees is None or not self.trees.reads_pos:
            return [None] * len(sentences)
        for words, own in zip(sentences, given, strict=True):
            self.trees.check_pos(words, own, tagged=self.tagger is not None)
        missing = [row for row, own in enumerate(given) if own is None]
        found = list(given)
        if self.tagger is not None and missing:
            labels = self.tagger.label([sentences[row] for row in missing], batch=batch)
            for row, own in zip(missing, labels, strict=True):
                found[row] = own
        return found

    def _said(
        self,
        text: str,
        places: list[tuple[int, int]],
        pos: Sequence[str] | None,
        best_T: np.ndarray,
        scores_TY: np.ndarray,
    ) -> Labelled:
        if self.trees is not None:
            arcs = self.trees.arcs(scores_TY, pos)
            words = [
                Span(text[a:b], a, b, arc.relation, arc.probability)
                for (a, b), arc in zip(places, arcs, strict=True)
            ]
            return Labelled(text, tuple(words), heads=tuple(arc.head for arc in arcs))
        chain = Lattice(scores_TY, self._chain)
        sure_TY = chain.marginals()
        if self.unit == "sentence":
            return Labelled(text, label=self.labels[best_T[0]], probability=float(sure_TY[0, best_T[0]]))
        front = int(self.utterances)  # the place of an utterance's intent
        words = [
            Span(text[a:b], a, b, self.labels[y], float(sure_TY[t, y]))
            for t, ((a, b), y) in enumerate(zip(places, best_T[front:], strict=True), start=front)
        ]
        spans = [
            Span(
                text[places[first][0] : places[last][1]], places[first][0], places[last][1], label,
                chain.probability(first + front, best_T[first + front : last + front + 1]),
            )
            for first, last, label in (spans_of([word.label for word in words]) if self.has_spans else ())
        ]  # fmt: skip
        if not self.utterances:
            return Labelled(text, tuple(words), tuple(spans))
        intent = self.labels[best_T[0]].removeprefix(INTENT)
        return Labelled(text, tuple(words), tuple(spans), intent, float(sure_TY[0, best_T[0]]))

    def _sorted(self, sentences: Sequence[Sequence[str]], batch: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The best labels [T] and the scores [T, Y] of each sentence, read in batches of similar length; of an
        utterance T is one more than its words, the intent first."""
        if self.utterances:
            sentences = [[UTTERANCE, *words] for words in sentences]
        rows = [[self._split(word) for word in words] for words in sentences]
        sizes = [sum(map(len, row)) for row in rows]
        found: list[Any] = [None] * len(rows)
        for own in _groups(sizes, batch):
            for place, result in zip(
                own, self._read([sentences[i] for i in own], [rows[i] for i in own]), strict=True
            ):
                found[place] = result
        return found

    def _split(self, word: str) -> list[int]:
        if word == UTTERANCE and self._special["prefix"]:
            return []  # it is read at the piece before it
        if word not in self._known:
            if len(self._known) >= 2**18:
                self._known.clear()
            between = self._special.get("separator") if word == SEPARATOR else None
            self._known[word] = between or self._pieces(word)
        return self._known[word]

    def _read(
        self, sentences: list[Sequence[str]], rows: list[list[list[int]]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        around = len(self._special["prefix"]) + len(self._special["suffix"])
        if self._limit is not None and any(sum(map(len, row)) + around > self._limit for row in rows):
            return [self._one(words, row) for words, row in zip(sentences, rows, strict=True)]
        inputs = self._inputs(sentences, rows)
        options = self._giving_back if inputs["pieces"].size > LONG else None
        best_BT, scores_BTY = self._session.run(["labels", "scores"], inputs, options)
        counts = [1 if self.unit == "sentence" else len(row) for row in rows]
        return [(best_BT[b, :n], scores_BTY[b, :n]) for b, n in enumerate(counts)]

    def _one(self, words: Sequence[str], row: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        """One sentence of any length. Where it has more pieces than the model reads, it is read in windows that overlap
        by half, and each piece's scores are from the window in which the nearer cut is farthest; of a text with one
        label the beginning is read, of a pair those of both."""
        width = self._limit - len(self._special["prefix"]) - len(self._special["suffix"])
        # An utterance's first word has no piece of its own where a model has such a limit.
        body = [piece for pieces in row for piece in pieces]
        if self.unit == "sentence" or len(body) <= width:
            return self._read([words], [[_beginning(words, row, width)] if self.unit == "sentence" else row])[
                0
            ]
        front = int(self.utterances)
        starts = [*range(0, len(body) - width, max(1, width // 2)), len(body) - width]
        # Each piece as a word of its own, so that there are scores for every piece; the first place is the intent's.
        windows = [[*row[:front], *([piece] for piece in body[start : start + width])] for start in starts]
        read_WPY = np.stack([self._read([words], [window])[0][1] for window in windows])
        scores_WPY = read_WPY[:, front:]
        place_P, starts_W1 = np.arange(len(body)), np.array(starts)[:, None]
        before_WP = np.where(starts_W1 == 0, len(body), place_P - starts_W1)
        after_WP = np.where(starts_W1 + width == len(body), len(body), starts_W1 + width - 1 - place_P)
        window_P = np.minimum(before_WP, after_WP).argmax(0)
        first_T = np.cumsum([0, *map(len, row[front:-1])])
        scores_TY = scores_WPY[window_P[first_T], first_T - starts_W1[window_P[first_T], 0]]
        scores_TY = np.concatenate([read_WPY[0, :front], scores_TY])
        return best_path(scores_TY, self._decoding), scores_TY

    def _inputs(self, sentences: list[Sequence[str]], rows: list[list[list[int]]]) -> dict[str, np.ndarray]:
        prefix, suffix = self._special["prefix"], self._special["suffix"]
        flat = [[*prefix, *(id for pieces in row for id in pieces), *suffix] for row in rows]
        first = [np.cumsum([len(prefix), *(len(pieces) for pieces in row[:-1])]) for row in rows]
        first = [own - [not pieces for pieces in row] for own, row in zip(first, rows, strict=True)]
        inputs = {
            "pieces": _padded(flat, self._special["padding"]),
            "piece_lengths": np.array([len(each) for each in flat], np.int64),
            "first": _padded(first, 0),
            "lengths": np.array([len(row) for row in rows], np.int64),
        }
        if self._characters is not None:
            spelt = [[self._characters(word) for word in words] for words in sentences]
            counts = [[len(ids) for ids in row] for row in spelt]
            inputs["character_lengths"] = _padded(counts, 0)
            longest = int(inputs["character_lengths"].max())
            letters = np.zeros((len(spelt), inputs["first"].shape[1], longest), np.int64)
            for b, row in enumerate(spelt):
                for t, ids in enumerate(row):
                    letters[b, t, : len(ids)] = ids
            inputs["characters"] = letters
        return {name: inputs[name] for name in self._reads}


class Lattice:
    """The distribution over the labellings of one sentence, in float64. `chain`: transitions [Y, Y] from a label to the
    next, and what begins and ends a sentence [Y]; None where each label stands by itself."""

    def __init__(self, scores_TY: np.ndarray, chain: tuple[np.ndarray, np.ndarray, np.ndarray] | None):
        self.scores_TY = scores_TY.astype(np.float64)
        self.chain = chain
        if chain is None:
            self.scores_TY -= _log_sum(self.scores_TY, 1)[:, None]
            return
        transitions_YY, start_Y, end_Y = chain
        forward, backward = np.empty_like(self.scores_TY), np.empty_like(self.scores_TY)
        forward[0], backward[-1] = start_Y + self.scores_TY[0], end_Y
        for t in range(1, len(forward)):
            forward[t] = _log_sum(forward[t - 1][:, None] + transitions_YY, 0) + self.scores_TY[t]
        for t in reversed(range(len(backward) - 1)):
            backward[t] = _log_sum(transitions_YY + (self.scores_TY[t + 1] + backward[t + 1])[None], 1)
        self._forward_TY, self._backward_TY = forward, backward
        self._log_z = _log_sum(forward[-1] + end_Y, 0)

    def marginals(self) -> np.ndarray:
        """The probability of each label of each word [T, Y]."""
        if self.chain is None:
            return np.exp(self.scores_TY)
        return np.exp(self._forward_TY + self._backward_TY - self._log_z)

    def probability(self, first: int, path: np.ndarray) -> float:
        """That the words from `first` on have the labels of `path`."""
        last = first + len(path) - 1
        total = self.scores_TY[range(first + 1, last + 1), path[1:]].sum()
        if self.chain is None:
            return float(np.exp(total + self.scores_TY[first, path[0]]))
        total += self.chain[0][path[:-1], path[1:]].sum()
        total += self._forward_TY[first, path[0]] + self._backward_TY[last, path[-1]]
        return float(np.exp(total - self._log_z))


def best_path(scores_TY: np.ndarray, chain: tuple[np.ndarray, np.ndarray, np.ndarray] | None) -> np.ndarray:
    """The best labelling [T] of one sentence, as the model's graph finds it: by Viterbi with `chain` (transitions
    [Y, Y] from a label to the next, start and end [Y]), else each word's best label. Of equals the first label counts.
    """
    if chain is None:
        return scores_TY.argmax(-1)
    transitions_YY, start_Y, end_Y = chain
    best_Y, from_TY = start_Y + scores_TY[0], []
    for row_Y in scores_TY[1:]:
        ways_YY = best_Y[:, None] + transitions_YY
        from_TY.append(ways_YY.argmax(0))
        best_Y = ways_YY.max(0) + row_Y
    path = [int((best_Y + end_Y).argmax())]
    for from_Y in reversed(from_TY):
        path.append(int(from_Y[path[-1]]))
    return np.array(path[::-1])


class TreeLabels:
    """What the labels of a parser mean: a label `offset@POS@relation` names a head by its place, or by its part of
    speech (Strzyz et al., NAACL 2019), and a relation. `stored` is what `labels.json` has."""

    def __init__(self, stored: Mapping[str, Any]):
        self.encoding: str = stored["encoding"]
        self.own_pos: tuple[str, ...] = tuple(stored["pos"])
        """The parts of speech of the treebank, some of which the labels name."""
        # Of several languages' treebanks one has universal parts of speech that another lacks.
        more = sorted(UPOS.difference(self.own_pos)) if UPOS.issuperset(self.own_pos) else ()
        self.pos = (*self.own_pos, *more)
        self._root = len(self.pos)
        marks = {name: mark for mark, name in enumerate((*self.pos, "ROOT", ""))}
        parts = [re.fullmatch("(.*?)@(.*)@(.*?)", tag, re.DOTALL) for tag in stored["tags"]]
        keys = [self._keys(int(part[1]), marks[part[2]]) for part in parts if part]
        self.relations = [part[3] for part in parts if part]
        """Of each label."""
        self._keys_C, self._code_Y = np.unique(keys, return_inverse=True)
        self._by_code = np.argsort(self._code_Y, kind="stable")
        self._first_C = np.searchsorted(self._code_Y[self._by_code], np.arange(len(self._keys_C)))

    @property
    def reads_pos(self) -> bool:
        """Whether the heads that labels mean depend on parts of speech."""
        return self.encoding == "relative_pos"

    def check_pos(self, words: Sequence[str], pos: Sequence[str] | None, *, tagged: bool) -> None:
        """Raise ValueError where they are not known parts of speech, one for each word; none may be there if
        `tagged`."""
        if pos is None:
            if tagged:
                return
            raise ValueError("its labels name parts of speech: give pos, one for every word")
        if len(pos) != len(words):
            raise ValueError(f"{len(words)} words and {len(pos)} parts of speech: {list(words)}, {list(pos)}")
        if unknown := [name for name in pos if name not in self.pos]:
            raise ValueError(f"unknown part of speech {unknown[0]!r} ({', '.join(self.own_pos)})")

    def arcs(self, scores_TY: np.ndarray, pos: Sequence[str] | None) -> list[Arc]:
        """The tree that labels with these scores say: each word's best head where these are a tree with one root, else
        the best tree. A head counts by the best label that means it."""
        scores_TY = scores_TY.astype(np.float64)
        scores_TY -= _log_sum(scores_TY, 1)[:, None]
        codes_TH = self._codes(len(scores_TY), pos)
        by_code_TC = np.maximum.reduceat(scores_TY[:, self._by_code], self._first_C, axis=1)
        # What has no code is read behind the last one.
        by_code_TC = np.pad(by_code_TC, ((0, 0), (0, 1)), constant_values=NEVER)
        scores_TH = np.take_along_axis(by_code_TC, codes_TH, 1)
        words_T = np.arange(len(scores_TH))
        scores_TH[words_T, words_T + 1] = -np.inf
        best_T = scores_TH.argmax(1)
        heads_T = best_T if is_tree(best_T) else best_tree(scores_TH)
        found = []
        for t, head in enumerate(heads_T.tolist()):
            code, label = codes_TH[t, head], int(scores_TY[t].argmax())
            own_code = self._code_Y[label]
            if code >= 0:
                label = int(np.where(self._code_Y == code, scores_TY[t], -np.inf).argmax())
            probability = float(np.exp(scores_TY[t, label])) if code >= 0 else 0.0
            found.append(Arc(head, self.relations[label], probability, bool(own_code != code)))
        return found

    def _codes(self, words: int, pos: Sequence[str] | None) -> np.ndarray:
        """The code of each head of each word [T, H]: the place in `_keys_C`, −1 where no label means it."""
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
        known_TH = self._keys_C[places_TH] == keys_TH
        known_TH[h_T, h_T + 1] = False
        return np.where(known_TH, places_TH, -1)

    def _keys(self, offsets: Any, marks: Any) -> Any:
        return offsets * (self._root + 2) + marks


def is_tree(heads_T: np.ndarray) -> bool:
    """Whether heads (0 the root) have one root, and every word leads to it."""
    up_H = np.concatenate([[0], heads_T])
    for _ in range(len(up_H).bit_length()):  # each pass doubles the number of arcs that are followed
        up_H = up_H[up_H]
    return bool((heads_T == 0).sum() == 1 and not up_H.any())


def best_tree(scores_TH: np.ndarray) -> np.ndarray:
    """The heads [T] of the tree with one root whose scores add up to most (Chu & Liu 1965; Edmonds 1967): −∞ for a word
    under itself, else finite.

    From a word along best heads: where the path comes back to itself, the cycle becomes a group, whose arc from a head
    is worth what it adds to the cycle. In the end groups are opened, the last first. One more arc of the root costs
    more than all other arcs can bring.
    """
    count = len(scores_TH)
    finite = scores_TH[np.isfinite(scores_TH)]
    gains_TH = scores_TH.astype(np.float64)
    gains_TH[:, 0] -= count * (finite.max() - finite.min()) + 1
    gains = dict(enumerate(gains_TH, start=1))
    into = {word: np.full(count + 1, word) for word in gains}
    group_H = np.arange(count + 1)
    chosen: dict[int, int] = {}
    parent: dict[int, int] = {}
    done = {0}
    for word in range(1, count + 1):
        path: list[int] = []
        x = int(group_H[word])
        while x not in done:
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
        done.update(path)
    for x in range(len(gains), count, -1):
        y = int(into[x][chosen[x]])
        while y != x:
            chosen[y] = chosen[x]
            y = parent[y]
    return np.array([chosen[word] for word in range(1, count + 1)])


def spans_of(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """(first word, last word, name) of each span in BIOES labels, in order. A span begins at B or S, after O, E or S,
    and where the name changes; it ends before the next beginning, at O, and after E or S."""
    spans: list[tuple[int, int, str]] = []
    first, open_name = 0, None
    for t, label in enumerate(labels):
        letter, _, name = label.partition("-")
        if open_name is not None and (letter in "BSO" or name != open_name):
            spans.append((first, t - 1, open_name))
            open_name = None
        if letter == "O":
            continue
        if open_name is None:
            first, open_name = t, name
        if letter in "ES":
            spans.append((first, t, open_name))
            open_name = None
    if open_name is not None:
        spans.append((first, len(labels) - 1, open_name))
    return spans


def _groups(sizes: Sequence[int], batch: int) -> Iterator[list[int]]:
    """The places of `sizes`, from the smallest on, `batch` at once and of PADDED pieces together, as padded, at most;
    a larger one is alone."""
    own: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if own and (len(own) == batch or sizes[place] * (len(own) + 1) > PADDED):
            yield own
            own = []
        own.append(place)
    if own:
        yield own


def _checked(sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    for words in sentences:
        if isinstance(words, str):
            problem = f"a sentence is a list of words, got the string {words[:40]!r}"
            raise TypeError(f"{problem}; call the labeller itself with text")
        if not len(words):
            raise ValueError("a sentence has no words; remove it")
    return list(sentences)


def joined(one: str, other: str) -> str:
    """A pair of texts as one text, with a tab between them and no other."""
    return f"{one.replace(SEPARATOR, ' ')}{SEPARATOR}{other.replace(SEPARATOR, ' ')}"


def check_pair(given: str | Sequence[str]) -> None:
    """Raise ValueError unless `given` is two texts with a tab between them, or their words with a tab as a word."""
    parts = (given if isinstance(given, str) else " ".join(given)).split(SEPARATOR)
    if len(parts) != 2 or not all(map(str.strip, parts)):
        problem = (
            f"the model labels pairs of texts, and {given[:40]!r} is not two texts with one tab between them"
        )
        raise ValueError(f"{problem}; write both, for example 'It rains.\\tIt is wet.'")


def _beginning(words: Sequence[str], row: list[list[int]], width: int) -> list[int]:
    """The pieces that are read of a text that may be too long; of a pair those of both texts, of which the longer one
    loses its end first."""
    place = words.index(SEPARATOR) if SEPARATOR in words else len(row)
    one, between, other = (
        [piece for pieces in own for piece in pieces]
        for own in (row[:place], row[place : place + 1], row[place + 1 :])
    )
    room = width - len(between)
    half = room - room // 2 if len(one) > len(other) else room // 2
    kept = max(room - len(other), half)
    return [*one[:kept], *between, *other[: room - min(kept, len(one))]]


def _with_pos(text: Text) -> tuple[str | Sequence[str], Sequence[str] | None]:
    """A text, or its words, and the parts of speech of these where each has one."""
    if isinstance(text, str) or not text or isinstance(text[0], str):
        return text, None  # type: ignore[return-value]
    return [word for word, _ in text], [pos for _, pos in text]


def _divided(text: str | Sequence[str], word: re.Pattern[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text and where its words are in it; of words, the text that they make with a space between them."""
    if isinstance(text, str):
        return text, [(found.start(), found.end()) for found in word.finditer(text)]
    ends = list(accumulate(len(word) + 1 for word in text))
    places = [(end - 1 - len(word), end - 1) for word, end in zip(text, ends, strict=True)]
    return " ".join(text), places


# How a word becomes pieces.

Split = Callable[[str], list[int]]


class UnsupportedError(Exception):
    """A part of a tokenizer that only the package `tokenizers` has."""


def splitter(stored: str, *, unknown: int) -> Split:
    """What splits a word into the ids of its pieces, from the JSON of a vocabulary; none gives `unknown`.

    Raises:
        UnsupportedError: it is a tokenizer of a kind that is not written here.
    """
    content = json.loads(stored)
    if content["kind"] == "word":
        ids = {word: row for row, word in enumerate(content["words"], start=2)}
        if content.get("lower_case"):
            return lambda word: [ids.get(word) or ids.get(word.lower(), unknown)]
        return lambda word: [ids.get(word, unknown)]
    if content["kind"] == "wordpiece":
        return wordpiece({piece: row for row, piece in enumerate(content["entries"])}, unknown=unknown)
    plain = json.loads(content["definition"])
    normal, cut = normalizer(plain["normalizer"]), pre_tokenizer(plain["pre_tokenizer"])
    model = plain["model"]
    if model["type"] == "WordPiece":
        split = wordpiece(
            model["vocab"], unknown=model["vocab"][model["unk_token"]],
            mark=model["continuing_subword_prefix"], longest=model["max_input_chars_per_word"],
        )  # fmt: skip
    elif model["type"] == "Unigram" and not model.get("byte_fallback"):
        split = unigram(model["vocab"], unknown=model["unk_id"])
    else:
        raise UnsupportedError(model["type"])
    return lambda word: [row for part in cut(normal(word)) for row in split(part)] or [unknown]


def with_package(stored: str, *, unknown: int) -> Split:
    """The same by the package `tokenizers`. Raises LabellerError where it is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        problem = "this model's tokenizer needs the package tokenizers, which is not installed"
        raise LabellerError(f"{problem}; run pip install tokenizers") from None
    tokenizer = Tokenizer.from_str(json.loads(stored)["definition"])
    return lambda word: (
        tokenizer.encode([word], is_pretokenized=True, add_special_tokens=False).ids or [unknown]
    )


def wordpiece(ids: Mapping[str, int], *, unknown: int, mark: str = "##", longest: int = 100) -> Split:
    """The longest piece that a word begins with, then that of the rest; unknown as a whole where a rest has none."""
    most = max(map(len, ids), default=0)

    def split(word: str) -> list[int]:
        rows, first = [], 0
        while first < len(word) and len(word) <= longest:
            before = mark if first else ""
            for last in range(min(len(word), first + most), first, -1):
                row = ids.get(before + word[first:last])
                if row is not None:
                    break
            else:
                return [unknown]
            rows.append(row)
            first = last
        return rows if len(word) <= longest else [unknown]

    return split


def unigram(vocab: Sequence[tuple[str, float]], *, unknown: int) -> Split:
    """The pieces of a word with the largest sum of scores; neighbouring unknown characters are one unknown piece."""
    rows = {piece: row for row, (piece, _) in enumerate(vocab)}
    scores = [score for _, score in vocab]
    most, missing = max(map(len, rows)), min(scores) - 10.0

    def split(word: str) -> list[int]:
        best: list[tuple[float, int, int]] = [(0.0, 0, 0)] + [(-np.inf, 0, 0)] * len(word)
        for first in range(len(word)):
            so_far = best[first][0]
            for last in range(first + 1, min(len(word), first + most) + 1):
                row = rows.get(word[first:last])
                if row is not None and (row != unknown) and so_far + scores[row] > best[last][0]:
                    best[last] = (so_far + scores[row], first, row)
            alone = rows.get(word[first : first + 1])
            if (alone is None or alone == unknown) and so_far + missing > best[first + 1][0]:
                best[first + 1] = (so_far + missing, first, unknown)
        found: list[int] = []
        last = len(word)
        while last > 0:
            _, first, row = best[last]
            if not (row == unknown and found and found[-1] == unknown):
                found.append(row)
            last = first
        return found[::-1]

    return split


def normalizer(plain: Mapping[str, Any] | None) -> Callable[[str], str]:
    """A tokenizer's normalization of a word."""
    kind = None if plain is None else plain["type"]
    if plain is None:
        return lambda word: word
    if kind == "Sequence":
        parts = [normalizer(part) for part in plain["normalizers"]]
        return lambda word: reduce(lambda text, part: part(text), parts, word)
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return lambda word: unicodedata.normalize(kind, word)
    if kind == "Nmt":
        return _nmt
    if kind == "Lowercase":
        return _lower
    if kind == "StripAccents":
        return _without_accents
    if kind == "Replace":
        pattern = plain["pattern"]
        found = re.compile(pattern["Regex"] if "Regex" in pattern else re.escape(pattern["String"]))
        return lambda word: found.sub(lambda _: plain["content"], word)
    if kind == "BertNormalizer":
        return lambda word: _bert_normal(word, plain)
    raise UnsupportedError(kind)


def pre_tokenizer(plain: Mapping[str, Any] | None) -> Callable[[str], list[str]]:
    """A tokenizer's division of a normalized word into parts, each of which the model splits."""
    kind = None if plain is None else plain["type"]
    if plain is None:
        return lambda word: [word] if word else []
    if kind == "Sequence":
        parts = [pre_tokenizer(part) for part in plain["pretokenizers"]]
        return lambda word: reduce(lambda own, part: [x for each in own for x in part(each)], parts, [word])
    if kind == "WhitespaceSplit":
        return str.split
    if kind == "BertPreTokenizer":
        return lambda word: [part for own in word.split() for part in _by_signs(own)]
    if kind == "Metaspace" and plain.get("prepend_scheme", "always") == "always":
        mark, several = plain["replacement"], plain.get("split", True)

        def cut(word: str) -> list[str]:
            if not word:
                return []
            word = word.replace(" ", mark)
            word = word if word.startswith(mark) else mark + word
            return re.findall(f"{mark}[^{mark}]*", word) if several else [word]

        return cut
    raise UnsupportedError(kind)


def _nmt(word: str) -> str:
    """SentencePiece's `nmt`: control characters are removed, and white space of any kind is a space."""
    removed = {*range(1, 9), 11, *range(14, 32), 127, 143, 159}
    spaces = {9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD}
    kept = (letter for letter in word if ord(letter) not in removed)
    return "".join(" " if ord(letter) in spaces else letter for letter in kept)


def _bert_normal(word: str, plain: Mapping[str, Any]) -> str:
    if plain["clean_text"]:
        kept = (
            c for c in word if c not in "\0\ufffd" and (c in "\t\n\r" or unicodedata.category(c)[0] != "C")
        )
        word = "".join(" " if c.isspace() else c for c in kept)
    if plain["handle_chinese_chars"]:
        word = re.sub(IDEOGRAPH, r" \g<0> ", word)
    if plain["strip_accents"] or (plain["strip_accents"] is None and plain["lowercase"]):
        word = _without_accents(unicodedata.normalize("NFD", word))
    return _lower(word) if plain["lowercase"] else word


def _lower(word: str) -> str:
    # Letter by letter: a sigma at the end of a word is one like any other.
    return "".join(map(str.lower, word))


IDEOGRAPH = (
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


def _without_accents(word: str) -> str:
    return "".join(c for c in word if unicodedata.category(c) != "Mn")


def _by_signs(word: str) -> list[str]:
    """The word cut before and after each sign."""
    parts, rest = [], ""
    for c in word:
        if (c.isascii() and not c.isalnum() and c.isprintable()) or unicodedata.category(c)[0] == "P":
            parts += [rest, c]
            rest = ""
        else:
            rest += c
    return [part for part in [*parts, rest] if part]


def _characters(stored: str) -> Callable[[str], list[int]]:
    """The ids of a word's characters; of a long word its first and its last."""
    content = json.loads(stored)
    ids = {letter: row for row, letter in enumerate(content["characters"], start=2)}
    tail = content["longest"] // 2
    head = content["longest"] - tail

    def split(word: str) -> list[int]:
        if len(word) > content["longest"]:
            word = word[:head] + word[len(word) - tail :]
        return [ids.get(letter, 1) for letter in word] or [1]

    return split


# Files and numbers.


def _json(folder: Path, name: str) -> Any:
    file = folder / name
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "give a folder that raykd export wrote"
        raise LabellerError(f"{file}: there is no such file; {hint}") from None
    except ValueError as error:
        raise LabellerError(f"{file}: it is damaged ({error}); export the model again") from None


def _session(folder: Path, name: str, size: int | None, threads: int) -> Any:
    file = folder / name
    if not file.is_file():
        raise LabellerError(f"{file}: there is no such file; copy the whole folder that raykd export wrote")
    if size is not None and file.stat().st_size != size:
        problem = f"it has {file.stat().st_size:,} bytes, and {size:,} were exported"
        raise LabellerError(f"{file}: {problem}; copy the folder again")
    # It reports to its makers from its import on where this is not set; "0" leaves that as it is.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError:
        raise LabellerError("onnxruntime is not installed; run pip install onnxruntime numpy") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # errors
    # Without VNNI a processor adds products of 8 bits in 16, which overflows; so they are added in 32.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _giving_back() -> Any:
    """Options of a run after which ONNX Runtime gives its memory back to the system."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


def _chain(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transitions, start and end of a CRF, from the weights: a safetensors file is a JSON header and raw numbers."""
    with open(folder / WEIGHTS, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))

        def read(name: str) -> np.ndarray:
            entry = header[f"head.{name}"]
            first, last = entry["data_offsets"]
            file.seek(8 + size + first)
            return np.frombuffer(file.read(last - first), "<f4").reshape(entry["shape"]).astype(np.float64)

        return read("transitions"), read("start"), read("end")


def _legal(stored: Mapping[str, Any], count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which of `count` labels may follow each other, begin and end a sentence: 0 where they may, −∞ where not."""

    def scores(allowed: Sequence[int]) -> np.ndarray:
        own_Y = np.full(count, -np.inf)
        own_Y[allowed] = 0.0
        return own_Y

    transitions_YY = np.stack([scores(stored["next"][row]) for row in stored["after"]])
    return transitions_YY, scores(stored["first"]), scores(stored["last"])


def _padded(rows: Sequence[Sequence[int] | np.ndarray], value: int) -> np.ndarray:
    out = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, own in enumerate(rows):
        out[row, : len(own)] = own
    return out


def _log_sum(scores: np.ndarray, axis: int) -> np.ndarray:
    most = scores.max(axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(most, axis) + np.log(np.exp(scores - most).sum(axis))
