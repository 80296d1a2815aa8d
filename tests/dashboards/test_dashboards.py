"""The configurations of Prometheus and Grafana name only existing metrics."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from raykd.cluster.prometheus import METRICS
from raykd.serving.monitoring import Monitor
from tests.cluster.manifests import built

ROOT = Path(__file__).parents[2]
DASHBOARDS = ROOT / "dashboards"
BOARD = json.loads((DASHBOARDS / "grafana/raykd.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
SEEN = Path(__file__).with_name("ray_metrics.txt")
"""Names that a Ray of the pinned version exported during a sweep on one machine, without GPUs."""
WORDS = re.compile(r"\b(?:raykd|ray|autoscaler)_\w+|\bup\b")
SUFFIXES = ("", "_bucket", "_sum", "_count", "_total")


def yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml(DASHBOARDS / "alerts.yml")["groups"] for rule in group["rules"]]


def queries() -> list[tuple[str, str]]:
    """(where, query) of everything that is asked of Prometheus."""
    return [
        *((panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]),
        *(
            (variable["name"], variable["definition"])
            for variable in BOARD["templating"]["list"]
            if "definition" in variable
        ),
        *((rule["alert"], rule["expr"]) for rule in rules()),
    ]


def known() -> set[str]:
    """Every metric that raykd, its server or Ray has."""
    served = {f"{family.name}{suffix}" for family in Monitor().registry.collect() for suffix in SUFFIXES}
    # Those of GPUs and of faults are exported where there are any: Ray's own panels ask for them.
    panels = importlib.util.find_spec("ray.dashboard.modules.metrics.dashboards.default_dashboard_panels")
    assert panels is not None
    assert panels.origin is not None
    words = set(WORDS.findall(Path(panels.origin).read_text(encoding="utf-8")))
    return {
        *METRICS,
        *served,
        *words,
        *SEEN.read_text(encoding="utf-8").split(),
        "up",
        "ray_cluster_failed_nodes",
    }


@pytest.mark.parametrize(("place", "query"), queries(), ids=lambda value: value if " " not in value else "")
def test_what_is_asked_for_exists(place, query):
    names = set(WORDS.findall(re.sub(r'"[^"]*"', "", query)))
    assert names, query
    assert names <= known(), place


def test_a_metric_that_does_not_exist_is_found():
    assert not set(WORDS.findall("sum(raykd_tokens_total) + ray_node_cpu")) <= known()


@pytest.mark.parametrize("name", METRICS)
def test_each_metric_is_shown_and_described(name):
    assert any(name in query for _, query in queries())
    page = (DASHBOARDS / "README.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {', '.join(METRICS[name].labels)} | {METRICS[name].help} |" in page


@pytest.mark.parametrize("name", METRICS)
def test_names_follow_the_conventions_of_prometheus(name):
    metric = METRICS[name]
    assert re.fullmatch(r"raykd_[a-z][a-z0-9_]*", name)
    assert name.endswith("_total") == (metric.kind == "counter")
    assert not name.endswith(("_ms", "_minutes", "_percent", "_mib")), "base units"


def test_labels_in_queries_are_those_of_the_metrics():
    for place, query in queries():
        for name, labels in re.findall(r"\b(raykd_\w+)\{([^}]*)\}", query):
            if name in METRICS:
                used = set(re.findall(r"(\w+)\s*[!=]=?~?\s*\"", labels))
                assert used <= set(METRICS[name].labels), f"{place}: {query}"


def test_every_panel_is_explained_and_has_a_place_of_its_own():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    occupied: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert not cells & occupied, panel["title"]
        assert at["x"] + at["w"] <= 24
        occupied |= cells
    for panel in PANELS:
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"


def test_every_alert_says_what_to_do():
    page = (DASHBOARDS / "README.md").read_text(encoding="utf-8").partition("## When an alert fires")[2]
    for rule in rules():
        assert rule["alert"] in page
        assert {"summary", "description"} == rule["annotations"].keys()
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_kubernetes_reads_what_one_machine_does():
    (job,) = (
        job_config
        for job_config in yaml(DASHBOARDS / "prometheus.yml")["scrape_configs"]
        if job_config["job_name"] == "ray"
    )
    monitor = yaml(ROOT / "cluster/kuberay/monitoring/podmonitor.yaml")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    camel = {"source_labels": "sourceLabels", "target_label": "targetLabel"}
    ours = [
        {camel.get(key, key): value for key, value in relabelling.items()}
        for relabelling in job["metric_relabel_configs"]
    ]
    assert endpoint["metricRelabelings"] == ours
    assert {"targetLabel": "job", "replacement": "ray"} in endpoint["relabelings"], "alerts ask for it"
    policy = yaml(ROOT / "cluster/kuberay/monitoring/networkpolicy.yaml")
    assert policy["spec"]["podSelector"] == monitor["spec"]["selector"]


def test_the_objects_of_kubernetes_can_be_built():
    objects = built(ROOT / "cluster/kuberay/monitoring")
    assert {(manifest["kind"], manifest["metadata"]["namespace"]) for manifest in objects} == {
        ("PodMonitor", "raykd"),
        ("NetworkPolicy", "raykd"),
    }


@pytest.mark.parametrize(
    ("verb", "what", "file"),
    [
        ("check", "config", DASHBOARDS / "prometheus.yml"),
        ("check", "rules", DASHBOARDS / "alerts.yml"),
        ("test", "rules", Path(__file__).with_name("alerts_test.yml")),
    ],
)
def test_prometheus_accepts_it_and_alerts_fire_when_they_should(verb, what, file):
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here; apt-get install prometheus")
    process = subprocess.run(["promtool", verb, what, file], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
