"""The short form of `make chaos`: two kills, and two drivers at once."""

from __future__ import annotations

import pytest

from tests.chaos.faults import kills, two_drivers, undisturbed
from tests.long import of_make_chaos

pytestmark = of_make_chaos


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("chaos"))


@pytest.mark.timeout(600)
def test_a_sweep_that_is_killed_at_random_instants_ends_as_the_undisturbed_one(whole, tmp_path):
    report = kills(tmp_path, whole, seed=1, count=2)
    assert sum(report["killed"].values()) == 2


@pytest.mark.timeout(400)
def test_two_drivers_at_once_end_as_the_undisturbed_one(whole, tmp_path):
    assert two_drivers(tmp_path, whole, seed=1)["exit codes"] == {"0": 1, "4": 1}
