"""Batching of several requests' texts, labelled together in a thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from raykd.serving.labeller import Labelled, Labeller, Text

MAX_BATCH, MAX_WAIT_MS = 32, 2.0
"""Texts that are labelled together, and milliseconds that a text may wait for others."""
MAX_WAITING_TEXTS, MAX_WAITING_CHARACTERS = 10_000, 2**20
"""Texts that may wait, and their characters in all; further requests are refused."""
MAX_BATCH_CHARACTERS = 2**16
"""Most characters of a padded batch: texts times the characters of the longest. A longer text is labelled alone."""


class BusyError(Exception):
    """Too many texts are waiting."""


@dataclass(frozen=True)
class _Request:
    text: Text
    characters: int
    since: float
    """Arrival in seconds of the event loop's clock."""
    result: asyncio.Future[Labelled]


class Batcher:
    """Labels texts in batches.

    A batch begins when it has `max_batch` texts, or when its first text has waited `max_wait_ms` and no other batch is
    being labelled.

    Args:
        labeller: The model.
        max_batch: Texts of a batch, at most.
        max_wait_ms: Milliseconds that a text may wait for others.
        on_batch: Called with the number of texts of each batch.
    """

    def __init__(
        self, labeller: Labeller, *, max_batch: int, max_wait_ms: float, on_batch: Callable[[int], None]
    ):
        self.labeller, self.max_batch, self.max_wait_s = labeller, max_batch, max_wait_ms / 1000
        self.on_batch = on_batch
        self._waiting: deque[_Request] = deque()
        self._arrived = asyncio.Event()

    async def label(self, texts: Sequence[Text]) -> list[Labelled]:
        """Label texts in the next batches.

        Args:
            texts: Texts, or their words.

        Raises:
            BusyError: Too many texts are waiting.
        """
        loop = asyncio.get_running_loop()
        requests = [_Request(text, _characters(text), loop.time(), loop.create_future()) for text in texts]
        waiting = [*self._waiting, *requests]
        if (
            len(waiting) > MAX_WAITING_TEXTS
            or sum(request.characters for request in waiting) > MAX_WAITING_CHARACTERS
        ):
            raise BusyError
        self._waiting.extend(requests)
        self._arrived.set()
        # If one text fails, the results of the others must be collected too.
        results = await asyncio.gather(*(request.result for request in requests), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, Labelled)]

    async def run(self) -> None:
        """Label arriving texts until cancelled."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="raykd-labels") as thread:
            while True:
                batch = await self._next()
                if not batch:
                    continue
                self.on_batch(len(batch))
                results = await loop.run_in_executor(
                    thread, self._label_or_errors, [request.text for request in batch]
                )
                for request, result in zip(batch, results, strict=True):
                    if request.result.done():  # the client has disconnected
                        continue
                    if isinstance(result, Exception):
                        request.result.set_exception(result)
                    else:
                        request.result.set_result(result)

    async def _next(self) -> list[_Request]:
        """Wait for the next batch; empty if all waiting clients have disconnected."""
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
        # Texts of clients that have disconnected are not labelled.
        self._waiting = deque(request for request in self._waiting if not request.result.done())
        if not self._waiting:
            return []
        batch, longest = [self._waiting.popleft()], 0
        while self._waiting and len(batch) < self.max_batch:
            longest = max(longest, batch[-1].characters, self._waiting[0].characters)
            if longest * (len(batch) + 1) > MAX_BATCH_CHARACTERS:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _label_or_errors(self, texts: list[Text]) -> list[Labelled | Exception]:
        """Label the texts; a faulty one gets the error in the place of its labels."""
        try:
            return list(self.labeller(texts, batch=self.max_batch))
        except Exception as error:
            if len(texts) == 1:
                return [error]
            # A faulty text must not fail the requests batched with it: label the texts one by one.
            return [self._label_or_errors([text])[0] for text in texts]


def _characters(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(len("".join(word)) for word in text)
