"""The student from a Transformers checkpoint, whole or cut from it: the sweep's own teacher, or any other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field
from typing_extensions import override

from raykd.corpora.vocabulary_config import PretrainedConfig
from raykd.forms import FLAT, SPANS, TREE, UTTERANCES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.cut import Cut
from raykd.layers.hf_config import HFConfig
from raykd.students.hf_student import HFStudent
from raykd.students.vocabulary import StudentVocabulary, TeacherVocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raykd.layers.hf_tagger import HFTagger
    from raykd.layers.model_config import BuildInputs, ModelConfig


TEACHER = "teacher"
"""As a path: the sweep's own teacher."""


class CheckpointStudent(Cut, HFConfig, HFStudent):
    """A student from a Transformers checkpoint, or cut from it."""

    path: Annotated[str, Field(min_length=1)]
    """A checkpoint by folder or name on the Hub, or `teacher` for the sweep's own teacher. `{seed}` in it stands for
    the run's seed: with several seeds, each run starts from its own checkpoint."""
    start: Literal["fine_tuned", "pretrained"] | None = None
    """With `path: teacher`, the weights before training: `fine_tuned` those of the teacher as it labels text, its head
    too; `pretrained` those of its published checkpoint, with a new head. null: `fine_tuned`. A teacher that is used as
    published has one kind of weights, and its student gets a new head."""
    member: Annotated[int, Field(ge=0)] | None = None
    """With `path: teacher` and an ensemble as the teacher, the member, from 0."""
    vocabulary: Literal["whole", "pruned"] | None = None
    """`pruned`: only the pieces of its training and unlabelled text are kept. This text is split as before, other text
    into the kept pieces. Most parameters of multilingual checkpoints are in their embeddings. null: as the teacher's
    with `path: teacher`, else `whole`."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""

    @property
    @override
    def cut(self) -> Cut:
        return self.plain

    @property
    @override
    def depth(self) -> int | None:
        return len(self.layers) if self.layers else None

    @property
    @override
    def tokenizer(self) -> StudentVocabulary:
        if self.path == TEACHER:
            pruned = None if self.vocabulary is None else self.vocabulary == "pruned"
            return TeacherVocabulary(kind="teacher", pruned=pruned)
        return super().tokenizer

    @property
    @override
    def taken_from_teacher(self) -> tuple[str, ...]:
        return ("path",) if self.path == TEACHER else ()

    @override
    def with_teacher_path(self, teacher: ModelConfig) -> Self:
        if self.path != TEACHER or not teacher.encoder_path:
            return self
        pieces = teacher.tokenizer
        pruned = isinstance(pieces, PretrainedConfig) and pieces.pruned
        taken = {"path": teacher.encoder_path, "start": self.start or "fine_tuned"}
        return self.model_copy(
            update={**taken, "vocabulary": self.vocabulary or ("pruned" if pruned else "whole")}
        )

    @property
    @override
    def layers_in_teacher(self) -> tuple[int, ...]:
        return (0, *(layer + 1 for layer in self.layers)) if self.path == TEACHER and self.layers else ()

    @property
    @override
    def starts_from_member(self) -> int | None:
        return self.member or 0 if self.start == "fine_tuned" else None

    @override
    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        super().refuse_unreadable(languages)
        if not self.cut.is_whole and Path(self.path).is_dir():
            from transformers import AutoConfig  # takes seconds to import

            self.cut.check(AutoConfig.from_pretrained(self.path, trust_remote_code=False), self.path)

    @override
    def shape(self) -> PlainObject:
        sizes = self.model_dump(include={"heads", "feed_forward", "embedding_rank"}, exclude_none=True)
        layers = {"layers": len(self.layers)} if self.layers else {}
        return {**self.model_dump(include={"kind", "path", "checksum"}), **layers, **sizes}


class PretrainedStudent(CheckpointStudent):
    """A Transformers checkpoint with a new head over the corpus' tags, or a student cut from the sweep's own teacher.

    The checkpoint is an encoder that `raykd export` wrote after pretraining, or one of the Hub (Soltan et al. 2021,
    §3.2). Its sizes and its dropout are the checkpoint's. With `layers`, `heads`, `feed_forward` and `embedding_rank`
    only parts of it stay. `path: teacher` cuts the teacher itself: its hidden states and its attention are then
    distilled layer by layer by the objectives `hidden_states` and `attention` without `layers`.
    """

    kind: Literal["pretrained"] = "pretrained"

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES, TREE)

    @override
    def build(self, inputs: BuildInputs) -> HFTagger:
        """Load the checkpoint as a tagger with a new head, drawn from torch's generator."""
        from raykd.layers.hf_classifier import classifier

        return classifier(self, inputs, pools=inputs.unit == "sentence")

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> HFTagger:
        from raykd.layers.hf_classifier import rebuild_classifier

        return rebuild_classifier(self, architecture, inputs, pools=inputs.unit == "sentence")
