"""One prepared store for the tests of runs: a corpus, its teachers and their signals, computed once."""

import pytest

from raykd.runs.prepare import Preparation
from tests.runs.small import prepared, recipe


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Preparation:
    """The small recipe, prepared; its store also holds three best paths."""
    folder = str(tmp_path_factory.mktemp("small") / "store")
    return prepared(folder, recipe(), recipe(objective={"kind": "top_wk", "k": 3}))
