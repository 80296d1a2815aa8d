"""A growing cluster in a separate process: a head without CPUs, and a node that joins while a phase waits.

Prints the observations as JSON.
"""

from __future__ import annotations

import json
import time

import ray
from ray._raylet import GcsClient
from ray.autoscaler.v2.sdk import get_cluster_resource_state
from ray.cluster_utils import Cluster
from ray.core.generated.autoscaler_pb2 import ClusterConfig

from raykd.cluster.connection import topology
from raykd.cluster.growth import Autoscaler, wait_for_slots
from raykd.cluster.placement import latency_node, preflight
from raykd.cluster.topology import Group
from raykd.precompute import measurement
from raykd.precompute.processor import processor_name
from raykd.recipes.resources import AddedNodes, LatencyTarget, Resources
from tests.silent import Silent


class Said(Silent):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def asked(gcs: GcsClient) -> list[dict[str, float]]:
    """Resources requested from the autoscaler."""
    state = get_cluster_resource_state(gcs)
    return [
        dict(request.request.resources_bundle)
        for constraint in state.cluster_resource_constraints
        for request in constraint.resource_requests
        for _ in range(request.count)
    ]


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    gcs, observations = GcsClient(cluster.address), {}
    observations["head"] = str(topology())
    cluster_config = ClusterConfig()
    cluster_config.node_group_configs.add(resources={"CPU": 4}, max_count=3, name="workers")
    gcs.report_cluster_config(cluster_config.SerializeToString())
    observations["told by Ray"] = [node_type.max_nodes for node_type in topology().may_add]
    grows = topology([AddedNodes(node={"CPU": 2.0}, most=1)])
    observations["told by the file"] = [node_type.max_nodes for node_type in grows.may_add]
    observations["students"] = preflight(Resources(), grows).students
    messages, during = Said(), []

    def come(seconds: float) -> None:
        if not during:
            during.extend(asked(gcs))
            cluster.add_node(num_cpus=2, resources={"quiet": 1})
        time.sleep(0.2)

    observations["places"] = wait_for_slots(
        "students", Group({"CPU": 2.0}), 1, grows, messages, minutes=60, autoscaler=Autoscaler(pause=come)
    )
    observations["notes"], observations["asked"], observations["left"] = messages.notes, during, asked(gcs)
    node = latency_node(LatencyTarget(custom={"quiet": 1.0}), topology())
    assert node is not None
    driver = ray.get_runtime_context().get_node_id()
    place = measurement._run_on(node, _node_id, takes={"CPU": 1.0, "quiet": 1.0})
    observations["pinned"] = place == node.id != driver
    observations["processor"] = measurement._run_on(node, processor_name) == processor_name()
    print(json.dumps(observations), flush=True)
    ray.shutdown()
    cluster.shutdown()


def _node_id() -> str:
    return ray.get_runtime_context().get_node_id()


if __name__ == "__main__":
    main()
