"""The consoles that verbs print to, and how phases are shown in a log."""

from __future__ import annotations

import threading
import time
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from raykd.redact import redact
from raykd.sweep.status import PhaseStatus


class _Redacting(Console):
    """A console that breaks no sentence into lines, and prints no password of a URI."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
        sentences = all(isinstance(each, str | Text) for each in objects)
        shown = (redact(each) if isinstance(each, str) else each for each in objects)
        how = {"highlight": not sentences, **how}  # numbers are coloured in tables alone
        super().print(*shown, soft_wrap=sentences if soft_wrap is None else soft_wrap, **how)


# No markup: what users name (tags, files, sweeps) may look like it.
stdout = _Redacting(markup=False)
stderr = _Redacting(stderr=True, markup=False)

# Without a terminal (a job's log), one line per phase every few seconds.
SECONDS_BETWEEN_LINES = 5.0


class Lines:
    """A view for logs: a line when a phase with something to do begins, when it ends, and every few seconds between."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._printed = time.monotonic()
        """When the last line was."""

    def begin(self, phase: PhaseStatus) -> None:
        if phase.total:
            self._print(f"{phase.name}: {phase.done} of {phase.total} done")

    def moved(self, phase: PhaseStatus) -> None:
        # Workers report through a thread of their own.
        with self._lock:
            if time.monotonic() - self._printed < SECONDS_BETWEEN_LINES:
                return
            self._printed = time.monotonic()
        stdout.print(
            f"{phase.name}: done, the next step is being prepared" if phase.ended else phase_line(phase)
        )

    def end(self, phase: PhaseStatus) -> None:
        self._print(f"{phase.name}: done" + (f", {phase.detail}" if phase.detail else ""))

    def note(self, text: str) -> None:
        self._print(text)

    def warn(self, text: str) -> None:
        self._print(f"warning: {text}")

    def _print(self, text: str) -> None:
        with self._lock:
            self._printed = time.monotonic()
        stdout.print(text)


def phase_line(phase: PhaseStatus) -> str:
    """Return the state of a phase as a sentence: `trials: 5 of 40, about 12 min left (#07: epoch 3/12, 20 %)`."""
    facts = [f"{phase.done} of {phase.total}"] if phase.total else []
    if phase.left_s is not None:
        facts.append(f"about {span(phase.left_s)} left")
    elif not phase.ended:
        facts.append(f"{span(phase.seconds)} gone")
    return f"{phase.name}: {', '.join(facts)}" + (f" ({phase.detail})" if phase.detail else "")


def span(duration_s: float) -> str:
    """A duration to about its tenth: `40 s`, `12 min`, `3.5 h`."""
    if duration_s < 90:
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 5400 else f"{duration_s / 3600:.1f} h"


def draws(*, plain: bool = False) -> bool:
    """Whether standard output can be drawn on: a terminal that can move its cursor, and nobody asked for lines."""
    return stdout.is_terminal and not stdout.is_dumb_terminal and not plain


def marked(word: Literal["error", "warning"], text: object) -> Text:
    """A message with its first word in colour."""
    return Text.assemble((word, {"error": "red", "warning": "yellow"}[word]), f" {redact(str(text))}")


def warn(text: object, console: Console = stdout) -> None:
    """Print a warning."""
    console.print(marked("warning", text))
