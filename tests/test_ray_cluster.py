"""The shared cluster: what other tests rely on."""

import pytest
import ray

from raykd.errors import CorpusError


def fail() -> None:
    raise CorpusError("a.txt", 3, "one column", "write two")


def test_workers_share_four_cpus_and_know_the_tests_helpers(ray_cluster):
    assert ray.cluster_resources()["CPU"] == 4

    @ray.remote(num_cpus=0.5)
    def place() -> str:
        from tests.corpora_root import corpora_root

        return corpora_root.__module__

    assert ray.get(place.remote()) == "tests.corpora_root"


def test_errors_cross_from_workers_with_their_fields(ray_cluster):
    with pytest.raises(ray.exceptions.RayTaskError) as caught:
        ray.get(ray.remote(num_cpus=0.5)(fail).remote())
    cause = caught.value.cause
    assert isinstance(cause, CorpusError)
    assert str(cause) == "a.txt:3: one column; write two"
