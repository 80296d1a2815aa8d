"""Progress of the work in hand: reported by the code that does it, passed on to whoever listens around it.

Nobody listens by default; a report then costs less than a microsecond, and it never waits for anything. Work that has
parts gives each of them a share of its own:

    with part_of_work(0.0, 0.9, "epoch 1/3"):
        for batch in with_progress(batches):
            ...
    with part_of_work(0.9, 1.0, "epoch 1/3, scoring dev"):
        evaluate()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

ProgressListener = Callable[[float | None, str], None]
"""Takes the share of the work that is done, from 0 to 1 (None: as before), and what is being done, in a few words."""

_hear: ContextVar[ProgressListener | None] = ContextVar("progress", default=None)


@contextmanager
def listen_to_progress(listener: ProgressListener | None) -> Iterator[None]:
    """Pass the reports of the body to `hear`, which must be quick and raise nothing; None: to nobody."""
    token = _hear.set(listener)
    try:
        yield
    finally:
        _hear.reset(token)


def report_progress(share: float | None, activity: str = "") -> None:
    """Say how far the work in hand is.

    Args:
        done: the share that is done, from 0 to 1; None where it is the same as before, or not known.
        doing: what is being done now, in a few words.
    """
    hear = _hear.get()
    if hear is not None:
        hear(share, activity)


def with_progress(items: Sequence[T], activity: str = "") -> Iterator[T]:
    """Yield `items`, each of which is an equal share of the work in hand."""
    for number, item in enumerate(items):
        report_progress(number / len(items), activity)
        yield item


@contextmanager
def part_of_work(start: float, end: float, activity: str = "") -> Iterator[None]:
    """The body is a part of the work in hand.

    Args:
        first: the share of the work that is done where the body begins.
        last: the share that is done where it ends.
        doing: what the part is; what the body says of itself follows it.
    """
    outer = _hear.get()
    if outer is None:
        yield
        return

    def hear(done: float | None, inner: str) -> None:
        share = None if done is None else start + (end - start) * min(max(done, 0.0), 1.0)
        outer(share, ", ".join(filter(None, (activity, inner))))

    hear(0.0, "")
    with listen_to_progress(hear):
        yield
