"""Tests left out for their length: by `make test`, or by `make test-all` too."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

of_make_chaos = pytest.mark.skipif(not os.environ.get("RAYKD_CHAOS"), reason="long: make chaos runs it")
"""A test that only `make chaos` runs."""


def mostly_slow(values: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Parameters of a test, of which `make test` runs the `quick` ones alone."""
    values = list(values)
    assert all(value in values for value in quick)
    return [pytest.param(value, marks=() if value in quick else pytest.mark.slow) for value in values]
