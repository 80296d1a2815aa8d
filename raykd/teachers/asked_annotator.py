"""The base of annotators that are asked: code that runs on the nodes and labels texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import Field
from typing_extensions import override

from raykd.corpora.answers import AskedText
from raykd.identity import PlainObject, identity
from raykd.teachers.annotator_config import AnnotatorTeacher

Labeller = Callable[[Sequence[AskedText]], Iterable[Any]]
"""Returns or yields one answer for each text, in order."""


class AnnotatorSource(NamedTuple):
    """The code or the model that labels.

    Attributes:
        path: Its file or folder.
        content: Text of a file that is sent to the nodes; empty for what is installed there.
        sha256: Hash of the content.
    """

    path: str
    content: str = ""
    sha256: str = ""

    def line_of(self, error: BaseException) -> str:
        """Return the place in the file where an error was raised, `my_teacher.py:12`; empty where there is none.

        Args:
            error: The error, with its traceback.
        """
        if isinstance(error, SyntaxError) and error.filename == self.path:
            return f"{Path(self.path).name}:{error.lineno}"
        frames = extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self.path]
        return f"{Path(self.path).name}:{lines[-1]}" if lines else ""


class AskedAnnotator(AnnotatorTeacher):
    """An annotator that is asked about texts, in actors on the nodes of the cluster.

    An answer is asked for once, and kept by its text. Sweeps share answers; further texts are asked about alone.
    """

    texts: Annotated[int, Field(ge=1)] | None = None
    """Most texts of train and unlabelled to ask about; dev and test are asked about besides. A larger number contains
    the texts of a smaller one."""
    texts_seed: int = 0
    """Seed of the order in which `texts` are taken."""
    batch_size: Annotated[int, Field(ge=1)] = 16
    """Texts that are put to it at once, and stored in one object."""
    concurrency: Annotated[int, Field(ge=1)] = 2
    """Actors that ask at the same time."""
    cpus: Annotated[float, Field(ge=0)] = 1
    """CPUs of an actor; one that waits for a service needs few: 0.1."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """GPUs of an actor."""
    texts_per_minute: Annotated[float, Field(gt=0)] | None = None
    """Most texts a minute, over all actors together; texts that are tried again count again."""
    tries: Annotated[int, Field(ge=1)] = 6
    """Times that a batch is put to it if it fails, with pauses of 1, 2, 4 … up to 60 seconds."""
    timeout_s: Annotated[float, Field(gt=0)] = 600
    """Longest time for a batch; then its actor is stopped and the batch tried again."""
    cost_per_1000_texts: Annotated[float, Field(ge=0)] | None = None
    """Price of a thousand texts, in any currency: `plan` says what the missing answers cost."""
    keys: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Environment variables with keys, such as `OPENAI_API_KEY`: read where raykd is started, set in the actors, and
    never stored or shown."""
    technical: ClassVar[tuple[str, ...]] = (
        "texts", "texts_seed", "batch_size", "concurrency", "cpus", "gpus", "texts_per_minute", "tries", "timeout_s",
        "cost_per_1000_texts", "keys",
    )  # fmt: skip
    """Settings that change no answer: `pinned` sets their defaults."""

    @property
    @abstractmethod
    def asking(self) -> PlainObject:
        """The settings that change answers, in plain data: the identity of its answers."""

    @abstractmethod
    def find_source(self, folders: Sequence[Path]) -> AnnotatorSource:
        """Return what labels, without importing it.

        Args:
            folders: Folders in which files are looked for, in order.

        Raises:
            MissingError: It is not found.
        """

    @abstractmethod
    def open(self, source: AnnotatorSource) -> Labeller:
        """Return the function that labels texts; called in an actor.

        Args:
            source: What `find_source` returned where raykd was started.
        """

    @override
    def pinned(self, language: str | None = None) -> Self:
        """Return the configuration with the identity of its answers, and without settings that change none."""
        defaults = {name: type(self).model_fields[name].default for name in self.technical}
        checksum = identity("answers", {"kind": self.kind, **self.asking}).removeprefix("answers-")
        return self.model_copy(update={**defaults, "checksum": checksum})
