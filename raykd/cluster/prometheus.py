"""The metrics added by raykd to Ray's for Prometheus, through the metrics agent of each node.

The agent puts `ray_` before all names; `dashboards/prometheus.yml` takes it away again. Without Ray nothing is
counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

import ray
from ray.util import metrics


@dataclass(frozen=True)
class Metric:
    """One metric; a counter only grows."""

    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = ("sweep",)


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "raykd_trials": Metric("gauge", "Trials, of earlier drivers too.", ("sweep", "role", "state")),
        "raykd_running_jobs": Metric("gauge", "Trials or teachers that run now."),
        "raykd_phase_units": Metric("gauge", "Units that a phase has in all.", ("sweep", "phase")),
        "raykd_phase_units_done": Metric("gauge", "Units of a phase that are done.", ("sweep", "phase")),
        "raykd_phase_active": Metric("gauge", "1 while the phase runs, 0 after its end.", ("sweep", "phase")),
        "raykd_front_students": Metric("gauge", "Students on the front."),
        "raykd_hypervolume_ratio": Metric(
            "gauge", "Share of the teacher's box that the front dominates, 0 to 1."
        ),
        "raykd_best_dev_score_ratio": Metric("gauge", "The best score on dev of the front, 0 to 1."),
        "raykd_epochs_total": Metric("counter", "Epochs that ended, of all runs."),
        "raykd_trained_tokens_total": Metric("counter", "Tokens trained on, counted when an epoch ends."),
        "raykd_training_tokens_per_second": Metric(
            "gauge", "Of all runs that train now, by their last epochs; evaluation is not counted."
        ),
        "raykd_read_sentences_total": Metric("counter", "Sentences read by teachers and frozen encoders."),
        "raykd_elapsed_seconds": Metric("gauge", "Since the driver began."),
        "raykd_budget_left_seconds": Metric("gauge", "Of budget.minutes, where it is set."),
        "raykd_budget_left_gpu_hours": Metric("gauge", "Of budget.gpu_hours, where it is set."),
        "raykd_tracking_waiting_values": Metric("gauge", "Values that the tracking server does not have yet."),
        "raykd_store_retries_total": Metric(
            "counter", "Runs begun again because the store was out of reach or full.", ()
        ),
    }
)  # fmt: skip
"""Name → what it is. By the names of `dashboards/`."""


def gauge(name: str, value: float, **labels: str) -> None:
    """Set a gauge of `METRICS`; without Ray, do nothing.

    Args:
        name: Name of the gauge.
        value: The new value.
        labels: Label to value.
    """
    if ray.is_initialized():
        metric = _made(name)
        assert isinstance(metric, metrics.Gauge)
        metric.set(value, labels)


def count(name: str, more: float = 1.0, **labels: str) -> None:
    """Add to a counter of `METRICS`; without Ray, do nothing.

    Args:
        name: Name of the counter.
        more: Increase; nothing happens at 0 or below.
        labels: Label to value.
    """
    if more > 0 and ray.is_initialized():
        metric = _made(name)
        assert isinstance(metric, metrics.Counter)
        metric.inc(more, labels)


@cache
def _made(name: str) -> metrics.Metric:
    metric = METRICS[name]
    make = metrics.Counter if metric.kind == "counter" else metrics.Gauge
    return make(name, description=metric.help, tag_keys=metric.labels)
