"""The recipe: the wings' configurations joined into one resolved description of what a run computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from raykd.corpora.config import CorpusConfig
from raykd.corpora.source import Cap
from raykd.corpora.vocabulary_config import VocabularyConfig
from raykd.identity import PlainObject
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration, ScheduleConfig, with_default_end
from raykd.objectives import Gold, Mix, ObjectiveConfig, annealed_objective
from raykd.recipes.resources import Resources
from raykd.signals import Need
from raykd.spec import Frozen
from raykd.students import StudentConfig
from raykd.students.vocabulary import TeacherVocabulary
from raykd.tasks import TASKS, Task
from raykd.teachers import TeacherConfig

if TYPE_CHECKING:
    from raykd.objectives import Objective

if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[tuple(TASKS)]
LayerGroup = Literal["head", "projection", "encoder", "embeddings"]
SEED = "{seed}"
"""Stands for the run's `training.seed` in a path of the student."""

RUN_SETTINGS = ("seed", "dropout", "deterministic")
"""Keys of `training` that hold for a whole run, not for one stage."""


class TeacherCorpus(Frozen):
    """The training text of the teachers, if it differs from `corpus`.

    Dev and test stay those of `corpus`, and none of their sentences is trained on.
    """

    cap: Cap | Literal["same"] | None = "same"
    """Most labelled sentences per language; null takes all, `same` stands for `corpus.cap`."""
    unlabelled_cap: Cap | Literal["same"] | None = "same"
    """Most unlabelled sentences per language. Teachers only take words from them into their vocabulary. Set it if
    `corpus.unlabelled_cap` is searched, so that the teachers are the same for every setting."""


class Stage(Frozen):
    """One objective on one text for some epochs. A stage starts from the best state of the stage before."""

    objective: ObjectiveConfig
    text: Literal["labelled", "unlabelled", "all"] | None = None
    """The text to train on; by default all text, and for gold labels the labelled text."""
    schedule: ScheduleConfig | None = None
    """Settings for this stage; they replace those of the top-level `schedule`."""
    training: TrainingConfig | None = None
    """Settings for this stage; they replace those of the top-level `training`. `seed`, `dropout` and `deterministic`
    hold for all stages and cannot be set here."""
    layers: Literal["all", "unfreeze"] | Annotated[tuple[LayerGroup, ...], Field(min_length=1)] = "all"
    """The layer groups that train: all, a list, or `unfreeze`: from the top down, one more at each step, and each step
    starts from the best state of the step before (Mukherjee & Awadallah 2020, §3.3)."""
    head: Literal["keep", "new"] = "keep"
    """`keep` goes on with the student's head; `new` initialises it again when the stage begins. In Mukherjee &
    Awadallah's code every stage has a new head."""
    select: Literal["dev", "loss"] = "dev"
    """Criterion of the best state: the dev score, or the stage's loss on held-out text."""
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """With `select: loss`, the share of the text that is held out from training."""


class Strategy(Frozen):
    """A named list of stages, as in `strategies`."""

    name: Annotated[str, Field(min_length=1)]
    """The strategy's key in `strategies`. Write it only if you write a whole strategy in the place of a name."""
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
    """The objective of a single stage, as a short form; for several stages write `stages`."""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)] | None = None
    strategy: Strategy | None = None
    """The name of one of `strategies`."""
    schedule: ScheduleConfig = ScheduleConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: Literal["legal", "independent"] = "legal"
    """Search for the best labelling if spans or intents forbid some labels to follow others. `legal`: the best
    labelling among the legal ones. `independent`, as in the papers: each word's best label for MaxEnt decoders and
    classifiers, and for a CRF the best labelling by its transitions alone. The setting holds for teachers and students,
    in scores, pseudo-labels, exports and wherever text is labelled; probabilities do not change."""
    start_from: Annotated[str, Field(min_length=1)] | None = None
    """A finished run whose weights training starts from: its id in the store, or its folder."""
    store: Annotated[str, Field(min_length=1)] = ".raykd"
    """URI of the store: a folder, s3://…, gs://…"""
    resources: Resources = Resources()

    @model_validator(mode="after")
    def _one_way_of_writing_stages(self) -> Self:
        written = [name for name in ("objective", "stages", "strategy") if getattr(self, name) is not None]
        if len(written) != 1:
            raise ValueError(
                "write one of `objective: …` (one stage), `stages: […]` and `strategy: NAME`; "
                f"got {' and '.join(written) or 'none of them'}"
            )
        return self

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """All stages; `objective` counts as one stage. A student's cut says which layers are compared."""
        stages = self.stages or (Stage(objective=self.objective or Gold()),)
        if self.strategy is not None:
            stages = self.strategy.stages
        layers = self.student.layers_in_teacher
        return tuple(
            stage.model_copy(update={"objective": stage.objective.with_layers_of(layers)}) for stage in stages
        )

    @property
    def scoped_student(self) -> StudentConfig:
        """The student, with the scope of its strategy, and with paths: the run's seed, the teacher's checkpoint."""
        scope = self.strategy and self.strategy.scope
        student = self.student.model_copy(update={"scope": scope}) if scope else self.student
        student = student.with_teacher_path(self.teachers)
        if not self.names_seed:
            return student
        return type(student).model_validate_json(
            student.model_dump_json().replace(SEED, str(self.training.seed))
        )

    @property
    def names_seed(self) -> bool:
        """True if a path of the student has `{seed}`, so that its starting files differ from seed to seed."""
        return SEED in self.student.model_dump_json()

    def with_seed_offset(self, offset: int) -> Self:
        """Return the recipe with `training.seed` raised by `offset`."""
        training = self.training.model_copy(update={"seed": self.training.seed + offset})
        return self.model_copy(update={"training": training})

    @property
    def method(self) -> str:
        """The name of the strategy, or the kinds of the stages' objectives; `gold` if all stages use gold labels."""
        kinds = [stage.objective.kind for stage in self.all_stages]
        if self.strategy is not None:
            gold_only = all(stage.objective == Gold() for stage in self.all_stages)
            return kinds[0] if gold_only else self.strategy.name
        return " > ".join(kinds)

    def on_gold_labels(self) -> Self:
        """Return the recipe of the same student trained on gold labels alone."""
        changes = {"objective": Gold(), "stages": None, "strategy": None, "start_from": None}
        return self.model_copy(update=changes | {"student": self.scoped_student})

    @property
    def task_entry(self) -> Task:
        """The task's entry in the task table; without gold labels the score is called agreement."""
        task = TASKS[self.task]
        return task.without_gold if self.corpus.annotator_labels else task


