"""The short form of `make chaos`: some kills, and each other fault once."""

from __future__ import annotations

import pytest

from tests.chaos.faults import OTHERS, kills, undisturbed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("chaos"))


@pytest.mark.timeout(600)
def test_a_sweep_that_is_killed_at_random_instants_ends_as_the_undisturbed_one(whole, tmp_path):
    told = kills(tmp_path, whole, seed=1, count=3)
    assert sum(told["killed"].values()) == 3


@pytest.mark.timeout(400)
@pytest.mark.parametrize("fault", OTHERS, ids=lambda fault: fault.__name__)
def test_a_sweep_with_a_fault_ends_as_the_undisturbed_one(whole, tmp_path, fault):
    assert fault(tmp_path, whole, seed=1)["exit codes"]
