"""The load of the machine: the share of its processors used by other programs."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from raykd.figures.results import LOADED

SAMPLE_S = 0.2
"""Seconds of one sample of the load before a measurement."""
MAX_SAMPLES = 5
"""Most samples before a measurement begins: some load, such as Ray's starting workers, is over in a second."""
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


class LoadMeter:
    """A meter of the load by other programs, from its creation on."""

    def __init__(self) -> None:
        self._busy_s, self._whole_s, self._process_s = _processor_seconds()

    def share(self) -> float:
        """Return the share of all processors, from 0 to 1, used by other programs since the meter was created."""
        busy_s, whole_s, process_s = _processor_seconds()
        other_programs_s = (busy_s - self._busy_s) - (process_s - self._process_s)
        return min(1.0, max(0.0, other_programs_s / max(whole_s - self._whole_s, 1e-9)))


def current_load(sleep: Callable[[float], None] = time.sleep) -> float:
    """Return the share of the processors used by programs other than raykd, which sleeps meanwhile.

    Args:
        sleep: sleeps for some seconds.

    Returns:
        The first quiet sample, or the last one if none is quiet.
    """
    share = 0.0
    for _ in range(MAX_SAMPLES):
        meter = LoadMeter()
        sleep(SAMPLE_S)
        share = meter.share()
        if share <= LOADED:
            break
    return share


def _processor_seconds() -> tuple[float, float, float]:
    """Busy seconds of all processors, their seconds in all, and the seconds used by this process."""
    times = psutil.cpu_times()
    busy_s = sum(getattr(times, name, 0.0) for name in BUSY)
    return busy_s, busy_s + times.idle + getattr(times, "iowait", 0.0), time.process_time()
