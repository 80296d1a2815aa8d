"""An exported model as a labeller of text, or of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from .folder import CARD, FLOAT32, INT8, LABELS, VOCABULARY, LabellerError, read_chain, read_json
from .lattice import Lattice, legal_chain, sum_of_chains
from .pieces import speller, splitter, with_package, with_special_words
from .session import LabelsAndScores, Reader, Session
from .signs import SIGNS, SPLITS, WHITESPACE, Places
from .spans import INTENT, Labelled, describe_sentence, describe_words
from .trees import Arc, TreeLabels, describe_tree
from .words import PosOf, Sentences, Text, checked_sentences, read_text, refuse_no_texts

READ_AHEAD = 32
"""Batches whose texts are sorted by length together."""


def load(
    folder: str | Path,
    *,
    file: str = FLOAT32,
    threads: int = 1,
    pos: str | Path | None = None,
    split: str | None = None,
) -> Labeller:
    """The model in a folder that `raykd export` wrote.

    Args:
        folder: it has `export.json`.
        file: `model.onnx`, or `model-int8.onnx`: a quarter of the size, some labels differ (`export.json` says how
            many).
        threads: of the processor.
        pos: of a model that parses, the folder of one of task `pos`: it gives the parts of speech of what comes
            without them.
        split: how texts are split into words: `signs`, at white space and at signs, or `whitespace`, at white space
            alone. Default: as the export says.

    Raises:
        LabellerError: a file is missing or another than was exported, or a package is; or `pos` is not such a model, or
            of no use; or `split` is unknown, or not that of the training of a model with one label for a text.
    """
    model = Labeller(Path(folder), file=file, threads=threads, split=split)
    if pos is not None:
        model.set_tagger(Labeller(Path(pos), file=file, threads=threads))
    return model


class Labeller:
    """An exported model. Call it with a text or an iterable of texts; see `label` for words."""

    def __init__(self, folder: Path, *, file: str = FLOAT32, threads: int = 1, split: str | None = None):
        self.folder, self.file, self.card = folder, file, read_json(folder, CARD)
        self._threads = threads
        if "decoder" not in self.card:
            raise LabellerError(f"{folder / CARD}: an earlier version wrote it; export the model again")
        if file not in (FLOAT32, INT8):
            raise LabellerError(f"file: {file!r} is no model; use {FLOAT32!r} or {INT8!r}")
        labels = read_json(folder, LABELS)
        self.labels: tuple[str, ...] = tuple(labels["tags"])
        self.utterances = labels.get("scheme") == "utterance"
        """Whether it gives an intent for each text, beside the slots of its words."""
        self.has_spans = labels.get("scheme") in ("bioes", "utterance")
        self.trees = TreeLabels(labels) if "encoding" in labels else None
        """The meaning of the labels of a model that parses."""
        self.tagger: Labeller | None = None
        self.unit: str = self.card["unit"]
        self.pairs: bool = self.card.get("pairs", False)
        """Whether it labels pairs of texts, with a tab between the two."""
        self.split = _split(folder, self.card, split)
        """How texts are split into words."""
        session = Session(folder, file, self.card["files"].get(file, {}).get("bytes"), threads)
        vocabulary, special = read_json(folder, VOCABULARY), self.card["special"]
        make = splitter if self.card["tokenizer"] == "own" else with_package
        self._chain = read_chain(folder) if self.card["decoder"] == "crf" else None
        legal = legal_chain(labels["legal"], len(self.labels)) if "legal" in labels else None
        self._reader = Reader(
            session,
            special,
            self.card["piece_limit"],
            with_special_words(make(vocabulary["pieces"], unknown=special["unknown"]), special),
            speller(vocabulary["characters"]) if "characters" in session.inputs else None,
            one_label=self.unit == "sentence",
            utterances=self.utterances,
            decoding=sum_of_chains(self._chain, legal),
        )

    def __reduce__(self) -> tuple[Callable[..., Labeller], tuple[Any, ...]]:
        # Another process opens the files again: a session of ONNX Runtime cannot be sent there.
        return _reopen, (self.folder, self.file, self._threads, self.split, self.tagger)

    @property
    def needs_pos(self) -> bool:
        """Whether sentences must come with parts of speech: it parses, its labels name them, and it has no tagger."""
        return self.trees is not None and self.trees.reads_pos and self.tagger is None

    def set_tagger(self, tagger: Labeller) -> None:
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
            hint = f"give a model of {', '.join(self.trees.treebank_pos)}"
            raise LabellerError(f"{tagger.folder}: {problem} have; {hint}")

    @overload
    def __call__(self, text: str, *, batch: int = 32) -> Labelled: ...

    @overload
    def __call__(self, text: Iterable[Text], *, batch: int = 32) -> Iterator[Labelled]: ...

    def __call__(self, text: str | Iterable[Text], *, batch: int = 32) -> Labelled | Iterator[Labelled]:
        """What the model says of a text (`Labelled`), or of each of several (an iterator, in their order).

        Texts are read in batches of similar length, `batch` at once, as they come: any number of them. A text has one
        sentence or a few (to a parser one); it is split into words as `split` says. A text among several may
        also be a list of its words, which are then taken as they are: its `text` has a space between them. Where a
        parser needs parts of speech and has no model of them, it is a list of pairs, a word and its part of speech. A
        pair of texts, for a model of these, is one text with a tab between the two.

        Raises what `parse` raises where the model parses, and what `check_pair` raises of pairs; TypeError where a text
        is neither a string nor words, and ValueError where it is not Unicode.
        """
        if isinstance(text, str):
            return next(self._describe([text], batch))
        refuse_no_texts(text)
        return self._describe(text, batch)

    def parse(
        self,
        sentences: Iterable[Iterable[str]],
        pos: Iterable[Iterable[str] | None] | None = None,
        *,
        batch: int = 32,
    ) -> list[list[tuple[int, str]]]:
        """The tree of each sentence, a list of words: of every word its head (0 the root, h the h-th word) and its
        relation. It has one root. A model whose labels name parts of speech needs these, `pos`: one for every word.

        Raises:
            TypeError: a sentence is a string, not a list of words; or the model does not parse.
            ValueError: a sentence has no words, or parts of speech are missing or unknown.
        """
        return [[(arc.head, arc.relation) for arc in arcs] for arcs in self.arcs(sentences, pos, batch=batch)]

    def arcs(
        self,
        sentences: Iterable[Iterable[str]],
        pos: Iterable[Iterable[str] | None] | None = None,
        *,
        batch: int = 32,
    ) -> list[list[Arc]]:
        """What `parse` gives, with probabilities, and whether a head was changed to make a tree."""
        if self.trees is None:
            raise TypeError(f"{self.folder}: task {self.card['task']!r} predicts no trees; call label")
        checked = checked_sentences(sentences)
        stated = (
            [None] * len(checked) if pos is None else [tags if tags is None else list(tags) for tags in pos]
        )
        complete = self._with_tagged(checked, stated, batch)
        scored = zip(self._reader.read(checked, batch), complete, strict=True)
        return [self.trees.arcs(scores_TY, tags) for (_, scores_TY), tags in scored]

    def label(self, sentences: Iterable[Iterable[str]], *, batch: int = 32) -> list[list[str]]:
        """The labels of each sentence, a list of words: one per word, or one for a task that labels whole texts; of a
        model that parses those that say its heads, which `parse` reads, of utterances their slots. A pair of texts is
        the words of both, with a tab as a word between them.

        Raises:
            TypeError: a sentence is a string, not a list of words.
            ValueError: a sentence has no words, or is no pair where the model labels pairs.
        """
        named = self._named(sentences, batch)
        return [slots for _, *slots in named] if self.utterances else named

    def intents_and_slots(
        self, sentences: Iterable[Iterable[str]], *, batch: int = 32
    ) -> list[tuple[str, list[str]]]:
        """The intent of each utterance, a list of words, and the slot of each of its words, in BIOES tags. It raises
        what `label` raises, and TypeError where the model gives no intents.
        """
        if not self.utterances:
            raise TypeError(f"{self.folder}: task {self.card['task']!r} predicts no intents; call label")
        return [(intent.removeprefix(INTENT), slots) for intent, *slots in self._named(sentences, batch)]

    def probabilities(self, sentences: Iterable[Iterable[str]], *, batch: int = 32) -> list[np.ndarray]:
        """The probability of each label, in the order of `labels`, for each word of each sentence, a list of words:
        float64 [T, Y], or [1, Y] for a task that labels whole texts. It raises what `label` raises.
        """
        scored = self._reader.read(checked_sentences(sentences, pairs=self.pairs), batch)
        marginals = [Lattice(scores_TY, self._chain).marginals() for _, scores_TY in scored]
        return [marginals_TY[1:] for marginals_TY in marginals] if self.utterances else marginals

    def _named(self, sentences: Iterable[Iterable[str]], batch: int) -> list[list[str]]:
        """The best labels of each sentence; of an utterance the intent's first."""
        scored = self._reader.read(checked_sentences(sentences, pairs=self.pairs), batch)
        return [[self.labels[y] for y in best_T] for best_T, _ in scored]

    def _describe(self, texts: Iterable[Text], batch: int) -> Iterator[Labelled]:
        texts = iter(texts)
        while block := [
            read_text(text, self.split, pairs=self.pairs) for text in islice(texts, READ_AHEAD * batch)
        ]:
            filled = [(text, places, pos) for text, places, pos in block if places]
            sentences = [[text[a:b] for a, b in places] for text, places, _ in filled]
            pos: PosOf = [pos for _, _, pos in filled]
            if self.trees is not None:
                pos = self._with_tagged(sentences, pos, batch)
            results = zip(pos, self._reader.read(sentences, batch), strict=True)
            for text, places, _ in block:
                yield self._described(text, places, *next(results)) if places else Labelled(text)

    def _described(
        self, text: str, places: Places, pos: Sequence[str] | None, scored: LabelsAndScores
    ) -> Labelled:
        best_T, scores_TY = scored
        if self.trees is not None:
            return describe_tree(text, places, self.trees.arcs(scores_TY, pos))
        lattice = Lattice(scores_TY, self._chain)
        if self.unit == "sentence":
            return describe_sentence(text, self.labels, best_T, lattice)
        return describe_words(text, places, self.labels, best_T, lattice, spans=self.has_spans)

    def _with_tagged(self, sentences: Sentences, stated: PosOf, batch: int) -> PosOf:
        """The parts of speech that a parser reads: those that are stated, or else the tagger's."""
        if len(stated) != len(sentences):
            raise ValueError(f"{len(sentences)} sentences, and parts of speech of {len(stated)}")
        if self.trees is None or not self.trees.reads_pos:
            return [None] * len(sentences)
        for words, pos in zip(sentences, stated, strict=True):
            self.trees.check_pos(words, pos, tagged=self.tagger is not None)
        missing = [row for row, pos in enumerate(stated) if pos is None]
        complete = list(stated)
        if self.tagger is not None and missing:
            tagged = self.tagger.label([sentences[row] for row in missing], batch=batch)
            for row, pos in zip(missing, tagged, strict=True):
                complete[row] = pos
        return complete


def _split(folder: Path, card: Mapping[str, Any], split: str | None) -> str:
    """How a model's texts are split: as `split` says, or else its export."""
    if split is not None and split not in SPLITS:
        raise LabellerError(f"split: {split!r} is unknown; use {' or '.join(map(repr, SPLITS))}")
    # Training splits texts with one label each at white space.
    trained = WHITESPACE if card["unit"] == "sentence" else None
    if trained and split not in (None, trained):
        problem = "it labels whole texts, which its training split at white space"
        raise LabellerError(f"{folder}: {problem}; leave split out")
    return split or trained or card.get("split", SIGNS)


def _reopen(folder: Path, file: str, threads: int, split: str, tagger: Labeller | None) -> Labeller:
    model = Labeller(folder, file=file, threads=threads, split=split)
    model.tagger = tagger
    return model
