"""Texts of several requests are labelled together, in a thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from raykd.serving.labeller import Labelled, Labeller, Text

MAX_BATCH, MAX_WAIT_MS = 32, 2.0
"""Texts that are labelled together, and how many milliseconds one may wait for others."""
MAX_WAITING_TEXTS, MAX_WAITING_CHARACTERS = 10_000, 2**20
"""So many texts may wait, with so many characters in all; requests beyond are refused."""
MAX_BATCH_CHARACTERS = 2**16
"""Of a batch at most, as padded: its texts times the characters of the longest. A longer text is alone."""


class BusyError(Exception):
    """Too many texts wait already."""


@dataclass(frozen=True)
class _Request:
    text: Text
    characters: int
    since: float
    """Seconds of the event loop's clock."""
    result: asyncio.Future[Labelled]


class Batcher:
    """Labels texts in batches. A batch begins when it has `max_batch` texts, or when its first has waited
    `max_wait_ms` and nothing else is being labelled.

    `on_batch` is called with the number of texts of each batch.
    """

    def __init__(
        self, labeller: Labeller, *, max_batch: int, max_wait_ms: float, on_batch: Callable[[int], None]
    ):
        self.labeller, self.max_batch, self.max_wait_s = labeller, max_batch, max_wait_ms / 1000
        self.on_batch = on_batch
        self._waiting: deque[_Request] = deque()
        self._arrived = asyncio.Event()

    async def label(self, texts: Sequence[Text]) -> list[Labelled]:
        """What the model says of each text. Raises BusyError where too many wait."""
        loop = asyncio.get_running_loop()
        own = [_Request(text, _characters(text), loop.time(), loop.create_future()) for text in texts]
        together = [*self._waiting, *own]
        if (
            len(together) > MAX_WAITING_TEXTS
            or sum(each.characters for each in together) > MAX_WAITING_CHARACTERS
        ):
            raise BusyError
        self._waiting.extend(own)
        self._arrived.set()
        # Where one fails, the results of the others must be collected too.
        found = await asyncio.gather(*(each.result for each in own), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return [each for each in found if isinstance(each, Labelled)]

    async def run(self) -> None:
        """Label what comes, until cancelled."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="raykd-labels") as thread:
            while True:
                batch = await self._next()
                if not batch:
                    continue
                self.on_batch(len(batch))
                found = await loop.run_in_executor(thread, self._labelled, [each.text for each in batch])
                for each, result in zip(batch, found, strict=True):
                    if each.result.done():  # its client has gone
                        continue
                    if isinstance(result, Exception):
                        each.result.set_exception(result)
                    else:
                        each.result.set_result(result)

    async def _next(self) -> list[_Request]:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        loop = asyncio.get_running_loop()
        until = self._waiting[0].since + self.max_wait_s
        while len(self._waiting) < self.max_batch and loop.time() < until:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._arrived.wait()
        # Those whose client has gone are not labelled.
        self._waiting = deque(each for each in self._waiting if not each.result.done())
        if not self._waiting:
            return []
        batch, longest = [self._waiting.popleft()], 0
        while self._waiting and len(batch) < self.max_batch:
            longest = max(longest, batch[-1].characters, self._waiting[0].characters)
            if longest * (len(batch) + 1) > MAX_BATCH_CHARACTERS:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _labelled(self, texts: list[Text]) -> list[Labelled | Exception]:
        try:
            return list(self.labeller(texts, batch=self.max_batch))
        except Exception as error:
            if len(texts) == 1:
                return [error]
            # One request's fault must not be another's.
            return [self._labelled([text])[0] for text in texts]


def _characters(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(len("".join(word)) for word in text)
