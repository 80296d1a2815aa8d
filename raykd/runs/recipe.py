"""The recipe: the wings' configurations joined into one resolved description of what a run computes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from raykd.corpora.config import CorpusConfig
from raykd.corpora.source import Cap
from raykd.corpora.vocabulary import VocabularyConfig
from raykd.needs import missing
from raykd.objectives import Gold, Mix, ObjectiveConfig, annealed
from raykd.runs.student_faults import student_faults
from raykd.signals import Need
from raykd.spec import Frozen, KeyPath
from raykd.students import StudentConfig
from raykd.tasks import TASKS, Task
from raykd.teachers import TeacherConfig
from raykd.training import Duration, ScheduleConfig, TrainingConfig, with_an_end

if TYPE_CHECKING:
    from raykd.objectives import Objective

if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[tuple(TASKS)]
LayerGroup = Literal["head", "projection", "encoder", "embeddings"]
OF_THE_RUN = ("seed", "dropout")
"""What of `training` holds for a whole run, not for one stage."""


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
    """What teachers are trained on, where that differs from `corpus`.

    Dev and test stay those of `corpus`, and none of their sentences is trained on.
    """

    cap: Cap | Literal["same"] | None = "same"
    """Most labelled sentences per language; null takes all, `same` is `corpus.cap`."""
    unlabelled_cap: Cap | Literal["same"] | None = "same"
    """Most unlabelled sentences per language, of which teachers only take words into their vocabulary. Set it where
    `corpus.unlabelled_cap` is searched, and the teachers are the same for every setting."""


class Stage(Frozen):
    """One objective on one text for some epochs. It starts from the best state of the stage before."""

    objective: ObjectiveConfig
    text: Literal["labelled", "unlabelled", "all"] | None = None
    """What it is trained on; by default all text, and for gold labels the labelled text."""
    schedule: ScheduleConfig | None = None
    """What is written here replaces the same of the sweep file's own `schedule`."""
    training: TrainingConfig | None = None
    """What is written here replaces the same of the sweep file's own `training`; seed and dropout hold for all."""
    layers: Literal["all", "unfreeze"] | Annotated[tuple[LayerGroup, ...], Field(min_length=1)] = "all"
    """Which layer groups train: all, those that are listed, or `unfreeze`: from the top down, one more at each step,
    each step from the best state of the one before (Mukherjee & Awadallah 2020, §3.3)."""
    head: Literal["keep", "new"] = "keep"
    """`new`: the student's head is drawn anew when the stage begins. In Mukherjee & Awadallah's code every stage has a
    head of its own."""
    select: Literal["dev", "loss"] = "dev"
    """What its best state is chosen by: the dev score, or its own loss on held-out text."""
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """With `select: loss`, the share of its text that is not trained on."""


class Strategy(Frozen):
    """A list of stages with a name, as `strategies` has them."""

    name: Annotated[str, Field(min_length=1)]
    """Its key in `strategies`; written only where a strategy stands in the place of its name."""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    scope: Literal["language", "all"] | None = None
    """Replaces `student.scope`."""


