"""A cascade as it ships: the export of a student, that of its teacher, and a threshold that is chosen on dev.

DIR/…             the export of the student, whose export.json has an entry `cascade`
DIR/teacher/…     the export of the teacher

Shapes: N sentences.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from raykd.corpora.corpus import Corpus
from raykd.deploy.annotator_teacher import asked_annotator, source_files, stored_answers
from raykd.deploy.export import EXPORT_JSON, README, Export, export_run
from raykd.errors import ExportError
from raykd.metrics import score_metrics
from raykd.progress import part_of_work, report_progress
from raykd.recipes.run import Run
from raykd.serving.labeller import (
    CONFIDENCES,
    STUDENT,
    TEACHER,
    Answer,
    Ask,
    Labeller,
    LabellerError,
    confidence,
    load,
)
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.tasks import Task
from raykd.training.data import cached_corpus, sentence_languages
from raykd.training.load import Tagger, load_tagger
from raykd.training.model_folder import is_annotator

MOST_SENTENCES = 4000
"""Most sentences of dev and of test, evenly over the part, on which a cascade is measured."""
TIMED_SENTENCES, ROUNDS = 200, 3
SHARES = np.linspace(0, 1, 101)
"""Shares of sentences that may be passed on."""
BATCH = 32
RESAMPLES = 200
"""Samples of the bootstrap."""


@dataclass(frozen=True)
class Wish:
    """Aim of a cascade on dev: a share of the teacher's score, or a share of sentences passed on."""

    kept: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Rule:
    """The measure of confidence, and the threshold below which a sentence is passed on."""

    confidence: str
    threshold: float


@dataclass(frozen=True)
class Outcome:
    """A cascade on one part of the corpus.

    Attributes:
        sentences: Sentences that were labelled.
        share: Share of them that the teacher labelled.
        score: Score of the cascade.
        student: Score of the student alone.
        teacher: Score of the teacher alone.
        kept_from: Lower end of the 95 % interval of score / teacher, by a bootstrap over sentences.
        kept_to: Upper end.
        share_from: Lower end of the 95 % interval of the share.
        share_to: Upper end.
    """

    sentences: int
    share: float
    score: float
    student: float
    teacher: float
    kept_from: float
    kept_to: float
    share_from: float
    share_to: float

    @property
    def kept(self) -> float:
        """Score of the cascade as a share of the teacher's; 0 if the teacher has none."""
        return self.score / self.teacher if self.teacher else 0.0


@dataclass(frozen=True)
class CascadeExport:
    """A written cascade.

    Attributes:
        student: The export of the student.
        teacher: The export of the teacher; None for an annotator.
        rule: The rule by which sentences are passed on.
        outcomes: Part → outcome.
        milliseconds: `student`, `teacher` and `cascade` → mean time of a sentence of dev, alone on one thread; of an
            annotator's cascade that of the student.
    """

    student: Export
    teacher: Export | None
    rule: Rule
    outcomes: Mapping[str, Outcome]
    milliseconds: Mapping[str, float]


class BothAnswers:
    """The answers of a student and of its teacher to the sentences of a part.

    Args:
        student: The exported student.
        ask: The teacher; where it has no usable answer, that of the student counts.
        tagger: The student in PyTorch, for its labels.
        corpus: The corpus.
        part: Name of the part.
    """

    def __init__(self, student: Labeller, ask: Ask, tagger: Tagger, corpus: Corpus, part: str):
        table, form = corpus.parts[part], tagger.task.form
        rows = np.unique(np.linspace(0, table.num_rows - 1, min(table.num_rows, MOST_SENTENCES)).astype(int))
        table = table.take(rows)
        self.languages = list(sentence_languages(table))
        self.sentences = [words[form.words_in_front :] for words in table["tokens"].to_pylist()]
        self.student = student.answers(self.sentences, BATCH)
        asked = ask(self.sentences, BATCH)
        teachers = [theirs or own for theirs, own in zip(asked, self.student, strict=True)]
        gold = form.targets(table, pos=corpus.pos, labels=tagger.tag_set)

        numbers = {tag: number for number, tag in enumerate(tagger.tag_set.tags)}

        def as_compared(answers: Sequence[Answer]) -> tuple[Sequence[Any], Sequence[Any]]:
            paths = [np.array([numbers[label] for label in answer.best]) for answer in answers]
            return form.metric_inputs(gold, paths, corpus.tag_set)

        self._gold, of_student = as_compared(self.student)
        self._labels = {STUDENT: of_student, TEACHER: as_compared(teachers)[1]}
        self._task: Task = tagger.task

    @cached_property
    def confidences(self) -> Mapping[str, np.ndarray]:
        """Measure of confidence → that of the student's answers [N]."""
        return {kind: np.array([confidence(answer, kind) for answer in self.student]) for kind in CONFIDENCES}

    def score(self, passed_N: np.ndarray, rows_N: np.ndarray | None = None) -> float:
        """Return the score if the teacher labels some sentences.

        Args:
            passed_N: True for sentences that the teacher labels.
            rows_N: Sentences that count; None: all.
        """
        rows = range(len(passed_N)) if rows_N is None else rows_N.tolist()
        labels = [self._labels[TEACHER if passed_N[row] else STUDENT][row] for row in rows]
        gold, languages = [self._gold[row] for row in rows], [self.languages[row] for row in rows]
        return score_metrics(self._task.metric, {}, gold, labels, languages)["source"].mean

    def outcome(self, rule: Rule) -> Outcome:
        """Return the outcome of a rule, with intervals of a bootstrap over sentences.

        Args:
            rule: The rule.
        """
        passed_N = self.confidences[rule.confidence] < rule.threshold
        everything = np.ones_like(passed_N)
        generator = np.random.default_rng(0)
        kept, shares = [], []
        for _ in range(RESAMPLES):
            rows_N = generator.integers(0, len(passed_N), len(passed_N))
            teacher = self.score(everything, rows_N)
            kept.append(self.score(passed_N, rows_N) / teacher if teacher else 0.0)
            shares.append(float(passed_N[rows_N].mean()))
        ends = [float(end) for values in (kept, shares) for end in np.quantile(values, (0.025, 0.975))]
        return Outcome(
            len(passed_N), float(passed_N.mean()), self.score(passed_N), self.score(~everything),
            self.score(everything), *ends,
        )  # fmt: skip


