"""The status of a sweep as metrics for Prometheus."""

from __future__ import annotations

from typing import get_args

from raykd.cluster.prometheus import count, gauge
from raykd.figures.trial import Role, State
from raykd.sweep.status import Status


class SweepMetrics:
    """Watcher; sets the metrics of one sweep."""

    def __init__(self, sweep: str):
        self._sweep, self._before = sweep, Status()

    def __call__(self, status: Status) -> None:
        """Set the gauges, and add the growth to the counters."""
        for role in get_args(Role):
            for state in get_args(State):
                gauge(
                    "raykd_trials",
                    status.count(role, state),
                    sweep=self._sweep,
                    role=role,
                    state=state.lower(),
                )
        for phase in status.phases:
            labels = {"sweep": self._sweep, "phase": phase.name}
            gauge("raykd_phase_units", phase.total, **labels)
            gauge("raykd_phase_units_done", phase.done, **labels)
            gauge("raykd_phase_active", float(not phase.ended), **labels)
        best = status.front[0].dev if status.front else None
        for name, value in {
            "raykd_running_jobs": len(status.running),
            "raykd_front_students": len(status.front),
            "raykd_hypervolume_ratio": status.hypervolume,
            "raykd_best_dev_score_ratio": best,
            "raykd_training_tokens_per_second": status.tokens_per_second,
            "raykd_elapsed_seconds": status.seconds,
            "raykd_budget_left_seconds": status.budget_s,
            "raykd_budget_left_gpu_hours": status.budget_gpu_hours,
            "raykd_tracking_waiting_values": status.untracked,
        }.items():
            if value is not None:
                gauge(name, value, sweep=self._sweep)
        before, self._before = self._before, status
        count("raykd_epochs_total", status.epochs - before.epochs, sweep=self._sweep)
        count("raykd_trained_tokens_total", status.tokens - before.tokens, sweep=self._sweep)
        count("raykd_read_sentences_total", status.sentences - before.sentences, sweep=self._sweep)
