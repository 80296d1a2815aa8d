"""One prepared store for the tests of runs: a corpus, its teachers and their signals, computed once."""

from collections.abc import Iterator

import pytest
import ray
from ray.util import placement_group, remove_placement_group

from raykd.training.prepare import Preparation
from tests.training.small import prepared, recipe


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Preparation:
    """The small recipe, prepared; its store also holds three best paths and hidden states of layer 1."""
    folder = str(tmp_path_factory.mktemp("small") / "store")
    others = ({"kind": "top_wk", "k": 3}, {"kind": "representation", "layer": 1})
    return prepared(folder, recipe(), *(recipe(objective=objective) for objective in others))


@pytest.fixture
def full_ray_cluster(ray_cluster: str) -> Iterator[str]:
    """The shared cluster while all its CPUs are held."""
    held = placement_group([{"CPU": ray.cluster_resources()["CPU"]}])
    ray.get(held.ready())
    yield ray_cluster
    remove_placement_group(held)
