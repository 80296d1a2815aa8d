"""The load of this machine: the share of its processors that other programs use."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from raykd.figures.results import LOADED

SAMPLE_S = 0.2
"""Seconds over which the load before a measurement is counted."""
MAX_SAMPLES = 5
"""Samples that are waited for a quiet one: the workers of Ray, for example, start for a second."""
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


class LoadMeter:
    """Counts from its creation on what other programs use, without this process."""

    def __init__(self) -> None:
        self._busy_s, self._whole_s, self._process_s = _processor_seconds()

    def share(self) -> float:
        """The share of all processors, from 0 to 1, that other programs have used since."""
        busy_s, whole_s, own_s = _processor_seconds()
        others_s = (busy_s - self._busy_s) - (own_s - self._process_s)
        return min(1.0, max(0.0, others_s / max(whole_s - self._whole_s, 1e-9)))


def current_load(sleep: Callable[[float], None] = time.sleep) -> float:
    """Return the share that other programs use while this one waits: the first one that is quiet, else the last."""
    share = 0.0
    for _ in range(MAX_SAMPLES):
        meter = LoadMeter()
        sleep(SAMPLE_S)
        share = meter.share()
        if share <= LOADED:
            break
    return share


def _processor_seconds() -> tuple[float, float, float]:
    """Seconds of all processors that were busy, that have gone, and that this process had."""
    times = psutil.cpu_times()
    busy_s = sum(getattr(times, name, 0.0) for name in BUSY)
    return busy_s, busy_s + times.idle + getattr(times, "iowait", 0.0), time.process_time()
