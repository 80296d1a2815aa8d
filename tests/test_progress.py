"""Progress reports of work, and whoever listens hears it."""

from __future__ import annotations

import threading

import pytest

from raykd.progress import listen_to_progress, part_of_work, report_progress, with_progress


@pytest.fixture
def heard():
    """The reports heard during a test."""
    reports: list[tuple[float | None, str]] = []
    with listen_to_progress(lambda share, doing: reports.append((share, doing))):
        yield reports


def test_nobody_listens_by_default():
    report_progress(0.5, "into the air")
    with part_of_work(0.0, 1.0, "a part"):
        assert list(with_progress("ab")) == ["a", "b"]


def test_items_are_equal_shares(heard):
    assert list(with_progress("abcd", "reading")) == list("abcd")
    assert heard == [(0.0, "reading"), (0.25, "reading"), (0.5, "reading"), (0.75, "reading")]


def test_parts_have_their_shares_of_what_is_around_them(heard):
    with part_of_work(0.5, 1.0, "epoch 2/2"):
        with part_of_work(0.0, 0.5):
            report_progress(0.5)
        with part_of_work(0.5, 1.0, "scoring dev"):
            report_progress(0.5)
            report_progress(None, "sentence 7")
            report_progress(7.0)
    report_progress(1.0)
    assert heard == [
        (0.5, "epoch 2/2"),
        (0.5, "epoch 2/2"),
        (0.625, "epoch 2/2"),
        (0.75, "epoch 2/2, scoring dev"),
        (0.875, "epoch 2/2, scoring dev"),
        (None, "epoch 2/2, scoring dev, sentence 7"),
        (1.0, "epoch 2/2, scoring dev"),
        (1.0, ""),
    ]


def test_a_part_that_fails_leaves_the_listener_as_it_was(heard):
    with pytest.raises(ValueError, match="broken"), part_of_work(0.0, 0.5, "a part"):
        raise ValueError("broken")
    report_progress(0.75, "on")
    assert heard[-1] == (0.75, "on")


def test_other_threads_and_inner_listeners_have_their_own(heard):
    thread = threading.Thread(target=report_progress, args=(0.5, "elsewhere"))
    thread.start()
    thread.join()
    with listen_to_progress(None):
        report_progress(0.5, "to nobody")
    assert heard == []
