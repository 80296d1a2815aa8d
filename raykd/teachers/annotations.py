"""Files of annotations as a teacher: the answers of a language model, the export of an annotation tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self

from typing_extensions import override

from raykd.corpora.answers.files import RawAnswer, answer_files, files_checksum, read_answer_file
from raykd.corpora.source import Pattern
from raykd.identity import PlainObject
from raykd.teachers.annotator_config import AnnotatorTeacher


class AnnotationsTeacher(AnnotatorTeacher):
    """Annotations in files, written by any tool: JSON Lines, JSON, or spaCy's `DocBin`.

    A text finds its answer by its visible characters, whatever its language, part or split into words. Files of
    doccano, Label Studio, Prodigy, GLiNER and Transformers' pipelines are read as they are written.
    """

    kind: Literal["annotations"] = "annotations"
    path: Pattern
    """The files: a path, or a pattern with `*`, or with `{lang}` for the language; or a mapping from languages."""

    @property
    def files(self) -> list[str]:
        """Paths of the files.

        Raises:
            MissingError: There is no file of a name.
        """
        patterns = self.path.values() if isinstance(self.path, dict) else [self.path]
        return [*dict.fromkeys(name for pattern in patterns for name in answer_files(pattern))]

    @override
    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        _ = self.files

    @override
    def pinned(self, language: str | None = None) -> Self:
        """Return the configuration with the checksum of the files: the identity of the answers."""
        return self.model_copy(update={"checksum": files_checksum(self.files)})

    @property
    def description(self) -> PlainObject:
        """The annotator in plain data, kept beside its answers."""
        return self.model_dump(mode="json", include={"kind", "checksum"})

    def given_answers(self) -> Iterator[RawAnswer]:
        """Yield the answers of the files."""
        for name in self.files:
            yield from read_answer_file(name)
