"""Messages between slots and workers, in one process: runs, epochs, faults, deaths."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

import raykd.cluster.mailbox as module
from raykd.cluster.mailbox import Mailbox
from raykd.errors import RaykdError, RunError, StoreError


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(workers=2, max_failures=1)


class Workers:
    """Two workers following the instructions of runs: a number of epochs, then an outcome; dead ones are restarted."""

    def __init__(self, mailbox: Mailbox):
        self.mailbox = mailbox
        self.begun: list[tuple[int, str]] = []
        self.epochs: list[tuple[int, str, int]] = []
        self.starts = 0

    async def live(self) -> None:
        while True:
            self.starts += 1
            both = [asyncio.create_task(self.work(rank)) for rank in range(2)]
            ended, pending = await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            for remaining in pending:
                remaining.cancel()  # as Ray Train does
            if not (errors := [error for task in ended if (error := task.exception())]):
                return
            await self.mailbox.failed(str(errors[0]))

    async def work(self, rank: int) -> None:
        number = -1
        while (message := await self.mailbox.take(number)) is not None:
            number, run = message
            self.begun.append((rank, run["name"]))
            await self.do(rank, number, run)

    async def do(self, rank: int, number: int, run: dict[str, Any]) -> None:
        for epoch in range(run["epochs"]):
            if not await self.mailbox.epoch(number, epoch, {"epoch": epoch} if rank == 0 else None):
                return
            self.epochs.append((rank, run["name"], epoch))
        error = run.get("errors", {}).get(rank)
        if error == "stuck":  # in a sum over all workers, of which one failed, until it is cancelled
            await asyncio.Event().wait()
        is_raykd_error = isinstance(error, RaykdError)
        raykd_error = error if is_raykd_error or error is None else RunError(str(error))
        if not await self.mailbox.leave(number, rank, raykd_error, run_at_fault=is_raykd_error):
            raise raykd_error or AssertionError


async def hear(mailbox: Mailbox, name: str, epochs: int, *, stop: int | None = None, **errors: Any) -> Any:
    """Send a run and wait for the end, or for the epoch `stop`; return the error of the run or "stopped"."""
    await mailbox.give({"name": name, "epochs": epochs, **errors})
    for epoch in range(epochs):
        assert await mailbox.hear(epoch) == ("epoch", {"epoch": epoch})
        if epoch == stop:
            return "stopped"
    kind, error = await mailbox.hear(epochs)
    assert kind == "end"
    return error


def done(mailbox: Mailbox, slot: Coroutine[Any, Any, Any]) -> tuple[Any, Workers]:
    """Return the result of the slot, and the ended workers."""

    async def both() -> tuple[Any, Workers]:
        workers = Workers(mailbox)
        living = asyncio.create_task(workers.live())
        slot_result = await slot
        await mailbox.close()
        await living
        return slot_result, workers

    return asyncio.run(both())


def test_workers_take_run_after_run(mailbox):
    async def slot() -> list[Any]:
        return [await hear(mailbox, name, 2) for name in "abc"]

    ends, workers = done(mailbox, slot())
    assert ends == [None] * 3
    assert sorted(workers.begun) == [(rank, name) for rank in range(2) for name in "abc"]
    assert len(workers.epochs) == 2 * 3 * 2
    assert workers.starts == 1


def test_a_run_that_is_stopped_computes_nothing_more_and_ends_no_worker(mailbox):
    async def slot() -> list[Any]:
        return [await hear(mailbox, "a", 5, stop=1), await hear(mailbox, "b", 1)]

    ends, workers = done(mailbox, slot())
    assert ends == ["stopped", None]
    assert sorted(workers.epochs) == [(rank, *end) for rank in range(2) for end in [("a", 0), ("b", 0)]]
    assert workers.starts == 1


DIVERGED = RunError("epoch 1, batch 3: the gradient is not finite")


@pytest.mark.parametrize("error", [DIVERGED, ValueError("a fault of ours")])
def test_a_fault_that_all_workers_meet_ends_the_run_alone(mailbox, error):
    async def slot() -> list[Any]:
        bad = await hear(mailbox, "a", 1, errors={0: error, 1: error})
        return [bad, await hear(mailbox, "b", 1)]

    (bad, good), workers = done(mailbox, slot())
    assert isinstance(bad, RunError)
    assert (str(bad), good) == (str(error), None)
    assert workers.starts == 1


def test_a_fault_of_one_worker_ends_the_run_and_starts_them_again(mailbox, monkeypatch):
    monkeypatch.setattr(module, "TOGETHER_S", 0.05)
    full = StoreError("x", "no space left on device", "free some space", True)

    async def slot() -> list[Any]:
        bad = await hear(mailbox, "a", 1, errors={0: full, 1: "stuck"})
        return [bad, await hear(mailbox, "b", 1)]

    (bad, good), workers = done(mailbox, slot())
    assert (bad, good) == (full, None)
    assert workers.starts == 2
    assert sorted(workers.begun) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")], "nobody tries it again"


def test_a_run_whose_workers_die_is_taken_up_again_so_often_and_the_next_one_anew(mailbox):
    async def slot() -> list[Any]:
        ends = []
        for name, deaths in (("a", 1), ("b", 2), ("c", 1)):
            await mailbox.give({"name": name, "epochs": 0})
            for _ in range(deaths):
                message = await mailbox.take(-1)
                assert message is not None
                assert message[1]["name"] == name
                await mailbox.failed("the actor died")
            if deaths < 2:
                repeated = await mailbox.take(-1)
                assert repeated == message
                await mailbox.leave(message[0], 0, None)
            ends.append((await mailbox.hear(0))[1])
        return ends

    first, second, third = asyncio.run(slot())
    assert (first, third) == (None, None)
    assert str(second) == "its 2 workers failed 2 times: the actor died"


def test_where_there_will_be_no_workers_runs_end(mailbox):
    async def slot() -> list[Any]:
        await mailbox.give({"name": "a"})
        await mailbox.gone("no room for them")
        first = await mailbox.hear(0)
        await mailbox.give({"name": "b"})
        return [first, await mailbox.hear(0)]

    ends = asyncio.run(slot())
    assert [str(error) for _, error in ends] == ["its 2 workers failed: no room for them"] * 2