def stage_text(stage: Stage, *, unlabelled: bool) -> str:
    """Return the training text of a stage: `labelled`, `unlabelled` or `all`.

    Args:
        stage: The stage.
        unlabelled: Whether the corpus has unlabelled text; without any, the text is `labelled`.
    """
    text = stage.text or stage.objective.text
    return text if unlabelled else "labelled"


def names_text(stage: Stage, text: str) -> bool:
    """True if the stage, or a part of its mix, names this text.

    Args:
        stage: The stage.
        text: `labelled`, `unlabelled` or `all`.
    """
    parts = stage.objective.parts if isinstance(stage.objective, Mix) else ()
    return stage.text == text or any(part.text == text for part in parts)


def stage_needs(stage: Stage, *, unlabelled: bool) -> tuple[Need, ...]:
    """Return the signals for the objective of a stage.

    Args:
        stage: The stage.
        unlabelled: Whether the corpus has unlabelled text.
    """
    return stage_objective(stage, unlabelled=unlabelled).needs


def stage_objective(stage: Stage, *, unlabelled: bool) -> Objective:
    """Return the objective of a stage, mixed with gold labels by λ if it is annealed.

    Args:
        stage: The stage.
        unlabelled: Whether the corpus has unlabelled text.
    """
    return annealed_objective(
        stage.objective, unlabelled=stage_text(stage, unlabelled=unlabelled) != "labelled"
    )


def resolve_stage(stage: Stage, recipe: Recipe, *, unlabelled: bool) -> PlainObject:
    """Return the stage as plain data, with every default filled in and settings without effect left out.

    Args:
        stage: The stage.
        recipe: The recipe, whose `schedule` and `training` fill in what the stage does not set.
        unlabelled: Whether the corpus has unlabelled text.
    """
    schedule = with_default_end(recipe.schedule.model_dump(mode="json") | _written(stage.schedule))
    if not stage.objective.anneals and not stage.objective.follows_lambda:
        schedule = {key: schedule[key] for key in Duration.model_fields}
    return {
        "objective": stage.objective.model_dump(mode="json"),
        "text": stage_text(stage, unlabelled=unlabelled),
        "schedule": schedule,
        "training": _stage_training(stage, recipe),
        "layers": stage.layers if isinstance(stage.layers, str) else sorted(stage.layers),
        "select": stage.select,
        **({"held_out": stage.held_out} if stage.select == "loss" else {}),
        **({"head": stage.head} if stage.head != "keep" else {}),
    }


def _written(section: Frozen | None) -> dict[str, Any]:
    """Return the keys of a section set in the sweep file, without defaults."""
    return {} if section is None else section.model_dump(mode="json", include=section.model_fields_set)


def _stage_training(stage: Stage, recipe: Recipe) -> PlainObject:
    """Return the settings in the stage's `training` that differ from the top-level ones."""
    common = recipe.training.model_dump(mode="json")
    return {key: value for key, value in _written(stage.training).items() if value != common[key]}


def resolve_vocabulary(recipe: Recipe) -> VocabularyConfig:
    """Return the student's vocabulary; `teacher` stands for the teacher's vocabulary.

    Args:
        recipe: The recipe.
    """
    student, teacher = recipe.student.tokenizer, recipe.teachers.tokenizer
    if not isinstance(student, TeacherVocabulary):
        return student
    if student.pruned is not None and teacher.of_checkpoint:
        return teacher.model_copy(update={"pruned": student.pruned})
    return teacher
