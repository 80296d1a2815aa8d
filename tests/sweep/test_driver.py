"""What the driver says beside what it does; whole sweeps run in the end-to-end tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from raykd.sweep.driver import tell_text_left_out
from tests.runs.small import recipe


@pytest.mark.parametrize(
    ("kinds", "baseline", "rows", "told"),
    [
        (["structural", "top_1"], "none", 20, False),
        (["structural", "top_1"], "gold", 20, True),
        (["gold", "structural"], "none", 20, True),
        (["gold", "structural"], "gold", 0, False),
    ],
)
def test_it_is_said_that_gold_hears_no_unlabelled_text(kinds, baseline, rows, told):
    parts = {"unlabelled": SimpleNamespace(num_rows=rows)}
    variants = [recipe(objective={"kind": kind}) for kind in kinds]
    sweep: Any = SimpleNamespace(
        preparation=SimpleNamespace(corpus=SimpleNamespace(parts=parts)),
        variants=variants,
        file=SimpleNamespace(baseline=baseline),
    )
    notes: list[str] = []
    listener: Any = SimpleNamespace(note=notes.append)
    tell_text_left_out(sweep, listener)
    assert notes == ["gold is trained without the 20 unlabelled sentences; other objectives hear them"] * told