class Recipe(Frozen):
    """One student, fully resolved: from the corpus to the training settings."""

    task: TaskName = "ner"
    corpus: CorpusConfig
    teachers: TeacherConfig
    teacher_corpus: TeacherCorpus | None = None
    student: StudentConfig
    objective: ObjectiveConfig | None = None
    """The short form of one stage; or write `stages`."""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)] | None = None
    strategy: Strategy | None = None
    """The name of one of `strategies`."""
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()
    start_from: Annotated[str, Field(min_length=1)] | None = None
    """A finished run whose weights training starts from: its id in the store, or its folder."""
    store: Annotated[str, Field(min_length=1)] = ".raykd"
    """URI of the store: a folder, s3://…, gs://…"""
    resources: Resources = Resources()

    @model_validator(mode="after")
    def _one_way_of_writing_stages(self) -> Self:
        got = [name for name in ("objective", "stages", "strategy") if getattr(self, name) is not None]
        if len(got) != 1:
            raise ValueError(
                "write one of `objective: …` (one stage), `stages: […]` and `strategy: NAME`; "
                f"got {' and '.join(got) or 'none of them'}"
            )
        return self

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """The stages; `objective` is one of them."""
        if self.strategy is not None:
            return self.strategy.stages
        return self.stages if self.stages is not None else (Stage(objective=self.objective or Gold()),)

    @property
    def scoped_student(self) -> StudentConfig:
        """The student, with the scope that its strategy says."""
        scope = self.strategy and self.strategy.scope
        return self.student.model_copy(update={"scope": scope}) if scope else self.student

    @property
    def method(self) -> str:
        """The name of the strategy, or the kind of the objective (of several stages, each one's); gold labels alone are
        `gold` in any strategy."""
        kinds = [stage.objective.kind for stage in self.all_stages]
        if self.strategy is not None:
            return kinds[0] if set(kinds) == {"gold"} else self.strategy.name
        return " > ".join(kinds)

    def on_gold(self) -> Self:
        """The same student, trained on gold labels alone."""
        alone = {"objective": Gold(), "stages": None, "strategy": None, "start_from": None}
        return self.model_copy(update=alone | {"student": self.scoped_student})

    @property
    def labels(self) -> Task:
        """The entry of the task table."""
        return TASKS[self.task]


def stage_text(stage: Stage, *, unlabelled: bool) -> str:
    """Which text a stage is trained on, where the corpus has unlabelled text or not."""
    text = stage.text or stage.objective.text
    return text if unlabelled else "labelled"


def stage_needs(stage: Stage, *, unlabelled: bool) -> tuple[Need, ...]:
    """The signals that a stage reads."""
    return stage_objective(stage, unlabelled=unlabelled).needs


def stage_objective(stage: Stage, *, unlabelled: bool) -> Objective:
    """What the stage trains on: its objective, weighed by λ against labels where it is annealed."""
    return annealed(stage.objective, unlabelled=stage_text(stage, unlabelled=unlabelled) != "labelled")


def resolved_stage(stage: Stage, recipe: Recipe, *, unlabelled: bool) -> dict[str, Any]:
    """The stage as plain data, every default filled in; what has no effect is omitted."""
    schedule = with_an_end(recipe.schedule.model_dump(mode="json") | _written(stage.schedule))
    if not stage.objective.anneals and not stage.objective.follows_lambda:
        schedule = {key: schedule[key] for key in Duration.model_fields}
    return {
        "objective": stage.objective.model_dump(mode="json"),
        "text": stage_text(stage, unlabelled=unlabelled),
        "schedule": schedule,
        "training": _own_training(stage, recipe),
        "layers": stage.layers if isinstance(stage.layers, str) else sorted(stage.layers),
        "select": stage.select,
        **({"held_out": stage.held_out} if stage.select == "loss" else {}),
        **({"head": stage.head} if stage.head != "keep" else {}),
    }


def _written(section: Frozen | None) -> dict[str, Any]:
    """What of a section is written down; defaults are omitted."""
    return {} if section is None else section.model_dump(mode="json", include=section.model_fields_set)


def _own_training(stage: Stage, recipe: Recipe) -> dict[str, Any]:
    """What the stage's training sets otherwise than the sweep file's own."""
    common = recipe.training.model_dump(mode="json")
    return {key: value for key, value in _written(stage.training).items() if value != common[key]}


def recipe_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """What no section can see alone: (path, message) for each mismatch between sections."""
    faults: list[tuple[KeyPath, str]] = []
    for place, stage in enumerate(recipe.all_stages):
        listed: KeyPath = ("strategy", "stages") if recipe.strategy is not None else ("stages",)
        where: KeyPath = () if recipe.objective is not None else (*listed, place)
        faults += _stage_faults(recipe, stage, where)
    faults += _task_faults(recipe)
    faults += _teacher_corpus_faults(recipe)
    faults += _language_faults(recipe)
    faults += student_faults(recipe, resolved_vocabulary(recipe))
    trained = {("training",): recipe.training, ("teachers", "training"): recipe.teachers.training}
    faults += [
        ((*path, "precision"), "'fp16' needs a GPU: set resources.gpus_per_worker, or use bf16 or float32")
        for path, training in trained.items()
        if training.precision == "fp16" and not recipe.resources.gpus_per_worker
    ]
    return faults


