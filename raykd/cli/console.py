"""The consoles for the output of commands, and the display of phases in a log."""

from __future__ import annotations

import threading
import time
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from raykd.redact import redact
from raykd.sweep.status import PhaseStatus


class _RedactingConsole(Console):
    """A console without line breaks in sentences and without passwords of URIs."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print objects; strings are redacted and not wrapped."""
        sentences = all(isinstance(item, str | Text) for item in objects)
        redacted = (redact(item) if isinstance(item, str) else item for item in objects)
        options = {"highlight": not sentences, **options}  # only tables have coloured numbers
        super().print(*redacted, soft_wrap=sentences if soft_wrap is None else soft_wrap, **options)


# No markup: what users name (tags, files, sweeps) may look like it.
stdout = _RedactingConsole(markup=False, emoji=False)
stderr = _RedactingConsole(stderr=True, markup=False, emoji=False)

# Without a terminal, as in a job's log, there is one line per phase every few seconds.
SECONDS_BETWEEN_LINES = 5.0


class LogView:
    """A view for logs: a line when a phase begins, one when it ends, and one every few seconds in between."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._printed = time.monotonic()
        """Time of the last line."""

    def begin(self, phase: PhaseStatus) -> None:
        """Print a line for the phase, unless there is nothing to do."""
        if phase.total:
            self._print(f"{phase.name}: {phase.done} of {phase.total} done")

    def moved(self, phase: PhaseStatus) -> None:
        """Print the progress of a phase, unless a line was printed a moment ago."""
        # Workers report through a thread of their own.
        with self._lock:
            if time.monotonic() - self._printed < SECONDS_BETWEEN_LINES:
                return
            self._printed = time.monotonic()
        stdout.print(
            f"{phase.name}: done, the next step is being prepared" if phase.ended else phase_line(phase)
        )

    def end(self, phase: PhaseStatus) -> None:
        """Print a line for the ended phase."""
        self._print(f"{phase.name}: done" + (f", {phase.detail}" if phase.detail else ""))

    def note(self, text: str) -> None:
        """Print a message."""
        self._print(text)

    def warn(self, text: str) -> None:
        """Print a warning."""
        self._print(f"warning: {text}")

    def _print(self, text: str) -> None:
        with self._lock:
            self._printed = time.monotonic()
        stdout.print(text)


def phase_line(phase: PhaseStatus) -> str:
    """Return the state of a phase as a sentence: `trials: 5 of 40, about 12 min left (#07: epoch 3/12, 20 %)`."""
    facts = [f"{phase.done} of {phase.total}"] if phase.total else []
    if phase.left_s is not None:
        facts.append(f"about {duration(phase.left_s)} left")
    elif not phase.ended:
        facts.append(f"{duration(phase.seconds)} gone")
    return f"{phase.name}: {', '.join(facts)}" + (f" ({phase.detail})" if phase.detail else "")


def duration(duration_s: float) -> str:
    """Return a duration to about a tenth: `40 s`, `12 min`, `3.5 h`."""
    if duration_s < 90:
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 5400 else f"{duration_s / 3600:.1f} h"


def can_draw(*, plain: bool = False) -> bool:
    """Return whether standard output is a terminal with a movable cursor, and lines were not requested."""
    return stdout.is_terminal and not stdout.is_dumb_terminal and not plain


def tagged_message(word: Literal["error", "warning"], text: object) -> Text:
    """Return a message that begins with a coloured word."""
    return Text.assemble((word, {"error": "red", "warning": "yellow"}[word]), f" {redact(str(text))}")


def warn(text: object, console: Console = stdout) -> None:
    """Print a warning."""
    console.print(tagged_message("warning", text))
