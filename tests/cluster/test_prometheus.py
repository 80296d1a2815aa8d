"""Metrics for Prometheus, as Ray's agent serves them over HTTP: those of the driver and those of an actor."""

from __future__ import annotations

from urllib.request import urlopen

import pytest
import ray
from prometheus_client.parser import text_string_to_metric_families

from raykd.cluster import prometheus
from raykd.cluster.prometheus import METRICS, count, gauge
from raykd.sweep.prometheus_metrics import SweepMetrics
from raykd.sweep.status import PhaseStatus, Status
from tests.patience import until


def scraped() -> dict[str, tuple[str, str, list]]:
    """Name → (kind, help, samples) of raykd's own, as the agent of the first node has them now."""
    node = ray.nodes()[0]
    address = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    with urlopen(address) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {
            f.name: (f.type, f.documentation, f.samples) for f in families if f.name.startswith("ray_raykd_")
        }


def test_what_is_exposed_is_served_by_the_agent(ray_cluster):
    metrics = SweepMetrics("wikiann")
    metrics(Status(tokens=100, phases=(PhaseStatus("trials", 40, 2, 0, 1.0),)))
    metrics(
        Status(
            tokens=350, epochs=3, sentences=7, seconds=2.5, hypervolume=0.25, budget_s=60.0, budget_gpu_hours=0.5,
            trials={"search": {"PRUNED": 2}}, phases=(PhaseStatus("trials", 40, 12, 0, 1.0),),
        )
    )  # fmt: skip

    class Counting:
        def count(self):
            prometheus.count("raykd_store_retries_total")

    # A process that ends may take its counts with it, so this one waits for the agent.
    counter = ray.remote(num_cpus=0.1)(Counting).remote()
    ray.get(counter.count.remote())
    expected = {
        ("raykd_trained_tokens_total", "wikiann"): 350.0,
        ("raykd_epochs_total", "wikiann"): 3.0,
        ("raykd_read_sentences_total", "wikiann"): 7.0,
        ("raykd_elapsed_seconds", "wikiann"): 2.5,
        ("raykd_hypervolume_ratio", "wikiann"): 0.25,
        ("raykd_budget_left_seconds", "wikiann"): 60.0,
        ("raykd_budget_left_gpu_hours", "wikiann"): 0.5,
        ("raykd_trials", "wikiann", "search", "pruned"): 2.0,
        ("raykd_trials", "wikiann", "search", "complete"): 0.0,
        ("raykd_phase_units_done", "wikiann", "trials"): 12.0,
        ("raykd_phase_units", "wikiann", "trials"): 40.0,
        ("raykd_phase_active", "wikiann", "trials"): 1.0,
        ("raykd_store_retries_total",): 1.0,
    }
    families: dict[str, tuple[str, str, list]] = {}
    values: dict[tuple[str, ...], list[float]] = {}

    def served() -> bool:
        families.clear(), families.update(scraped())
        values.clear()
        for sample in (sample for _, _, samples in families.values() for sample in samples):
            labels = [
                sample.labels[key] for key in ("sweep", "role", "state", "phase") if key in sample.labels
            ]
            values.setdefault((sample.name.removeprefix("ray_"), *labels), []).append(sample.value)
        return all(value in values.get(key, ()) for key, value in expected.items())

    # Every process reports to the agent every few seconds, also those that other tests left on this cluster.
    until(served, output=lambda: str(values))
    # There is no front yet.
    assert ("raykd_best_dev_score_ratio", "wikiann") not in values
    for name, (kind, words, _) in families.items():
        metric = METRICS.get(name.removeprefix("ray_")) or METRICS[f"{name.removeprefix('ray_')}_total"]
        assert (kind, words) == (metric.kind, metric.help)
        assert "ray_" not in name.removeprefix("ray_raykd_")


def test_without_ray_nothing_is_counted_and_nothing_breaks(monkeypatch):
    monkeypatch.setattr(prometheus.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(prometheus, "_made", lambda name: pytest.fail("nothing is to be made"))
    gauge("raykd_elapsed_seconds", 1.0, sweep="a")
    count("raykd_epochs_total", 2, sweep="a")
    SweepMetrics("a")(Status(tokens=3))
