"""Messages between slot and workers: runs in one direction, epochs and ends in the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from raykd.errors import RaykdError, RunError
from raykd.identity import PlainObject

TOGETHER_S = 10.0
"""Seconds for which a worker with a failed run waits for the rest: they fail too, or would wait for ever."""

Message = tuple[Literal["epoch"], PlainObject] | tuple[Literal["end"], RaykdError | None]
"""The report of an epoch; or the end of a run, with the error if it failed."""


class Mailbox:
    """Passes messages between slot and workers; runs as a separate actor that computes nothing.

    Its methods wait for each other, so all of them are coroutines. One run is in hand at a time, and has a number. A
    new run replaces it, and the workers leave the old one at the end of their epoch. Callers pass the last number they
    know, so restarted workers need nothing from those that died.
    """

    def __init__(self, workers: int, max_failures: int):
        self._workers, self._max_failures = workers, max_failures
        self._changed = asyncio.Condition()
        self._closed, self._group_failure = False, ""
        self._number = -1
        self._begin({})

    def _begin(self, run: PlainObject) -> None:
        self._run, self._ended, self._failures = run, False, 0
        self._messages: list[Message] = []
        self._dealt_with = 0
        self._reports: dict[int, int] = {}
        """Epoch → number of messages up to and including its report."""
        self._finished_ranks: set[int] = set()
        """Ranks of the workers that have reached the end of the run."""

    async def give(self, run: PlainObject) -> None:
        """Put a run in place of the one in hand."""
        self._number += 1
        self._begin(run)
        if self._group_failure:
            self._end(RunError(self._group_failure))
        await self._notify()

    async def hear(self, after: int) -> Message:
        """Return the next message about the run in hand.

        Args:
            after: Number of messages with which the slot has dealt.
        """
        self._dealt_with = after
        await self._notify()
        await self._until(lambda: len(self._messages) > after)
        return self._messages[after]

    async def close(self) -> None:
        """Give no more runs: the workers end."""
        self._closed = True
        await self._notify()

    async def take(self, after: int) -> tuple[int, PlainObject] | None:
        """Wait for the next run; called by workers.

        Args:
            after: Number of the last run, -1 at the start.

        Returns:
            Number and run, or None at the end.
        """
        await self._until(lambda: self._closed or (self._number > after and not self._ended))
        return None if self._closed else (self._number, self._run)

    async def epoch(self, number: int, epoch: int, report: PlainObject | None) -> bool:
        """Report the end of an epoch, and wait until the slot has dealt with it or given another run.

        Called by workers.

        Args:
            number: Number of the run.
            epoch: Index of the epoch.
            report: The report, from one of the workers; None from the rest.

        Returns:
            True if the run goes on.
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

    async def leave(
        self, number: int, rank: int, error: RaykdError | None, *, run_at_fault: bool = True
    ) -> bool:
        """Report the end of a run; called by workers.

        Args:
            number: Number of the run.
            rank: Rank of the worker.
            error: Reason of a failure; None if the run ended well.
            run_at_fault: True if the run is known to be at fault. Otherwise the death of another worker may be the
                reason, and the run is repeated unless all workers live.

        Returns:
            False if some workers have not come to the end, and may wait for this one.
        """
        if number != self._number:
            return True
        self._finished_ranks.add(rank)
        if error is None:
            if rank == 0:  # the worker that writes the result
                self._end(None)
            await self._notify()
            return True
        await self._notify()
        together = await self._together(number)
        if (together or run_at_fault) and number == self._number:
            self._end(error)
            await self._notify()
        return together

    async def _together(self, number: int) -> bool:
        def met() -> bool:
            return len(self._finished_ranks) == self._workers or number != self._number

        try:
            await asyncio.wait_for(self._until(met), TOGETHER_S)
        except TimeoutError:
            return False
        return True

    async def failed(self, reason: str) -> None:
        """Count a failure of the workers; Ray Train restarts them, to take up the run in hand."""
        self._finished_ranks.clear()
        self._failures += 1
        if self._failures > self._max_failures:
            self._end(RunError(f"its {self._workers} workers failed {self._failures} times: {reason}"))
        await self._notify()

    async def gone(self, reason: str) -> None:
        """End the run in hand for good: Ray Train has ended, and no workers will come."""
        self._group_failure = f"its {self._workers} workers failed: {reason}"
        self._end(RunError(self._group_failure))
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
