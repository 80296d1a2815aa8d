"""An exported model as a labeller of text, or of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from .cascade import Answer, Ask, Cascade, open_annotator
from .folder import CARD, FLOAT32, INT8, LABELS, VOCABULARY, LabellerError, read_chain, read_json
from .lattice import legal_chain, sum_of_chains
from .pieces import speller, splitter, with_package, with_special_words
from .session import Reader, Session
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
    away: Literal["student", "error"] = "student",
    run_code: bool = False,
) -> Labeller:
    """Load a model from a folder written by `raykd export`.

    Args:
        folder: Folder with `export.json`.
        file: `model.onnx`, or `model-int8.onnx`: a quarter of the size, but some labels differ (`export.json` says how
            many).
        threads: Threads of the processor.
        pos: For a parser, the folder of a model of task `pos`, which gives parts of speech to input without them.
        split: Way to split texts into words: `signs`, at white space and at signs, or `whitespace`, at white space
            alone; None: as the export says.
        away: For a cascade whose teacher is away or fails: give the answer of the `student`, marked, or raise an
            `error`.
        run_code: For a cascade whose teacher is an annotator: open it, which runs a Python file of the folder, or loads
            the pipeline that the folder names. Set it only if you trust the folder. False: that teacher is away.

    Raises:
        LabellerError: A file is missing or differs from the exported one; a package is missing; `pos` is not such a
            model, or is of no use; or `split` is unknown, or differs from the training of a model with one label per
            text.
    """
    model = Labeller(Path(folder), file=file, threads=threads, split=split, away=away, run_code=run_code)
    if pos is not None:
        model.set_tagger(Labeller(Path(pos), file=file, threads=threads))
    return model


class Labeller:
    """An exported model, opened by `load`. Call it with a text or an iterable of texts; see `label` for words."""

    def __init__(
        self,
        folder: Path,
        *,
        file: str = FLOAT32,
        threads: int = 1,
        split: str | None = None,
        away: str = "student",
        run_code: bool = False,
    ):
        self.folder, self.file, self.card = folder, file, read_json(folder, CARD)
        self._threads, self._away, self._run_code = threads, away, run_code
        if "decoder" not in self.card:
            raise LabellerError(f"{folder / CARD}: an earlier version wrote it; export the model again")
        if file not in (FLOAT32, INT8):
            raise LabellerError(f"file: {file!r} is no model; use {FLOAT32!r} or {INT8!r}")
        labels = read_json(folder, LABELS)
        self.labels: tuple[str, ...] = tuple(labels["tags"])
        self.utterances = labels.get("scheme") == "utterance"
        """True if the model gives an intent for each text, beside the slots of the words."""
        self.has_spans = labels.get("scheme") in ("bioes", "utterance")
        self.trees = TreeLabels(labels) if "encoding" in labels else None
        """The meaning of a parser's labels; None for other models."""
        self.tagger: Labeller | None = None
        """Source of a parser's missing parts of speech; None without one."""
        self.unit: str = self.card["unit"]
        self.pairs: bool = self.card.get("pairs", False)
        """True if the model labels pairs of texts, with a tab between the two."""
        self.split = _split(folder, self.card, split)
        """Way to split texts into words, one of `SPLITS`."""
        session = Session(folder, file, self.card["files"].get(file, {}).get("bytes"), threads)
        vocabulary, special = read_json(folder, VOCABULARY), self.card["special"]
        make = splitter if self.card["tokenizer"] == "own" else with_package
        chain = read_chain(folder) if self.card["decoder"] == "crf" else None
        legal = legal_chain(labels["legal"], len(self.labels)) if "legal" in labels else None
        self._decoding = sum_of_chains(chain, legal)
        self.temperature: float = (self.card.get("calibration") or {}).get("temperature", 1.0)
        """Divides the scores before probabilities are computed, so that these are right as often as they say."""
        self._reader = Reader(
            session,
            special,
            self.card["piece_limit"],
            with_special_words(make(vocabulary["pieces"], unknown=special["unknown"]), special),
            speller(vocabulary["characters"]) if "characters" in session.inputs else None,
            one_label=self.unit == "sentence",
            utterances=self.utterances,
            decoding=self._decoding,
        )
        self.cascade: Cascade | None = None
        """The rule for sentences of which the model is not sure; None without a teacher."""
        if "cascade" in self.card:
            self.set_teacher(self._open_teacher())

    def _open_teacher(self) -> Ask | None:
        """Return the teacher of a cascade; None if it is away and may be."""
        place = self.card["cascade"]["teacher"]
        if "annotator" in self.card["cascade"]:
            annotator = open_annotator(self.folder, self.card) if self._run_code else None
            if annotator is None and self._away == "error":
                hint = (
                    "install raykd"
                    if self._run_code
                    else "if you trust the folder, load it with run_code=True"
                )
                raise LabellerError(f"{self.folder}: its teacher is an annotator, whose code is run; {hint}")
            return annotator
        try:
            teacher = Labeller(self.folder / place, file=self.file, threads=self._threads, away=self._away)
        except LabellerError:
            if self._away == "error" or (self.folder / place).is_dir():
                raise
            return None
        if set(teacher.labels) != set(self.labels):
            raise LabellerError(
                f"{teacher.folder}: the teacher has other labels than the student; export both again"
            )
        return teacher.answers

    def set_teacher(self, teacher: Ask | None) -> None:
        """Let `teacher` answer for sentences of which the model is not sure.

        Args:
            teacher: Function of sentences (lists of words) and of the number to be read together; None: it is away.
        """
        self.cascade = Cascade.from_card(self.card["cascade"], teacher, may_be_away=self._away == "student")

    def __reduce__(self) -> tuple[Callable[..., Labeller], tuple[Any, ...]]:
        # A session of ONNX Runtime cannot be pickled, so another process opens the files again.
        return _reopen, (
            self.folder,
            self.file,
            self._threads,
            self.split,
            self._away,
            self._run_code,
            self.tagger,
        )

    @property
    def needs_pos(self) -> bool:
        """True if sentences must come with parts of speech: a parser whose labels name them, without a tagger."""
        return self.trees is not None and self.trees.reads_pos and self.tagger is None

    def set_tagger(self, tagger: Labeller) -> None:
        """Let `tagger` give missing parts of speech. Raises the errors of `check_tagger`."""
        self.check_tagger(tagger)
        self.tagger = tagger

    def check_tagger(self, tagger: Labeller) -> None:
        """Raise LabellerError unless `tagger` gives the parts of speech named by the labels."""
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
        """Label a text (returns `Labelled`) or several (returns an iterator, in their order).

        Texts are read as they come, in batches of similar length: any number of them. A text has one sentence or a few;
        a parser reads one.

        Args:
            text: A text, or an iterable of texts. In an iterable, a text may also be a list of its words, which are
                then taken as they are (the result's `text` has a space between them), or a list of pairs of a word and
                its part of speech, for a parser that needs them. A pair of texts is one text with a tab between the
                two.
            batch: Texts that are read together.

        Raises:
            TypeError: A text is neither a string nor words.
            ValueError: A text is not Unicode, or not in the form required by `parse` or `check_pair`.
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
        """Return the trees of sentences: (head, relation) by word; head 0 is the root, h the h-th word.

        Each tree has one root.

        Args:
            sentences: Sentences, lists of words.
            pos: Parts of speech, one for every word, for a model whose labels name them.
            batch: Sentences that are read together.

        Raises:
            TypeError: A sentence is a string, not a list of words; or the model does not parse.
            ValueError: A sentence has no words, or parts of speech are missing or unknown.
        """
        return [[(arc.head, arc.relation) for arc in arcs] for arcs in self.arcs(sentences, pos, batch=batch)]

    def arcs(
        self,
        sentences: Iterable[Iterable[str]],
        pos: Iterable[Iterable[str] | None] | None = None,
        *,
        batch: int = 32,
    ) -> list[list[Arc]]:
        """Return the trees of `parse` with probabilities, and whether a head was changed to make a tree.

        Args:
            sentences: Sentences, lists of words.
            pos: Parts of speech, as in `parse`.
            batch: Sentences that are read together.

        Raises:
            TypeError: As `parse`.
            ValueError: As `parse`.
        """
        if self.trees is None:
            raise TypeError(f"{self.folder}: task {self.card['task']!r} predicts no trees; call label")
        checked = checked_sentences(sentences)
        stated = (
            [None] * len(checked) if pos is None else [tags if tags is None else list(tags) for tags in pos]
        )
        complete = self._complete_pos(checked, stated, batch)
        results = zip(self._reader.read(checked, batch), complete, strict=True)
        return [self.trees.arcs(scores_TY, tags) for (_, scores_TY), tags in results]

    def label(self, sentences: Iterable[Iterable[str]], *, batch: int = 32) -> list[list[str]]:
        """Return the labels of sentences: one per word, or one for a task that labels whole texts.

        A parser's labels encode heads; use `parse` to read them. Utterances have their slots.

        Args:
            sentences: Sentences, lists of words. A pair of texts is the words of both, with a tab as a word between
                them.
            batch: Sentences that are read together.

        Raises:
            TypeError: A sentence is a string, not a list of words.
            ValueError: A sentence has no words, or is no pair although the model labels pairs.
        """
        labels = self._best_labels(sentences, batch)
        return [slots for _, *slots in labels] if self.utterances else labels

    def intents_and_slots(
        self, sentences: Iterable[Iterable[str]], *, batch: int = 32
    ) -> list[tuple[str, list[str]]]:
        """Return the intents of utterances, and the slots of their words as BIOES tags.

        Args:
            sentences: Utterances, lists of words.
            batch: Sentences that are read together.

        Raises:
            TypeError: The model gives no intents, or as `label`.
            ValueError: As `label`.
        """
        if not self.utterances:
            raise TypeError(f"{self.folder}: task {self.card['task']!r} predicts no intents; call label")
        return [
            (intent.removeprefix(INTENT), slots) for intent, *slots in self._best_labels(sentences, batch)
        ]

    def probabilities(self, sentences: Iterable[Iterable[str]], *, batch: int = 32) -> list[np.ndarray]:
        """Return the probabilities of all labels, in the order of `labels`, for each sentence.

        They are those of the model restricted to legal labellings, calibrated on dev when the model was exported.

        Args:
            sentences: Sentences, lists of words.
            batch: Sentences that are read together.

        Returns:
            For each sentence float64 [T, Y], or [1, Y] for a task that labels whole texts.

        Raises:
            TypeError: As `label`.
            ValueError: As `label`.
        """
        answers = self.answers(checked_sentences(sentences, pairs=self.pairs), batch)
        front = int(self.utterances)
        return [answer.marginals(self.labels)[front:] for answer in answers]

    def answers(self, sentences: Sequence[Sequence[str]], batch: int) -> list[Answer]:
        """Return the labels of sentences with their scores; of a cascade, those of the model that answered.

        Args:
            sentences: Sentences, lists of words.
            batch: Sentences that are read together.
        """
        answers = [
            Answer(self.labels, best_T, scores_TY, self._decoding, self.temperature)
            for best_T, scores_TY in self._reader.read(sentences, batch)
        ]
        return answers if self.cascade is None else self.cascade.complete(answers, sentences, batch)

    def _best_labels(self, sentences: Iterable[Iterable[str]], batch: int) -> list[list[str]]:
        """Return the best labels of sentences; for an utterance the intent's first."""
        return [answer.best for answer in self.answers(checked_sentences(sentences, pairs=self.pairs), batch)]

    def _describe(self, texts: Iterable[Text], batch: int) -> Iterator[Labelled]:
        """Yield the results of texts, which are read in blocks of `READ_AHEAD` batches."""
        texts = iter(texts)
        while block := [
            read_text(text, self.split, pairs=self.pairs) for text in islice(texts, READ_AHEAD * batch)
        ]:
            filled = [(text, places, pos) for text, places, pos in block if places]
            sentences = [[text[a:b] for a, b in places] for text, places, _ in filled]
            pos: PosOf = [pos for _, _, pos in filled]
            if self.trees is not None:
                pos = self._complete_pos(sentences, pos, batch)
            results = zip(pos, self.answers(sentences, batch), strict=True)
            for text, places, _ in block:
                yield self._describe_one(text, places, *next(results)) if places else Labelled(text)

    def _describe_one(self, text: str, places: Places, pos: Sequence[str] | None, answer: Answer) -> Labelled:
        if self.trees is not None:
            return describe_tree(text, places, self.trees.arcs(answer.scores_TY, pos))
        best_T, lattice = answer.best_T, answer.lattice()
        if self.unit == "sentence":
            described = describe_sentence(text, answer.labels, best_T, lattice)
        else:
            described = describe_words(text, places, answer.labels, best_T, lattice, spans=self.has_spans)
        return replace(described, given_by=answer.given_by)

    def _complete_pos(self, sentences: Sentences, stated: PosOf, batch: int) -> PosOf:
        """Return the parts of speech for a parser: the given ones, or else the tagger's."""
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
    """Return the way to split a model's texts: `split`, or else the export's."""
    if split is not None and split not in SPLITS:
        raise LabellerError(f"split: {split!r} is unknown; use {' or '.join(map(repr, SPLITS))}")
    # Training splits texts with one label each at white space.
    trained = WHITESPACE if card["unit"] == "sentence" else None
    if trained and split not in (None, trained):
        problem = "it labels whole texts, which its training split at white space"
        raise LabellerError(f"{folder}: {problem}; leave split out")
    return split or trained or card.get("split", SIGNS)


def _reopen(
    folder: Path, file: str, threads: int, split: str, away: str, run_code: bool, tagger: Labeller | None
) -> Labeller:
    model = Labeller(folder, file=file, threads=threads, split=split, away=away, run_code=run_code)
    model.tagger = tagger
    return model
