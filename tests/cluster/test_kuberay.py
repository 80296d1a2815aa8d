"""The manifests of `cluster/kuberay`: built by kubectl, held against KubeRay's own schema, and free of secrets."""

from __future__ import annotations

import re
import shutil
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cluster.manifests import KUBERAY, PLACES, ROOT, built, settings

SCHEMAS = ROOT.parent / "shared/schemas/kuberay"
FOLDERS = ("tracking", "cluster", "job")
SECRETS = {path.name.partition(".")[0]: path for path in (KUBERAY / "secrets").glob("*.example")}


@cache
def schema_of(kind: str) -> dict[str, Any]:
    """KubeRay's schema of an object, which refuses keys that it does not name."""
    path = SCHEMAS / f"ray.io_{kind.lower()}s.yaml"
    if not path.exists():
        pytest.skip(
            "KubeRay's schemas are not in ../shared/schemas/kuberay: ray-project/kuberay, config/crd/bases"
        )
    definition = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    (version,) = (version for version in definition["spec"]["versions"] if version["name"] == "v1")
    return strict(version["schema"]["openAPIV3Schema"])


def strict(schema: Any) -> Any:
    """Return the schema with unknown keys forbidden; Kubernetes would drop them silently."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    checked = {key: strict(value) for key, value in schema.items()}
    has_properties = isinstance(checked.get("properties"), dict) and checked.get("type") == "object"
    if has_properties and not checked.get("x-kubernetes-preserve-unknown-fields"):
        checked.setdefault("additionalProperties", False)
    if checked.get("x-kubernetes-int-or-string"):
        checked.pop("anyOf", None)
        checked.pop("type", None)
        # A quantity of Kubernetes is also a number, such as 2 CPUs.
        return {"type": ["integer", "number", "string"]}
    return checked


def checked(object_: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Messages of all violations of the schema by an object."""
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(object_)]


def pod_schema() -> dict[str, Any]:
    return schema_of("RayCluster")["properties"]["spec"]["properties"]["headGroupSpec"]["properties"][
        "template"
    ]


def objects(kind: str | None = None) -> list[dict[str, Any]]:
    all_objects = [object_ for folder in FOLDERS for object_ in built(KUBERAY / folder)]
    return [object_ for object_ in all_objects if kind in (None, object_["kind"])]


def containers(value: Any) -> list[dict[str, Any]]:
    """All containers, at any depth."""
    if isinstance(value, list):
        return [container for part in value for container in containers(part)]
    if not isinstance(value, dict):
        return []
    return value.get("containers", []) + [
        container for part in value.values() for container in containers(part)
    ]


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
def test_objects_of_kuberay_follow_its_schema(kind):
    schema = schema_of(kind)
    (object_,) = objects(kind)
    assert checked(object_, schema) == []
    wrong = deepcopy(object_)
    cluster = wrong["spec"]["rayClusterSpec"] if kind == "RayJob" else wrong["spec"]
    cluster["workerGroupSpecs"][0]["minReplica"] = 0
    cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    cluster["authOptions"]["mode"] = "tokens"
    assert len(checked(wrong, schema)) == 3


def test_pods_of_the_tracking_server_follow_the_schema_of_pods():
    pods = [
        object["spec"]["template"] for object in objects() if object["kind"] in ("Deployment", "StatefulSet")
    ]
    assert len(pods) == 2
    for pod in pods:
        assert checked(pod, pod_schema()) == []


def test_the_job_has_the_cluster_that_stays_as_its_own():
    (cluster,), (job,) = objects("RayCluster"), objects("RayJob")
    assert job["spec"]["rayClusterSpec"] == cluster["spec"]
    assert [object_["kind"] for object_ in built(KUBERAY / "job")] == ["RayJob"]


def test_the_cluster_asks_for_a_token_grows_from_nothing_and_has_both_kinds_of_worker():
    (cluster,) = objects("RayCluster")
    spec = cluster["spec"]
    pinned = re.search(r"^ray==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert spec["rayVersion"] == pinned[1]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["enableInTreeAutoscaling"]
    groups = {group["groupName"]: group for group in spec["workerGroupSpecs"]}
    assert {name: group["minReplicas"] for name, group in groups.items()} == {"cpu": 0, "gpu": 0}
    (worker,) = groups["gpu"]["template"]["spec"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert spec["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}


def test_every_container_is_unprivileged():
    all_containers = containers(objects())
    assert len(all_containers) == 2 + 2 * 3
    for container in all_containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    pods = [pod for pod in _pods(objects()) if "containers" in pod]
    assert {pod["securityContext"]["runAsNonRoot"] for pod in pods} == {True}


def _pods(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [pod for part in value for pod in _pods(part)]
    if not isinstance(value, dict):
        return []
    return [value] * ("containers" in value) + [pod for part in value.values() for pod in _pods(part)]


def test_secrets_are_in_no_manifest_and_each_that_is_named_has_its_place():
    assert not objects("Secret")
    offered = {f"raykd-{name}": settings(path) for name, path in SECRETS.items()}
    assert set(offered) == {"raykd-nodes", "raykd-tracking"}
    assert {value for secret in offered.values() for value in secret.values()} == {"", "raykd"}
    variables = [env for container in containers(objects()) for env in container.get("env", [])]
    for env in variables:
        if re.search("PASSWORD|SECRET|TOKEN|KEY", env["name"]):
            reference = env["valueFrom"]["secretKeyRef"]
            assert reference["key"] in offered[reference["name"]]
    whole = {name for container in containers(objects()) for name in _whole(container, "secretRef")}
    # The database's password does not reach the nodes, on which sweeps run.
    assert whole == {"raykd-nodes"}
    assert "DB_PASSWORD" not in offered["raykd-nodes"]


def _whole(container: dict[str, Any], kind: str) -> set[str]:
    return {source[kind]["name"] for source in container.get("envFrom", []) if kind in source}


def test_variables_of_the_entrypoint_are_those_of_the_places():
    (job,) = objects("RayJob")
    used = set(re.findall(r"\$(\w+)", job["spec"]["entrypoint"]))
    assert used == {"RAYKD_STORE", "MLFLOW_TRACKING_URI"}
    (places,) = objects("ConfigMap")
    assert places["data"] == settings(PLACES)
    assert used <= set(places["data"])
    file = re.search(r"/opt/raykd/(\S+\.yaml)", job["spec"]["entrypoint"])
    assert file is not None
    assert (ROOT / file[1]).is_file()


def test_a_shared_folder_reaches_every_node(tmp_path):
    folder = _copy_with_shared_folder(tmp_path)
    for kind, kustomization in (("RayCluster", folder / "cluster"), ("RayJob", folder / "job")):
        (object_,) = (manifest for manifest in built(kustomization) if manifest["kind"] == kind)
        assert checked(object_, schema_of(kind)) == []
        mounted = [
            [mount["name"] for mount in container["volumeMounts"]] for container in containers(object_)
        ]
        assert mounted == [["cache", "shared"]] * 3


def _copy_with_shared_folder(to: Path) -> Path:
    shutil.copytree(KUBERAY, to / "kuberay")
    path = to / "kuberay/cluster/kustomization.yaml"
    text = path.read_text()
    assert "# components: [../shared-folder]" in text
    path.write_text(text.replace("# components:", "components:"))
    return to / "kuberay"
