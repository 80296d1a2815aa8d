"""What a slot and the workers of its group send each other: runs in one direction, epochs and ends in the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from raykd.errors import RaykdError, RunError
from raykd.identity import PlainObject

TOGETHER_S = 10.0
"""How long a worker whose run failed waits for the others: they fail at the same place, or wait for it for ever."""

Message = tuple[Literal["epoch"], PlainObject] | tuple[Literal["end"], RaykdError | None]
"""An epoch's report; or the end of a run, with what went wrong."""


class Mailbox:
    """An actor of its own, which computes nothing: its methods wait for each other, so all of them are coroutines.

    One run is in hand at a time, and has a number; another run that is given takes its place, and the workers leave the
    one before at the end of their epoch. Who asks says by a number what it knows, so that workers that start again need
    nothing of those that died.
    """

    def __init__(self, workers: int, max_failures: int):
        self._workers, self._max_failures = workers, max_failures
        self._changed = asyncio.Condition()
        self._closed, self._gone = False, ""
        self._number = -1
        self._begin({})

    def _begin(self, run: PlainObject) -> None:
        self._run, self._ended, self._failures = run, False, 0
        self._messages: list[Message] = []
        self._dealt_with = 0
        self._reports: dict[int, int] = {}
        """Epoch → how many messages there are with it."""
        self._left: set[int] = set()
        """The ranks of the workers that have come to the end of the run."""

    async def give(self, run: PlainObject) -> None:
        """A run to do, in place of the one in hand."""
        self._number += 1
        self._begin(run)
        if self._gone:
            self._end(RunError(self._gone))
        await self._notify()

    async def hear(self, after: int) -> Message:
        """The next message about the run in hand, after so many with which the slot has dealt."""
        self._dealt_with = after
        await self._notify()
        await self._until(lambda: len(self._messages) > after)
        return self._messages[after]

    async def close(self) -> None:
        """No run is given any more: the workers end."""
        self._closed = True
        await self._notify()

    async def take(self, after: int) -> tuple[int, PlainObject] | None:
        """For workers: number and run in hand, once it is not run `after` (-1 where they start); None at the end."""
        await self._until(lambda: self._closed or (self._number > after and not self._ended))
        return None if self._closed else (self._number, self._run)

    async def epoch(self, number: int, epoch: int, report: PlainObject | None) -> bool:
        """For workers: an epoch of a run ended, reported by one of them; whether the run goes on.

        Waits until the slot has dealt with it, or has given another run instead.
        """
        if report is not None and number == self._number:
            self._messages.append(("epoch", report))
            self._reports[epoch] = len(self._messages)
            await self._notify()
        await self._until(
            lambda: (
                self._closed
                or number != self._number
                or (epoch in self._reports and self._dealt_with >= self._reports[epoch])
            )
        )
        return number == self._number and not self._closed

    async def leave(self, number: int, rank: int, error: RaykdError | None, *, own: bool = True) -> bool:
        """For workers: they came to the end of a run. False where the others did not, who may wait for this worker.

        error: what went wrong. own: whether that is known to be the run's fault: where it may come of another worker's
        death, the run is done again, unless all workers live.
        """
        if number != self._number:
            return True
        self._left.add(rank)
        if error is None:
            if rank == 0:  # which writes the result
                self._end(None)
            await self._notify()
            return True
        await self._notify()
        together = await self._together(number)
        if (together or own) and number == self._number:
            self._end(error)
            await self._notify()
        return together

    async def _together(self, number: int) -> bool:
        def met() -> bool:
            return len(self._left) == self._workers or number != self._number

        try:
            await asyncio.wait_for(self._until(met), TOGETHER_S)
        except TimeoutError:
            return False
        return True

    async def failed(self, why: str) -> None:
        """The workers failed or died; Ray Train starts them again, to take up the run in hand."""
        self._left.clear()
        self._failures += 1
        if self._failures > self._max_failures:
            self._end(RunError(f"its {self._workers} workers failed {self._failures} times: {why}"))
        await self._notify()

    async def gone(self, why: str) -> None:
        """Ray Train has ended: there will be no workers."""
        self._gone = f"its {self._workers} workers failed: {why}"
        self._end(RunError(self._gone))
        await self._notify()

    def _end(self, error: RaykdError | None) -> None:
        if not self._ended and self._number >= 0:
            self._ended = True
            self._messages.append(("end", error))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _until(self, met: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(met)
