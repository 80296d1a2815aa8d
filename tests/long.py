"""Tests that `make test` and `make test-all` leave out for their length, and `make chaos` runs."""

import os

import pytest

of_make_chaos = pytest.mark.skipif(not os.environ.get("RAYKD_CHAOS"), reason="long: make chaos runs it")