def resolved_vocabulary(recipe: Recipe) -> VocabularyConfig:
    """The student's vocabulary; `teacher` stands for its teacher's."""
    own, teacher = recipe.student.vocabulary, recipe.teachers.tokenizer
    if own.kind != "teacher":
        return own
    if own.pruned is not None and teacher.kind == "pretrained":
        return teacher.model_copy(update={"pruned": own.pruned})
    return teacher


# What makes a need go away, where a teacher cannot meet it.
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "kbest": "set k: 1",
        "pairs": "give the student decoder: maxent",
        "softened": "set temperature_mode: local",
        "emissions": "use posterior, token or structural",
    }
)


def _stage_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    kind = (*where, "objective", "kind")
    messages = (*_signal_faults(recipe, stage.objective), *_layer_faults(recipe, stage.objective))
    faults: list[tuple[KeyPath, str]] = [(kind, message) for message in messages]
    decoders = {"teachers": recipe.teachers.decoder, "student": recipe.student.decoder}
    if stage.objective.maxent_only and "crf" in decoders.values():
        got = ", ".join(f"{section}: {decoder}" for section, decoder in decoders.items())
        message = f"{stage.objective.kind!r} is between MaxEnt models, got {got}; use 'structural'"
        faults.append((kind, message))
    faults += _text_faults(recipe, stage, where)
    if "projection" in stage.layers and recipe.student.projection is None:
        hint = "set student.projection, or omit it here"
        faults.append(((*where, "layers"), f"the student has no layer group 'projection'; {hint}"))
    own = stage.training.model_fields_set if stage.training is not None else ()
    hint = "holds for the whole run; write it in the sweep file's own training"
    return faults + [((*where, "training", name), f"{name} {hint}") for name in OF_THE_RUN if name in own]


def _text_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """Text that the corpus lacks, or of which the objective has nothing."""
    has_text, objective, text = recipe.corpus.has_text, stage.objective, (*where, "text")
    faults: list[tuple[KeyPath, str]] = []
    if objective.needs_unlabelled and not has_text:
        hint = "without unlabelled text it is the same as 'gold': set corpus.unlabelled, or use 'top_k' with k: 1"
        faults.append(((*where, "objective", "kind"), hint))
    elif objective.needs_unlabelled and stage.text == "labelled":
        hint = "set text: all, or use 'gold'"
        faults.append((text, f"on labelled text {objective.kind!r} is the same as 'gold'; {hint}"))
    if stage.text in ("unlabelled", "all") and not has_text:
        faults.append((text, "the corpus has no unlabelled text; set corpus.unlabelled"))
    if stage.text == "unlabelled" and objective.text == "labelled":
        faults.append((text, "gold labels say nothing about unlabelled text; use 'top_1'"))
    return faults + _part_faults(stage, where, has_text=has_text)


def _part_faults(stage: Stage, where: KeyPath, *, has_text: bool) -> list[tuple[KeyPath, str]]:
    """Parts of a mix that are of text that the corpus or the stage lacks, or of which they have nothing."""
    faults: list[tuple[KeyPath, str]] = []
    for place, part in enumerate(stage.objective.parts if isinstance(stage.objective, Mix) else ()):
        path = (*where, "objective", "parts", place, "text")
        if part.text == "unlabelled" and not has_text:
            faults.append((path, "the corpus has no unlabelled text; set corpus.unlabelled"))
        elif "all" not in (part.text, stage.text or "all") and part.text != stage.text:
            faults.append((path, f"the stage is trained on {stage.text} text alone; set its text: all"))
        elif part.text == "unlabelled" and part.objective.text == "labelled":
            faults.append((path, "gold labels say nothing about unlabelled text; use 'top_1'"))
    return faults


