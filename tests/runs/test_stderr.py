"""Lines kept off standard error, at the level where C++ writes."""

from __future__ import annotations

import os

from raykd.runs.stderr import without_lines


def test_only_unwanted_lines_are_kept_off(capfd):
    with without_lines("nonsense"):
        os.write(2, b"one\nsome nonsense here\ntwo\n")
    os.write(2, b"nonsense again\n")
    assert capfd.readouterr().err == "one\ntwo\nnonsense again\n"


def test_a_line_that_was_begun_is_not_lost(capfd):
    with without_lines("nonsense"):
        os.write(2, b"no end of line")
    assert capfd.readouterr().err == "no end of line"
