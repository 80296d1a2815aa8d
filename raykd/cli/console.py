"""The consoles that verbs print to, and the listeners that show phases there."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from raykd.redact import redacted


class _Redacting(Console):
    """A console that prints no password of a URI."""

    def print(self, *objects: Any, **how: Any) -> None:
        super().print(*(redacted(each) if isinstance(each, str) else each for each in objects), **how)


# No markup: what users name (tags, files, sweeps) may look like it.
stdout = _Redacting(markup=False)
stderr = _Redacting(stderr=True, markup=False)

# Without a terminal (a job's log), one line per phase every few seconds.
SECONDS_BETWEEN_LINES = 5.0


class Drawn:
    """A listener that draws a bar per phase on a terminal."""

    def __init__(self) -> None:
        # Where the terminal is narrow the last column is cut, not the figures.
        detail = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("[bold]{task.description:<10}", table_column=Column(min_width=10)),
            BarColumn(bar_width=12, table_column=Column(min_width=12)),
            MofNCompleteColumn(table_column=Column(min_width=7)),
            TimeElapsedColumn(table_column=Column(min_width=7)),
            TimeRemainingColumn(compact=True, table_column=Column(min_width=5)),
            TextColumn("[dim]{task.fields[detail]}", table_column=detail),
            console=stdout,
            expand=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Drawn:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        self._tasks[phase] = self._progress.add_task(phase, total=max(total, 1), completed=done, detail="")

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None:
        self._progress.update(self._tasks[phase], advance=units, detail=escape(redacted(detail)))

    def detail(self, phase: str, detail: str) -> None:
        self._progress.update(self._tasks[phase], detail=escape(redacted(detail)))

    def note(self, text: str) -> None:
        self._progress.console.print(text, highlight=False)

    def warn(self, text: str) -> None:
        self._progress.console.print(marked("warning", text), highlight=False)

    def end(self, phase: str, summary: str = "") -> None:
        task = self._tasks[phase]
        total = next(t.total for t in self._progress.tasks if t.id == task)
        self._progress.update(task, completed=total, detail=escape(summary))


@dataclass
class Phase:
    """How far a phase is."""

    total: int
    done: int
    found: int
    """What was done before it began."""
    began: float
    printed: float

    def left(self) -> str:
        """About how long it still takes, at the pace so far; empty before something is done."""
        own = self.done - self.found
        if own <= 0 or self.done >= self.total:
            return ""
        seconds = (time.monotonic() - self.began) / own * (self.total - self.done)
        return f", about {span(seconds)} left"


@dataclass
class Lines:
    """A listener for logs: a line when a phase begins, when it ends, and every few seconds between."""

    phases: dict[str, Phase] = field(default_factory=dict)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        now = time.monotonic()
        self.phases[phase] = Phase(total, done, done, now, now)
        _line(f"{phase}: {done} of {total} done")

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None:
        self.phases[phase].done += units
        self.detail(phase, detail)

    def detail(self, phase: str, detail: str) -> None:
        state = self.phases[phase]
        if time.monotonic() - state.printed >= SECONDS_BETWEEN_LINES:
            state.printed = time.monotonic()
            shown = f" ({detail})" if detail else ""
            _line(f"{phase}: {state.done} of {state.total}{state.left()}{shown}")

    def note(self, text: str) -> None:
        _line(text)

    def warn(self, text: str) -> None:
        _line(f"warning: {text}")

    def end(self, phase: str, summary: str = "") -> None:
        _line(f"{phase}: done" + (f", {summary}" if summary else ""))


def span(duration_s: float) -> str:
    """A duration to about its tenth: `40 s`, `12 min`, `3.5 h`."""
    if duration_s < 90:
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 5400 else f"{duration_s / 3600:.1f} h"


def listener() -> Drawn | Lines:
    """Bars on a terminal, lines anywhere else."""
    return Drawn() if stdout.is_terminal else Lines()


def _line(text: str) -> None:
    stdout.print(text, highlight=False, soft_wrap=True)


def marked(word: Literal["error", "warning"], text: object) -> Text:
    """A message with its first word in colour."""
    return Text.assemble((word, {"error": "red", "warning": "yellow"}[word]), f" {redacted(str(text))}")