def _signal_faults(recipe: Recipe, objective: Any) -> list[str]:
    """The signals that an objective or the student's decoder reads and the teacher does not offer."""
    needs = list(objective.needs)
    if objective.reads_pairs and recipe.student.decoder == "crf":
        needs.append(Need("pairs"))
    lacking = missing(needs, recipe.teachers.offers)
    if not lacking:
        return []
    unmet = [need.signal for need in needs if missing([need], recipe.teachers.offers)]
    hints = [_HINTS[signal] for signal in unmet if signal in _HINTS]
    if not missing(needs, recipe.teachers.own_signals):
        hints.append("or set teachers.combine: scores")
    hint = "".join(f"; {hint}" for hint in dict.fromkeys(hints))
    return [f"{lacking} (teacher {recipe.teachers.kind!r}){hint}"]


def _layer_faults(recipe: Recipe, objective: Objective) -> list[str]:
    """Layers that an objective reads and that the teacher's or the student's encoder does not have."""
    teacher = [need.layer for need in objective.needs if need.layer is not None]
    sides = (
        ("teacher", recipe.teachers.depth, teacher),
        ("student", recipe.student.depth, objective.student_layers),
    )
    return [
        f"the {side}'s encoder has no layer {layer}; choose from 0 (its input) to {depth}"
        for side, depth, layers in sides
        for layer in layers
        if depth is not None and not -depth - 1 <= layer <= depth
    ]


def _task_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """What a task's labels exclude: spans without span tags, transitions where there is one label."""
    task, faults = recipe.labels, []
    if recipe.corpus.unit != task.unit:
        message = f"source {recipe.corpus.source!r} has one label per {recipe.corpus.unit}"
        hint = (
            "set task: classification"
            if recipe.corpus.unit == "sentence"
            else "use source: tsv, or set columns.text"
        )
        faults.append(
            (("task",), f"{message}, and task {recipe.task!r} predicts one per {task.unit}; {hint}")
        )
    if recipe.teachers.decoder == "spans" and task.scheme != "bioes":
        message = (
            f"{recipe.teachers.kind!r} finds spans, and the tags of task {recipe.task!r} are {task.scheme}"
        )
        faults.append((("teachers", "kind"), f"{message}; use 'bilstm_crf' or 'bilstm_maxent'"))
    if recipe.teachers.kind == "hf_sequence_classifier" and task.unit != "sentence":
        message = f"it labels sentences, and task {recipe.task!r} labels words; use 'hf_token_classifier'"
        faults.append((("teachers", "kind"), message))
    if task.unit == "sentence":
        alone = "one label per sentence has no transitions"
        if recipe.teachers.decoder == "crf":
            faults.append((("teachers", "kind"), f"{alone}; use 'bilstm_maxent'"))
        if recipe.student.decoder == "crf":
            faults.append((("student", "decoder"), f"{alone}; set student.decoder: maxent"))
    return faults


def _language_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    faults: list[tuple[KeyPath, str]] = []
    unlabelled = recipe.corpus.unlabelled_languages
    if recipe.teachers.scope == "language" and unlabelled:
        problem = f"no teacher can be trained for {', '.join(unlabelled)} without labels"
        hint = "set teachers.scope: all, or remove them from corpus.unlabelled_languages"
        faults.append((("teachers", "scope"), f"{problem}; {hint}"))
    targets = (*unlabelled, *recipe.corpus.zero_shot_languages)
    if recipe.scoped_student.scope == "language" and targets:
        problem = f"no student can be selected for {', '.join(targets)} without labels"
        section = "strategy" if recipe.strategy is not None and recipe.strategy.scope else "student"
        faults.append(((section, "scope"), f"{problem}; set student.scope: all"))
    return faults


def _teacher_corpus_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    own, faults = recipe.teacher_corpus, []
    if own is None:
        return []
    if not recipe.teachers.trained:
        faults.append((("teacher_corpus",), "the teacher is taken as it is; omit teacher_corpus"))
    if recipe.corpus.split is not None and own.cap != "same":
        # Another cap would draw other sentences for dev and test, and train on some of the student's.
        hint = "name dev and test instead of corpus.split, which draws them from the capped sentences"
        faults.append((("teacher_corpus", "cap"), hint))
    return faults