def choose_rule(both: BothAnswers, wish: Wish) -> Rule:
    """Return the rule that meets a wish on dev with the fewest sentences passed on, or with the highest score.

    Args:
        both: Answers on dev.
        wish: The wish.
    """
    everything = np.ones(len(both.sentences), bool)
    needed = None if wish.kept is None else wish.kept * both.score(everything)
    best: tuple[float, float, Rule] | None = None
    for kind, confidence_N in both.confidences.items():
        shares = SHARES if wish.share is None else [wish.share]
        for share in shares:
            threshold = threshold_of(confidence_N, float(share))
            passed_N = confidence_N < threshold
            score = both.score(passed_N)
            if needed is not None and score < needed:
                continue
            cost = float(passed_N.mean()) if needed is not None else -score
            if best is None or (cost, -score) < best[:2]:
                best = (cost, -score, Rule(kind, threshold))
            break
    assert best is not None  # with all sentences passed on, a cascade is its teacher
    return best[2]


def threshold_of(confidence_N: np.ndarray, share: float) -> float:
    """Return the threshold below which a share of sentences lies; equal confidences are passed on together, or not.

    Args:
        confidence_N: Confidence of each sentence.
        share: From 0 to 1.
    """
    ordered = np.sort(confidence_N)
    count = round(share * len(ordered))
    if count == len(ordered):
        return float(np.nextafter(max(1.0, ordered[-1]), 2.0))
    if count == 0 or ordered[count - 1] == ordered[count]:
        return float(ordered[count])
    return float(ordered[count - 1 : count + 1].mean())


def mean_milliseconds(models: Mapping[str, Labeller], sentences: Sequence[Sequence[str]]) -> dict[str, float]:
    """Time the labelling of sentences one by one, by models in turns; return the mean of a sentence for each model.

    Sentences of which a cascade is not sure are longer than others, so its time is no mean of the others' times.

    Args:
        models: Name → model.
        sentences: Words of each sentence; some of them, evenly over the list, are timed.
    """
    rows = np.linspace(0, len(sentences) - 1, min(len(sentences), TIMED_SENTENCES)).astype(int)
    timed = [[[*map(str, sentences[row])]] for row in rows]
    rounds: dict[str, list[float]] = {name: [] for name in models}
    for number in range(ROUNDS + 1):
        for name, model in models.items():
            started = time.perf_counter()
            for sentence in timed:
                model.label(sentence, batch=1)
            if number:  # the first round warms up
                rounds[name].append(1e3 * (time.perf_counter() - started) / len(timed))
    return {name: statistics.median(values) for name, values in rounds.items()}


