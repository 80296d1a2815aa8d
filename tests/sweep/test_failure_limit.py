"""The end of a sweep if many trials fail for one reason."""

from __future__ import annotations

import pytest

from raykd.figures.trial import State, Trial
from raykd.sweep.failure_limit import FEWEST_ALL, FEWEST_MOST, reason_to_give_up

ENDS: dict[str, State] = {"complete": "COMPLETE", "pruned": "PRUNED", "runs": "RUNNING"}


def ended(*ends: str) -> list[Trial]:
    """Trials with the given final states; any other word is the message of a failed trial."""
    return [
        Trial(number, ENDS.get(end, "FAILED"), message="" if end in ENDS else end)
        for number, end in enumerate(ends)
    ]


def test_it_needs_as_many_failures_as_chance_does_not_explain():
    assert not reason_to_give_up(ended(*["no file"] * (FEWEST_ALL - 1)))
    assert (
        reason_to_give_up(ended(*["no file"] * FEWEST_ALL)) == "4 of 4 trials failed, 4 of them with: no file"
    )


def test_numbers_and_ids_do_not_make_two_reasons():
    fails = [f"epoch {n}, batch 1{n}: run-{n}{'ab' * 10}: the loss is not finite" for n in range(4)]
    assert "4 of them with: epoch 0, batch 10" in reason_to_give_up(ended(*fails, "complete", "complete"))


@pytest.mark.parametrize(
    ("states", "stops"),
    [
        (["x", "y", "z", "w"], True),  # all of them, whatever the reasons
        (["x", "x", "x", "x", "complete"], False),  # most, of too few
        (["x", "x", "x", "x", "complete", "complete"], True),
        (["x", "x", "x", "complete", "complete", "complete"], False),  # half
        (["x", "x", "x", "pruned", "pruned", "pruned"], False),  # what was pruned did not fail
        (["x", "x", "x", "x", "complete", "runs", "runs"], False),  # what runs has not ended
        (["x", "y", "z", "u", "v", "complete"], False),  # most, for reasons of their own
    ],
)
def test_which_failures_stop_a_sweep(states, stops):
    assert bool(reason_to_give_up(ended(*states))) == stops
    assert FEWEST_MOST == 6, "the cases above are made for it"
