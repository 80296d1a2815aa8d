"""Progress of a sweep drawn on a terminal: its phases, the runs at work, the front so far, and the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from math import ceil
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from raykd.cli.console import duration, phase_line, stdout, tagged_message
from raykd.report.readable_numbers import count, milliseconds, percent, share
from raykd.sweep.status import PhaseStatus, RunStatus, Status, StudentStatus

MOST_ROWS = 8
"""Largest number of rows for the runs at work, and for the front."""
PER_SECOND = 2
"""Drawings per second."""
WIDE, WIDEST = 100, 120
"""Columns from which a phase shows its details, and the largest number used."""
STATES = (("COMPLETE", "complete"), ("PRUNED", "stopped early"), ("FAILED", "failed"), ("RUNNING", "running"))


class StatusView:
    """Progress for rich, within the height of the terminal; rows without room are counted."""

    def __init__(self, status: Callable[[], Status], *, phases_alone: bool = False):
        self.status, self.phases_alone = status, phases_alone
        self._spinner = Spinner("dots")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        status, width = self.status(), min(options.max_width, WIDEST)
        yield from self._parts(status, width, console.size.height)

    def _parts(self, status: Status, width: int, height: int) -> Iterator[RenderableType]:
        yield self._phases(status.phases, width)
        if self.phases_alone or not (status.trials or status.running):
            return
        facts = list(_facts(status))
        for fact in facts:
            yield Text(fact, style="dim", no_wrap=True, overflow="ellipsis", justify="left")
        # Three lines go to the headings of the two tables and to the cursor.
        room = height - len(status.phases) - len(facts) - 3
        running, front = _row_limits(room, len(status.running), len(status.front))
        yield from _running(status.running[:running], len(status.running), status.label, width)
        yield from _front(status.front[:front], len(status.front), status.label, width)

    def _phases(self, phases: Sequence[PhaseStatus], width: int) -> Table:
        wide = width >= WIDE
        last = Column(ratio=1, no_wrap=True, overflow="ellipsis", style="dim")
        grid = Table.grid(
            "", Column(no_wrap=True, style="bold"), "", _right(), _right(), last, padding=(0, 1)
        )
        grid.width = width
        for phase in phases:
            completed = phase.done + phase.within if phase.total else float(phase.ended)
            bar = ProgressBar(total=max(phase.total, 1), completed=completed, width=12)
            remaining = "" if phase.left_s is None else f"{duration(phase.left_s)} left"
            detail = phase.detail if phase.ended or wide or not remaining else ""
            clock = str(timedelta(seconds=round(phase.seconds)))
            grid.add_row(
                Text("✓", style="green") if phase.ended else self._spinner, phase.name, bar,
                f"{phase.done}/{phase.total}", clock, "  ".join(filter(None, (remaining, detail))),
            )  # fmt: skip
        return grid


class _ResizableLive(Live):
    """A live drawing for terminals of changing width.

    A terminal that becomes narrower breaks each line of the last drawing into several; all of them are erased.
    """

    columns = 0

    def get_renderable(self) -> RenderableType:
        """Return the drawing, and correct the height of the last one if the terminal has become narrower."""
        view, before, columns = super().get_renderable(), self.columns, self.console.size.width
        self.columns = columns
        if columns < before and self._live_render._shape is not None:
            lines = self.console.render_lines(view, self.console.options.update(width=before), pad=False)
            lengths = (sum(part.cell_length for part in line) for line in lines)
            height = sum(max(1, ceil(length / columns)) for length in lengths)
            self._live_render._shape = (columns, min(height, self.console.size.height))
        return view


@contextmanager
def drawing(view: StatusView) -> Iterator[None]:
    """Draw `view` a few times a second while the body runs, below everything that is printed."""
    with _ResizableLive(
        get_renderable=lambda: view, console=stdout, refresh_per_second=PER_SECOND, vertical_overflow="crop"
    ):
        yield


class LiveView:
    """A progress view for terminals; messages stand above the drawing."""

    def __init__(self, status: Callable[[], Status]):
        self._view = StatusView(status)
        self._drawing = drawing(self._view)

    def __enter__(self) -> LiveView:
        self._drawing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.phases_alone = True  # the report that follows shows the rest
        self._drawing.__exit__(kind, raised, trace)

    def begin(self, phase: PhaseStatus) -> None:
        """Do nothing: the drawing shows the phase."""

    moved = end = begin

    def note(self, text: str) -> None:
        """Print a message above the drawing."""
        stdout.print(text, soft_wrap=False)

    def warn(self, text: str) -> None:
        """Print a warning above the drawing."""
        stdout.print(tagged_message("warning", text), soft_wrap=False)


def status_lines(status: Status) -> Iterator[str]:
    """Yield the progress as sentences, for logs."""
    yield from (phase_line(phase) for phase in status.phases)
    yield from _facts(status)
    for run in status.running:
        dev = "" if run.dev is None else f"dev {status.label} {percent(run.dev)}"
        facts = ", ".join(filter(None, (_doing(run), _done(run), dev)))
        yield f"running {run.name} {run.about}".rstrip() + (f": {facts}" if facts else "")
    for student in status.front[:MOST_ROWS]:
        figures = f"dev {status.label} {percent(student.dev)}, {milliseconds(student.latency_ms)} ms"
        yield f"front {student.name}: {figures}, {count(student.parameters)} parameters"


def _facts(status: Status) -> Iterator[str]:
    """One or two lines of numbers."""
    states = [f"{number} {word}" for state, word in STATES if (number := status.count("search", state))]
    training = [f"{count(status.tokens_per_second)} tokens/s"] if status.tokens_per_second else []
    budget = [
        *([] if status.budget_s is None else [duration(status.budget_s)]),
        *([] if status.budget_gpu_hours is None else [f"{status.budget_gpu_hours:.3g} GPU-hours"]),
    ]
    volume = [] if status.hypervolume is None else [f"hypervolume {status.hypervolume:.4f}"]
    yield " · ".join([*states, *volume])
    remaining = [f"of the budget {' and '.join(budget)} left"] if budget else []
    yield " · ".join(
        [f"{duration(status.seconds)} gone", *remaining, *training, f"{count(status.tokens)} tokens in all"]
    )


def _running(runs: Sequence[RunStatus], number: int, label: str, width: int) -> Iterator[RenderableType]:
    if not number:
        return
    table = _table(width, f"running{_more(len(runs), number)}", "", "done", f"dev {label}".rstrip())
    for run in runs:
        dev = "" if run.dev is None else percent(run.dev)
        table.add_row(f"{run.name} {run.about}".rstrip(), _doing(run), _done(run), dev)
    yield table


def _front(
    students: Sequence[StudentStatus], number: int, label: str, width: int
) -> Iterator[RenderableType]:
    if not number:
        return
    table = _table(width, f"front{_more(len(students), number)}", f"dev {label}", "ms", "params")
    for student in students:
        table.add_row(
            student.name,
            percent(student.dev),
            milliseconds(student.latency_ms),
            count(student.parameters),
            style="bold",
        )
    yield table


def _table(width: int, title: str, *figures: str) -> Table:
    first = Column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    return Table(
        first, *(Column(figure, justify="right", no_wrap=True) for figure in figures),
        box=None, width=width, pad_edge=False, header_style="dim",
    )  # fmt: skip


def _row_limits(room: int, running: int, front: int) -> tuple[int, int]:
    """Rows for the runs and for the front: half of the room each, and unused rows go to the other table."""
    running, front = min(running, MOST_ROWS), min(front, MOST_ROWS)
    room = max(room, 2)
    running_rows = min(running, max(room // 2, room - front))
    return running_rows, min(front, room - running_rows)


def _more(shown_rows: int, number: int) -> str:
    return "" if shown_rows == number else f", {shown_rows} of {number}"


def _doing(run: RunStatus) -> str:
    """The work reported by a run; otherwise its last complete epoch."""
    if run.doing or run.epoch is None:
        return run.doing
    return f"epoch {run.epoch}" if run.most is None else f"epoch {run.epoch}/{run.most}"


def _done(run: RunStatus) -> str:
    return "" if run.done is None else share(run.done)


def _right() -> Column:
    return Column(justify="right", no_wrap=True)
