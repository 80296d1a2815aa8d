"""All errors a user can cause. None prints a traceback: `cli/` prints the message and exits.

    RaykdError                  exit code 1
    ├── SpecError               2   a sweep file is wrong; carries every fault found
    ├── CorpusError             3   a corpus is missing, empty or malformed; carries file and line
    ├── SignalError             2   an objective needs a signal that the teacher does not offer
    ├── StoreError              4   a stored part is missing, damaged or cannot be written
    │   ├── MissingError        4   a stored file does not exist
    │   └── OtherVersionError   4   a stored part is undamaged, but another version of raykd wrote it
    ├── PlacementError          5   the requested resources are not on the cluster
    ├── TrackingError           6   the tracking server cannot be used
    ├── RunError                7   a training run failed
    │   └── UnlearntError       7   no teacher of a sweep learnt anything
    └── ExportError            10   a model cannot be exported, or its export gives other labels

`raykd sweep` ends with 0 when all trials are complete, with 8 when the front has gaps (some trials failed; --resume
tries them again), and with 9 when no student is on the front.

Fields go to `super().__init__` and formatting into `__str__`, so that every error crosses processes by pickle.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault of a sweep file: its place, and a message with the value found, the values allowed and a hint.

    Attributes:
        file: Path or name of the sweep file.
        line: Line of the fault, from 1; None if unknown.
        path: Keys that lead to the value, joined by dots; empty for the whole file.
        message: The problem and the hint.
    """

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place} {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class RaykdError(Exception):
    """Base of all errors shown to the user as one sentence."""

    exit_code = 1
    resume_command = ""
    """The command that continues from the results computed before the error; empty if there is none."""


class SpecError(RaykdError):
    """A sweep file is wrong; all its faults are reported together."""

    exit_code = 2

    def __init__(self, faults: tuple[Fault, ...]):
        super().__init__(faults)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class SignalError(RaykdError):
    """An objective needs a signal, and the teacher neither offers nor can derive the signal."""

    exit_code = 2


class CorpusError(RaykdError):
    """A corpus is missing, empty or malformed.

    Attributes:
        file: The file at fault, or the corpus.
        line: Line in the file, from 1; None if the fault has no line.
        problem: The fault.
        hint: How to correct it.
        more_errors: Further faults of the same kind, shown below this one.
        closing: A last line below all of them.
    """

    exit_code = 3

    def __init__(
        self,
        file: str,
        line: int | None,
        problem: str,
        hint: str,
        more_errors: "tuple[CorpusError, ...]" = (),
        closing: str = "",
    ):
        super().__init__(file, line, problem, hint, more_errors, closing)
        self.file, self.line, self.problem, self.hint = file, line, problem, hint
        self.more_errors, self.closing = more_errors, closing

    def __str__(self) -> str:
        lines, shown_hints = [], set()
        for fault in (self, *self.more_errors):
            place = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
            hint = "" if fault.hint in shown_hints else f"; {fault.hint}"
            lines.append(f"{place}: {fault.problem}{hint}")
            shown_hints.add(fault.hint)
        return "\n".join([*lines, self.closing] if self.closing else lines)


class StoreError(RaykdError):
    """A stored part is missing, damaged, or cannot be written.

    Attributes:
        name: Address of the file.
        problem: The fault.
        hint: How to correct it.
        transient: True if the storage is at fault and not the file (no space, store out of reach): a retry may succeed.
    """

    exit_code = 4

    def __init__(self, name: str, problem: str, hint: str, transient: bool = False):
        super().__init__(name, problem, hint, transient)
        self.name, self.problem, self.hint, self.transient = name, problem, hint, transient

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}; {self.hint}"


class MissingError(StoreError):
    """A stored file does not exist."""


class OtherVersionError(StoreError):
    """A stored part is undamaged, but another version of raykd wrote it; that version can still use it."""


class PlacementError(RaykdError):
    """The cluster does not have the requested resources; the message shows the arithmetic."""

    exit_code = 5


class TrackingError(RaykdError):
    """The MLflow tracking server cannot be used."""

    exit_code = 6


class RunError(RaykdError):
    """A training run failed."""

    exit_code = 7


class UnlearntError(RunError):
    """No teacher predicts more than the most frequent label, so nothing can be distilled from the teachers.

    Attributes:
        teacher_scores: The teachers with their scores, as text.
        steps: Length of their training, as text.
        trained: True if raykd trained the teachers, false if they are given checkpoints.
    """

    def __init__(self, teacher_scores: str, steps: str, trained: bool):
        super().__init__(teacher_scores, steps, trained)
        self.teacher_scores, self.steps, self.trained = teacher_scores, steps, trained

    def __str__(self) -> str:
        hint = (
            f"they were trained for at most {self.steps}: train them for more (teachers.epochs, teachers.max_steps; "
            "600 steps are often too few), with smaller batches (teachers.training.batch_tokens) or another learning "
            "rate"
            if self.trained
            else "give another checkpoint in teachers.path, names for its labels in teachers.labels, or fine_tune: true"
        )
        return (
            f"teachers: none predicts more than the most frequent label: {self.teacher_scores}. Nothing was computed "
            f"from them; {hint}, and give that sweep another name (--set name=…)"
        )


class ExportError(RaykdError):
    """A model has no deployed form, or its deployed form gives other labels than the model."""

    exit_code = 10
