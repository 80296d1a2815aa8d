"""How far a sweep is, drawn on a terminal: its phases, what runs, the front so far, what is spent and left."""

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

from raykd.cli.console import marked, phase_line, span, stdout
from raykd.report.readable_numbers import count, milliseconds, percent, share
from raykd.sweep.status import PhaseStatus, RunStatus, Status, StudentStatus

MOST_ROWS = 8
"""Of what runs, and of the front."""
PER_SECOND = 2
WIDE, WIDEST = 100, 120
"""From so many columns on a phase says what it does; more are not used."""
STATES = (("COMPLETE", "complete"), ("PRUNED", "stopped early"), ("FAILED", "failed"), ("RUNNING", "running"))


class StatusView:
    """Renders with rich, within the height of the terminal: what has no room is counted."""

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
        # A heading for each of the two tables, and the line that the cursor stands on.
        room = height - len(status.phases) - len(facts) - 3
        running, front = _shares(room, len(status.running), len(status.front))
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
            left = "" if phase.left_s is None else f"{span(phase.left_s)} left"
            detail = phase.detail if phase.ended or wide or not left else ""
            clock = str(timedelta(seconds=round(phase.seconds)))
            grid.add_row(
                Text("✓", style="green") if phase.ended else self._spinner, phase.name, bar,
                f"{phase.done}/{phase.total}", clock, "  ".join(filter(None, (left, detail))),
            )  # fmt: skip
        return grid


class _Resized(Live):
    """Erases the whole of its last drawing when the terminal has become narrower, and has broken each of its lines
    into several.
    """

    columns = 0

    def get_renderable(self) -> RenderableType:
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
    """While the body runs, `view` is drawn anew a few times a second, below whatever is printed."""
    with _Resized(
        get_renderable=lambda: view, console=stdout, refresh_per_second=PER_SECOND, vertical_overflow="crop"
    ):
        yield


class Drawn:
    """A view that draws on a terminal; what is said stands above the drawing."""

    def __init__(self, status: Callable[[], Status]):
        self._view = StatusView(status)
        self._drawing = drawing(self._view)

    def __enter__(self) -> Drawn:
        self._drawing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.phases_alone = True  # what ran and led is said by what follows
        self._drawing.__exit__(kind, raised, trace)

    def begin(self, phase: PhaseStatus) -> None:
        return None  # the drawing shows it

    moved = end = begin

    def note(self, text: str) -> None:
        stdout.print(text, soft_wrap=False)

    def warn(self, text: str) -> None:
        stdout.print(marked("warning", text), soft_wrap=False)


def in_lines(status: Status) -> Iterator[str]:
    """The same as sentences, for where nothing can be drawn."""
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
        *([] if status.budget_s is None else [span(status.budget_s)]),
        *([] if status.budget_gpu_hours is None else [f"{status.budget_gpu_hours:.3g} GPU-hours"]),
    ]
    volume = [] if status.hypervolume is None else [f"hypervolume {status.hypervolume:.4f}"]
    yield " · ".join([*states, *volume])
    left = [f"of the budget {' and '.join(budget)} left"] if budget else []
    yield " · ".join(
        [f"{span(status.seconds)} gone", *left, *training, f"{count(status.tokens)} tokens in all"]
    )


def _running(shown: Sequence[RunStatus], number: int, label: str, width: int) -> Iterator[RenderableType]:
    if not number:
        return
    table = _table(width, f"running{_more(len(shown), number)}", "", "done", f"dev {label}".rstrip())
    for run in shown:
        dev = "" if run.dev is None else percent(run.dev)
        table.add_row(f"{run.name} {run.about}".rstrip(), _doing(run), _done(run), dev)
    yield table


def _front(shown: Sequence[StudentStatus], number: int, label: str, width: int) -> Iterator[RenderableType]:
    if not number:
        return
    table = _table(width, f"front{_more(len(shown), number)}", f"dev {label}", "ms", "params")
    for each in shown:
        table.add_row(
            each.name, percent(each.dev), milliseconds(each.latency_ms), count(each.parameters), style="bold"
        )
    yield table


def _table(width: int, title: str, *figures: str) -> Table:
    first = Column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    return Table(
        first, *(Column(each, justify="right", no_wrap=True) for each in figures),
        box=None, width=width, pad_edge=False, header_style="dim",
    )  # fmt: skip


def _shares(room: int, running: int, front: int) -> tuple[int, int]:
    """How many rows of each are shown: half of the room each, and what one leaves goes to the other."""
    running, front = min(running, MOST_ROWS), min(front, MOST_ROWS)
    room = max(room, 2)
    own = min(running, max(room // 2, room - front))
    return own, min(front, room - own)


def _more(shown: int, number: int) -> str:
    return "" if shown == number else f", {shown} of {number}"


def _doing(run: RunStatus) -> str:
    """The work that a run reports; else the last epoch that ended."""
    if run.doing or run.epoch is None:
        return run.doing
    return f"epoch {run.epoch}" if run.most is None else f"epoch {run.epoch}/{run.most}"


def _done(run: RunStatus) -> str:
    return "" if run.done is None else share(run.done)


def _right() -> Column:
    return Column(justify="right", no_wrap=True)
