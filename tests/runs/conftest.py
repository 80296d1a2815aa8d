"""One prepared store for the tests of runs: a corpus, its teachers and their signals, computed once."""

import pytest

from raykd.runs.prepare import Preparation
from tests.runs.small import prepared, recipe


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Preparation:
    """The small recipe, prepared; its store also holds three best paths and hidden states of layer 1."""
    folder = str(tmp_path_factory.mktemp("small") / "store")
    others = ({"kind": "top_wk", "k": 3}, {"kind": "representation", "layer": 1})
    return prepared(folder, recipe(), *(recipe(objective=objective) for objective in others))
