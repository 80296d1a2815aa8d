"""Progress of the current work: reported by the code that does it, passed to the listener around it.

There is no listener by default; a report then costs less than a microsecond and never waits. Work that has parts gives
each part a share:

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
"""Called with the finished share of the work, from 0 to 1 (None: as before), and the activity in a few words."""

_listener: ContextVar[ProgressListener | None] = ContextVar("progress", default=None)


@contextmanager
def listen_to_progress(listener: ProgressListener | None) -> Iterator[None]:
    """Pass the progress reports of the body to a listener.

    Args:
        listener: called with each report; must be quick and raise nothing. None: reports go nowhere.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(share: float | None, activity: str = "") -> None:
    """Report the progress of the current work to the listener, if there is one.

    Args:
        share: the finished share, from 0 to 1; None if it is the same as before, or unknown.
        activity: the current activity, in a few words.
    """
    listener = _listener.get()
    if listener is not None:
        listener(share, activity)


def with_progress(items: Sequence[T], activity: str = "") -> Iterator[T]:
    """Yield items, with a report of progress before an item; all items are equal shares of the current work.

    Args:
        items: a sequence, whose length must be known.
        activity: the current activity, in a few words.
    """
    for number, item in enumerate(items):
        report_progress(number / len(items), activity)
        yield item


@contextmanager
def part_of_work(start: float, end: float, activity: str = "") -> Iterator[None]:
    """Mark the body as one part of the current work, so that its reports are scaled to the part.

    Args:
        start: the share of the work that is finished when the body begins, from 0 to 1.
        end: the share that is finished when the body ends.
        activity: name of the part; it comes before the activities that the body reports.
    """
    outer = _listener.get()
    if outer is None:
        yield
        return

    def listener(share_of_part: float | None, inner: str) -> None:
        share = None if share_of_part is None else start + (end - start) * min(max(share_of_part, 0.0), 1.0)
        outer(share, ", ".join(filter(None, (activity, inner))))

    listener(0.0, "")
    with listen_to_progress(listener):
        yield
