"""The recipe: the wings' configurations joined into one resolved description of what a run computes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from raykd.corpora.config import CorpusConfig
from raykd.corpora.source import Cap
from raykd.corpora.vocabulary import VocabularyConfig
from raykd.objectives import ObjectiveConfig
from raykd.signals import Need, missing
from raykd.spec import Frozen, KeyPath
from raykd.students import StudentConfig
from raykd.teachers import TeacherConfig
from raykd.training import ScheduleConfig, TrainingConfig

if TYPE_CHECKING:
    from raykd.metrics import TagMetric  # brings seqeval, which takes a second to import

Task = Literal["ner", "pos", "aspect"]


class TaskKind(NamedTuple):
    """The tag scheme inside, the metric that selects, and what that metric is called."""

    scheme: Literal["bioes", "flat"]
    metric: TagMetric
    label: str


TASKS: Mapping[str, TaskKind] = MappingProxyType(
    {
        "ner": TaskKind("bioes", "f1", "F1"),
        "pos": TaskKind("flat", "accuracy", "accuracy"),
        # A term's polarity is its type: a term found with the wrong polarity is wrong (SemEval-2016, task 5).
        "aspect": TaskKind("bioes", "f1", "aspect F1"),
    }
)


class Resources(Frozen):
    """What one run takes of the cluster. Never part of an identity: one worker or four compute the same."""

    workers: Annotated[int, Field(ge=1)] = 1
    cpus_per_worker: Annotated[float, Field(gt=0)] = 1.0
    gpus_per_worker: Annotated[float, Field(ge=0)] = 0.0
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """Runs at the same time; by default as many as fit."""
    precompute_workers: Annotated[int, Field(ge=1)] | None = None
    """Actors that hold a teacher while the transfer set is computed; by default as many as fit."""
    max_failures: Annotated[int, Field(ge=0)] = 2
    """How often a run whose worker died is taken up again from its last checkpoint."""


class TeacherCorpus(Frozen):
    """What teachers are trained on, where that differs from `corpus`: only what is written here differs.

    Dev and test stay those of `corpus`, and none of their sentences is trained on.
    """

    cap: Cap | None
    """Most labelled sentences per language; null takes all."""


class Recipe(Frozen):
    """One student, fully resolved: from the corpus to the training settings."""

    task: Task = "ner"
    corpus: CorpusConfig
    teachers: TeacherConfig
    teacher_corpus: TeacherCorpus | None = None
    student: StudentConfig
    objective: ObjectiveConfig
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()
    store: Annotated[str, Field(min_length=1)] = ".raykd"
    """URI of the store: a folder, s3://…, gs://…"""
    resources: Resources = Resources()


def recipe_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """What no section can see alone: (path, message) for each mismatch between sections."""
    faults: list[tuple[KeyPath, str]] = []
    faults += _signal_faults(recipe)
    decoders = {"teachers": recipe.teachers.decoder, "student": recipe.student.decoder}
    if recipe.objective.maxent_only and "crf" in decoders.values():
        told = ", ".join(f"{section}: {decoder}" for section, decoder in decoders.items())
        faults.append(
            (
                ("objective", "kind"),
                f"{recipe.objective.kind!r} is between MaxEnt models, got {told}; use 'structural'",
            )
        )
    faults += _teacher_corpus_faults(recipe)
    if recipe.objective.kind == "top_1" and not recipe.corpus.has_text:
        hint = "without unlabelled text it is 'gold': set corpus.unlabelled, or use 'top_k' with k: 1"
        faults.append((("objective", "kind"), hint))
    if recipe.teachers.scope == "language" and recipe.corpus.unlabelled_languages:
        told = ", ".join(recipe.corpus.unlabelled_languages)
        hint = f"no teacher can be trained for {told} without labels: set teachers.scope: all"
        faults.append((("teachers", "scope"), f"{hint}, or leave them out of corpus.unlabelled_languages"))
    vocabulary = resolved_vocabulary(recipe)
    if recipe.student.word_dropout and vocabulary.kind == "pretrained":
        hint = "only words and WordPieces of raykd's own have its unknown piece; leave word_dropout out"
        faults.append((("student", "word_dropout"), f"the vocabulary is a checkpoint's: {hint}"))
    trained = {("training",): recipe.training, ("teachers", "training"): recipe.teachers.training}
    faults += [
        ((*path, "precision"), "'fp16' needs a GPU: set resources.gpus_per_worker, or use bf16 or float32")
        for path, training in trained.items()
        if training.precision == "fp16" and not recipe.resources.gpus_per_worker
    ]
    return faults


def resolved_vocabulary(recipe: Recipe) -> VocabularyConfig:
    """The student's vocabulary; `teacher` stands for its teacher's."""
    own = recipe.student.vocabulary
    return recipe.teachers.vocabulary if own.kind == "teacher" else own


# What makes a need go away, where a teacher cannot meet it.
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "kbest": "set k: 1",
        "pairs": "give the student decoder: maxent",
        "softened": "set temperature_mode: local",
        "emissions": "use posterior, token or structural",
    }
)


def _signal_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """What the teacher does not tell: signals that the objective or the student's decoder reads, flat tags."""
    needs, faults = list(recipe.objective.needs), []
    if recipe.objective.reads_pairs and recipe.student.decoder == "crf":
        needs.append(Need("pairs"))
    if lacking := missing(needs, recipe.teachers.offers):
        unmet = [need.signal for need in needs if missing([need], recipe.teachers.offers)]
        hints = [_HINTS[signal] for signal in unmet if signal in _HINTS]
        if not missing(needs, recipe.teachers.tells):
            hints.append("or set teachers.combine: scores")
        hint = "".join(f"; {hint}" for hint in dict.fromkeys(hints))
        faults.append((("objective", "kind"), f"{lacking} (teacher {recipe.teachers.kind!r}){hint}"))
    scheme = TASKS[recipe.task].scheme
    if recipe.teachers.decoder == "spans" and scheme != "bioes":
        told = f"{recipe.teachers.kind!r} finds spans, and the tags of task {recipe.task!r} are {scheme}"
        faults.append((("teachers", "kind"), f"{told}; use 'bilstm_crf' or 'bilstm_maxent'"))
    return faults


def _teacher_corpus_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    own, faults = recipe.teacher_corpus, []
    if own is None:
        return []
    if not recipe.teachers.trained:
        faults.append((("teacher_corpus",), "the teacher is taken as it is, so leave teacher_corpus out"))
    if recipe.corpus.split is not None:
        # Another cap would draw other sentences for dev and test, and train on some of the student's.
        hint = "name dev and test instead of corpus.split, which draws them from the capped sentences"
        faults.append((("teacher_corpus", "cap"), hint))
    return faults