def export_cascade(
    student: Storage,
    teacher: Storage,
    target: Storage,
    *,
    store: Storage,
    wish: Wish,
    model_card: Callable[[Export], str] | None = None,
    split: str | None = None,
) -> CascadeExport:
    """Write a student and its teacher into one folder, with the threshold at which a wish is met on dev.

    Args:
        student: Folder of the student's run.
        teacher: Folder of the teacher's run.
        target: Folder of the export.
        store: Store with the corpus.
        wish: What the cascade must reach.
        model_card: See `export_run`.
        split: See `export_run`.

    Raises:
        StoreError: A folder is not a run, or is damaged.
        ExportError: One of the models has no export, the two give other labels, or the corpus has no dev.
    """
    with tempfile.TemporaryDirectory(prefix="raykd-") as place:
        folder = Storage(place)
        with part_of_work(0.0, 0.3):
            exported = export_run(student, folder, store=store, model_card=model_card, split=split)
        tagger, corpus = load_tagger(student.uri), cached_corpus(store.uri, exported.run.corpus_id)
        if not corpus.parts["dev"].num_rows:
            raise ExportError(
                f"{student.address}: the corpus has no dev, on which a threshold could be chosen"
            )
        if tagger.task.form.has_student_labels:
            raise ExportError(
                "a parser has no cascade: its labels stand for heads; export it without --cascade"
            )
        with part_of_work(0.3, 0.5):
            taught = _write_teacher(teacher, folder, tagger, store)
        models = {STUDENT: load(place), **({} if taught.labeller is None else {TEACHER: taught.labeller})}
        report_progress(0.5, "labelling dev with both models")
        dev = BothAnswers(models[STUDENT], taught.ask, tagger, corpus, "dev")
        report_progress(0.7, "choosing the threshold on dev")
        rule = choose_rule(dev, wish)
        outcomes = {"dev": dev.outcome(rule)}
        if corpus.parts["test"].num_rows:
            report_progress(0.8, "labelling test with both models")
            test = BothAnswers(models[STUDENT], taught.ask, tagger, corpus, "test")
            outcomes["test"] = test.outcome(rule)
        card = dict(folder.read_json(EXPORT_JSON))
        card["cascade"] = {TEACHER: TEACHER, **taught.card, **asdict(rule), "wish": asdict(wish)}
        card["cascade"] |= {part: asdict(outcome) for part, outcome in outcomes.items()}
        folder.write_json(EXPORT_JSON, card)
        report_progress(0.95, "timing the models")
        whole = {} if taught.labeller is None else {"cascade": load(place)}
        times = mean_milliseconds({**models, **whole}, dev.sentences)
        card["cascade"]["mean_ms"] = times
        folder.write_json(EXPORT_JSON, card)
        of_teacher = taught.export and replace(taught.export, address=target.child(TEACHER).address)
        written = CascadeExport(replace(exported, address=target.address), of_teacher, rule, outcomes, times)
        if folder.exists(README):
            folder.write(README, folder.read(README) + _card_section(written).encode())
        for file in sorted(path for path in Path(place).rglob("*") if path.is_file()):
            target.write(file.relative_to(place).as_posix(), file.read_bytes())
    return written


@dataclass(frozen=True)
class _Taught:
    """The teacher in the folder of a cascade.

    Attributes:
        ask: Its answers to sentences of the corpus.
        export: Its export; None for an annotator.
        labeller: The opened export; None for an annotator.
        card: Further entries of `cascade` in `export.json`.
    """

    ask: Ask
    export: Export | None = None
    labeller: Labeller | None = None
    card: Mapping[str, Any] = field(default_factory=dict)


def _write_teacher(teacher: Storage, folder: Storage, tagger: Tagger, store: Storage) -> _Taught:
    run = teacher.read_json(MODEL, Run.from_plain)
    target = folder.child(TEACHER)
    if is_annotator(run):
        annotator = asked_annotator(run)
        for name, content in source_files(annotator, store).items():
            target.write(name, content)
        tags: Any = tagger.tag_set  # no parser: the labels are tags
        ask = stored_answers(annotator, store, tags, tagger.task.unit)
        return _Taught(ask, card={"annotator": dict(run.model)})
    exported = export_run(teacher, target, store=store)
    try:
        labeller = load(Path(folder.uri) / TEACHER)
    except LabellerError as error:
        raise ExportError(str(error)) from error
    if differing := set(labeller.labels) ^ set(tagger.tag_set.tags):
        names = ", ".join(sorted(differing)[:5])
        raise ExportError(
            f"student and teacher have different labels ({names}); no cascade can be made of them"
        )
    return _Taught(labeller.answers, exported, labeller)


def _card_section(written: CascadeExport) -> str:
    lines = [
        "",
        "## Cascade",
        "",
        "Sentences of which the student is not sure are labelled by its teacher.",
        "",
    ]
    lines += ["| part | passed on | score | student alone | teacher alone |", "|---|---|---|---|---|"]
    lines += [
        f"| {part} | {outcome.share:.1%} | {outcome.score:.4f} | {outcome.student:.4f} | {outcome.teacher:.4f} |"
        for part, outcome in written.outcomes.items()
    ]
    return "\n".join([*lines, ""])
