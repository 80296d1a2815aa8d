import threading

import pytest

from raykd.transfer.prefetch import Prefetcher
from tests.patience import until


class Loads:
    """Values by key, with the thread that loaded them; a key may wait for an event, or fail."""

    def __init__(self):
        self.by: dict[int, str] = {}
        self.waits: dict[int, threading.Event] = {}
        self.begun = threading.Event()

    def __call__(self, key: int) -> str:
        self.begun.set()
        if key in self.waits:
            assert self.waits[key].wait()
        self.by[key] = threading.current_thread().name
        if key < 0:
            raise OSError(f"{key} is damaged")
        return f"value {key}"


def background() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("raykd-prefetch")]


def test_what_is_expected_is_loaded_in_the_background_and_what_is_not_when_it_is_asked_for():
    loads = Loads()
    opened = Prefetcher(loads)
    assert opened.get(7) == "value 7"
    assert background() == []
    opened.prefetch([1, 2])
    (thread,) = background()
    loads.waits[3] = threading.Event()
    opened.prefetch([1, 2, 3])
    until(lambda: len(loads.by) == 3)
    assert [opened.get(key) for key in (1, 2)] == ["value 1", "value 2"]
    assert loads.by[7] == threading.current_thread().name
    assert {loads.by[1], loads.by[2]} == {thread.name}
    loads.waits[3].set()
    opened.close()
    assert not thread.is_alive()
    assert background() == []


def test_what_no_thread_has_begun_is_not_waited_for():
    loads = Loads()
    loads.waits[1] = threading.Event()
    opened = Prefetcher(loads)
    opened.prefetch([1, 2])
    assert loads.begun.wait()
    assert opened.get(2) == "value 2"
    assert loads.by[2] == threading.current_thread().name
    loads.waits[1].set()
    assert opened.get(1) == "value 1"
    assert loads.by[1] != threading.current_thread().name
    opened.close()


def test_an_error_in_the_background_is_raised_where_the_thing_is_asked_for():
    loads = Loads()
    opened = Prefetcher(loads)
    opened.prefetch([-1, 2])
    until(lambda: 2 in loads.by)
    assert opened.get(2) == "value 2"
    with pytest.raises(OSError, match="-1 is damaged"):
        opened.get(-1)
    opened.close()


def test_what_is_no_longer_expected_is_let_go():
    loads = Loads()
    opened = Prefetcher(loads)
    opened.prefetch([1, 2])
    opened.get(1), opened.get(2)
    opened.prefetch([2, 3])
    opened.get(2), opened.get(3)
    assert set(opened._open) == {2, 3}
    loads.by.clear()
    opened.get(1)
    assert set(loads.by) == {1}
    opened.close()
    assert not opened._open
