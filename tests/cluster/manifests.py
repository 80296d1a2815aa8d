"""The manifests of `cluster/kuberay`, as kubectl builds them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KUBERAY = ROOT / "cluster/kuberay"
PLACES = KUBERAY / "tracking/places.env"


def built(folder: Path) -> list[dict[str, Any]]:
    """All objects of a kustomization; skips where there is no kubectl."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed here, which builds the kustomizations")
    process = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return [document for document in yaml.safe_load_all(process.stdout) if document]


def tracking_container() -> dict[str, Any]:
    """The tracking server's container, as it is written."""
    objects = yaml.safe_load_all((KUBERAY / "tracking/mlflow.yaml").read_text())
    (deployment,) = (object for object in objects if object["kind"] == "Deployment")
    return deployment["spec"]["template"]["spec"]["containers"][0]


def settings(file: Path) -> dict[str, str]:
    """The variables of an env file."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}
