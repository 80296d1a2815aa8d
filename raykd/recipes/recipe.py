"""The recipe: the wings' configurations joined into one resolved description of what a run computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from raykd.corpora.config import CorpusConfig
from raykd.corpora.source import Cap
from raykd.corpora.vocabulary import VocabularyConfig
from raykd.identity import PlainObject
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration, ScheduleConfig, with_an_end
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
"""In a path of the student, stands for the run's `training.seed`."""

RUN_SETTINGS = ("seed", "dropout", "deterministic")
"""What of `training` holds for a whole run, not for one stage."""


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
    """What is written here replaces the same of the sweep file's own `training`; `seed`, `dropout` and `deterministic`
    hold for all."""
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
    decoding: Literal["legal", "independent"] = "legal"
    """How the best labelling is found where spans or intents forbid some labels to follow others: `legal`, the best
    one of those that may be; `independent`, as in the papers, each word's own best label of MaxEnt decoders and
    classifiers, and of a CRF the best labelling by its own transitions. Of teachers and students, in scores,
    pseudo-labels, exports and all that labels text; probabilities are the same."""
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
        """The student, with the scope that its strategy says, and `{seed}` in its paths as the number it is."""
        scope = self.strategy and self.strategy.scope
        student = self.student.model_copy(update={"scope": scope}) if scope else self.student
        if not self.names_seed:
            return student
        return type(student).model_validate_json(
            student.model_dump_json().replace(SEED, str(self.training.seed))
        )

    @property
    def names_seed(self) -> bool:
        """Whether each seed of the student starts from files of its own."""
        return SEED in self.student.model_dump_json()

    def with_seed_offset(self, offset: int) -> Self:
        """The same with `training.seed` so much higher."""
        training = self.training.model_copy(update={"seed": self.training.seed + offset})
        return self.model_copy(update={"training": training})

    @property
    def method(self) -> str:
        """The name of the strategy, or the kind of the objective (of several stages, each one's); gold labels alone are
        `gold` in any strategy.
        """
        kinds = [stage.objective.kind for stage in self.all_stages]
        if self.strategy is not None:
            alone = all(stage.objective == Gold() for stage in self.all_stages)
            return kinds[0] if alone else self.strategy.name
        return " > ".join(kinds)

    def on_gold_labels(self) -> Self:
        """The same student, trained on gold labels alone."""
        alone = {"objective": Gold(), "stages": None, "strategy": None, "start_from": None}
        return self.model_copy(update=alone | {"student": self.scoped_student})

    @property
    def task_entry(self) -> Task:
        """The entry of the task table."""
        return TASKS[self.task]


def stage_text(stage: Stage, *, unlabelled: bool) -> str:
    """Which text a stage is trained on, where the corpus has unlabelled text or not."""
    text = stage.text or stage.objective.text
    return text if unlabelled else "labelled"


def names_text(stage: Stage, text: str) -> bool:
    """Whether the stage, or a part of its mix, names this text for its own."""
    parts = stage.objective.parts if isinstance(stage.objective, Mix) else ()
    return stage.text == text or any(part.text == text for part in parts)


def stage_needs(stage: Stage, *, unlabelled: bool) -> tuple[Need, ...]:
    """The signals that a stage reads."""
    return stage_objective(stage, unlabelled=unlabelled).needs


def stage_objective(stage: Stage, *, unlabelled: bool) -> Objective:
    """What the stage trains on: its objective, weighed by λ against labels where it is annealed."""
    return annealed_objective(
        stage.objective, unlabelled=stage_text(stage, unlabelled=unlabelled) != "labelled"
    )


def resolve_stage(stage: Stage, recipe: Recipe, *, unlabelled: bool) -> PlainObject:
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


def _own_training(stage: Stage, recipe: Recipe) -> PlainObject:
    """What the stage's training sets otherwise than the sweep file's own."""
    common = recipe.training.model_dump(mode="json")
    return {key: value for key, value in _written(stage.training).items() if value != common[key]}


def resolve_vocabulary(recipe: Recipe) -> VocabularyConfig:
    """The student's vocabulary; `teacher` stands for its teacher's."""
    own, teacher = recipe.student.tokenizer, recipe.teachers.tokenizer
    if not isinstance(own, TeacherVocabulary):
        return own
    if own.pruned is not None and teacher.of_checkpoint:
        return teacher.model_copy(update={"pruned": own.pruned})
    return teacher
