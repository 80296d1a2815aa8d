"""Every error that a user can cause. None of them prints a traceback: `cli/` prints the message and exits.

    RaykdError                  exit code 1
    ├── SpecError               2   a sweep file is wrong; carries every fault found
    ├── CorpusError             3   a corpus is missing, empty or malformed; carries file and line
    ├── SignalError             2   an objective needs what the teacher does not offer
    ├── StoreError              4   a stored part is missing, damaged or cannot be written
    │   ├── MissingError        4   a stored file does not exist
    │   └── OtherVersionError   4   a stored part is whole, and another version of raykd wrote it
    ├── PlacementError          5   the requested resources are not on the cluster
    ├── TrackingError           6   the tracking server cannot be used
    ├── RunError                7   a training run failed
    │   └── UnlearntError       7   no teacher of a sweep learnt anything
    └── ExportError            10   a model cannot be exported, or what was exported gives other labels

`raykd sweep` ends with 0 when all trials are complete, with 8 when the front has gaps (some trials failed; --resume
tries them again), and with 9 when no student is on it.

Fields go to `super().__init__` and formatting into `__str__`, so that every error crosses processes by pickle.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault of a sweep file: where it is, and a message with what was given, what is allowed and a hint."""

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where} {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class RaykdError(Exception):
    """Base of all errors that are shown to the user as one sentence."""

    exit_code = 1
    goes_on = ""
    """The command that goes on from what was computed before the error, where there is one."""


class SpecError(RaykdError):
    """A sweep file is wrong; every fault found is reported together."""

    exit_code = 2

    def __init__(self, faults: tuple[Fault, ...]):
        super().__init__(faults)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class SignalError(RaykdError):
    """An objective needs a signal that its teacher does not offer and that cannot be derived."""

    exit_code = 2


class CorpusError(RaykdError):
    """A corpus is missing, empty or malformed. `others` of its kind are shown below it, and a `closing` line."""

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
        lines, given = [], set()
        for fault in (self, *self.more_errors):
            where = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
            hint = "" if fault.hint in given else f"; {fault.hint}"
            lines.append(f"{where}: {fault.problem}{hint}")
            given.add(fault.hint)
        return "\n".join([*lines, self.closing] if self.closing else lines)


class StoreError(RaykdError):
    """A stored part is missing, damaged, or cannot be written.

    `passing`: the fault is of the place, not of the file (no space, storage out of reach), and may pass.
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
    """A stored part is whole, and not what this version of raykd writes: it may be of use to the one that wrote it."""


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
    """No teacher predicts more than the most frequent label, so that nothing can be distilled from them.

    `named`: the teachers with their scores. `steps`: how long they were trained; `trained`: whether raykd did.
    """

    def __init__(self, teacher_scores: str, steps: str, trained: bool):
        super().__init__(teacher_scores, steps, trained)
        self.teacher_scores, self.steps, self.trained = teacher_scores, steps, trained

    def __str__(self) -> str:
        hint = (
            f"they were trained for at most {self.steps}: train them for more (teachers.epochs, teachers.max_steps; "
            "some 600 are few), with smaller batches (teachers.training.batch_tokens) or another learning rate"
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
