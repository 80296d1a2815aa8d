"""The base of annotators: teachers that are no models, but whose answers are kept and read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.corpora.answers import AnswerReading, LabelNames
from raykd.corpora.answers.answer_records import TREES, Form
from raykd.corpora.answers.mentions import Repeat
from raykd.corpora.span_offsets import Offsets
from raykd.corpora.vocabulary_config import WordConfig
from raykd.forms import FLAT, SPANS, TREE, LabelForm
from raykd.layers.optimisation import TrainingConfig
from raykd.needs import SAMPLES
from raykd.teachers.teacher_config import Teacher

if TYPE_CHECKING:
    from raykd.corpora.sentence import Unit
    from raykd.forms import TagSet
    from raykd.layers.answered_text import Annotator
    from raykd.layers.model_config import BuildInputs


class AnswerTeacher(Teacher):
    """A teacher whose signals are read from the stored answers of annotators."""

    latency_ms: Annotated[float, Field(gt=0)] | None = None
    """Time that it takes for one sentence, if you know it: the students' speed-up is measured against it."""
    checksum: str | None = None
    """Identity of its answers (`pinned` sets it)."""
    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS)
    scope: ClassVar[Literal["all"]] = "all"
    trained: ClassVar[bool] = False
    count: ClassVar[int] = 1
    contextual: ClassVar[None] = None
    decoder: ClassVar[Literal["maxent"]] = "maxent"
    reads_characters: ClassVar[bool] = False
    training: ClassVar[TrainingConfig] = TrainingConfig()
    export_obstacle: ClassVar[str] = "labels text outside of raykd"
    gives_answers: ClassVar[bool] = True

    @property
    @abstractmethod
    def annotators(self) -> tuple[AnnotatorTeacher, ...]:
        """The annotators whose answers are read."""

    @property
    @override
    def tokenizer(self) -> WordConfig:
        """A placeholder: a student with the teacher's vocabulary gets the words of its own corpus."""
        return WordConfig(kind="word")

    @property
    @override
    def stated_costs(self) -> Mapping[str, float]:
        return {} if self.latency_ms is None else {"latency_ms": self.latency_ms}

    @override
    def build(self, inputs: BuildInputs) -> Annotator:
        from raykd.layers.answered_text import Annotator

        return Annotator(len(inputs.tag_set))


class AnnotatorTeacher(AnswerTeacher):
    """A teacher that labels text outside of raykd. Its answers are stored as they came, and read for each student.

    Its samples are labellings with weights: all are used, and no temperature softens them. Texts without a usable
    answer are left out of the training text.
    """

    answers: Form = "spans"
    """Form of the answers: `spans`, `labels` (one per word or text), `mentions` (names without offsets), `samples`
    (several of these, with weights or without), `probabilities` (of each word's labels), or `trees` (each word's head
    and relation)."""
    labels: dict[str, str | None] = Field(default_factory=dict)
    """Other names for its labels: `{PERSON: PER, "*": O}`. `*` names all others; `O` stands for no label; null leaves
    a labelling out that has the label."""
    repeat: Repeat = "all"
    """Of mentions: `all` labels a name wherever it occurs in the text; `first` labels as many places as it lists."""
    offsets: Offsets = "characters"
    """Unit of the offsets of spans: `characters`, `utf-16` or `utf-8` (bytes)."""
    ends: Literal["exclusive", "inclusive"] = "exclusive"
    """The end of a span: the first character behind it, or its last one."""
    most_unusable: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Largest share of the answers that may be unusable; beyond it the sweep ends with examples."""

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, TREE)
    model_signals: ClassVar[tuple[str, ...]] = (*SAMPLES, "token_marginals", "kbest", "arcs", "relations")

    @property
    @override
    def annotators(self) -> tuple[AnnotatorTeacher, ...]:
        return (self,)

    @property
    @override
    def offers(self) -> tuple[str, ...]:
        return {"probabilities": ("token_marginals", "kbest"), TREES: ("arcs", "relations")}.get(
            self.answers, SAMPLES
        )

    @property
    def answers_id(self) -> str:
        """Identity under which its answers are stored."""
        return f"answers-{self.checksum}"

    def reading(self, tag_set: TagSet, unit: Unit) -> AnswerReading:
        """Return the settings for reading its answers.

        Args:
            tag_set: Tags of the corpus.
            unit: Unit that has one label.
        """
        names = LabelNames.of(tag_set.labels, self.labels)
        inclusive = self.ends == "inclusive"
        trees = self.answers == TREES
        return AnswerReading(names, tag_set.form.bioes, unit, self.repeat, self.offsets, inclusive, trees)

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Check that its answers, or what is asked for them, exist.

        Raises:
            MissingError: They do not.
        """
