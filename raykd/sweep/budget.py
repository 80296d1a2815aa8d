"""The budget: whether another trial fits into it, with what comes after the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import fmean

from raykd.figures.trial import Trial
from raykd.sweep.spec import BudgetConfig


class Budget:
    """What one driver may spend. A trial is taken to last as long as the sweep's trials did in the mean."""

    def __init__(
        self,
        config: BudgetConfig,
        *,
        gpus: float = 0.0,
        at_once: int = 1,
        ended: Iterable[int] = (),
        clock: Callable[[], float] = time.monotonic,
    ):
        """The clock starts now. `gpus` of one run; `at_once`: runs at a time; `ended`: trials of earlier drivers."""
        self._seconds, self._gpu_hours = config.seconds, config.gpu_hours
        self._gpus, self._at_once, self._before = gpus, at_once, frozenset(ended)
        self._clock, self._started, self._gpu_s = clock, clock(), 0.0

    def charge(self, seconds: float) -> None:
        """Count the seconds of a run that is no trial, such as a teacher's."""
        self._gpu_s += seconds * self._gpus

    def left(self, trials: Iterable[Trial]) -> tuple[float | None, float | None]:
        """Seconds and GPU-hours that are left, of which running trials have used nothing yet; None without a limit."""
        seconds = self._seconds and max(0.0, self._seconds - (self._clock() - self._started))
        hours = self._gpu_hours and max(0.0, self._gpu_hours - self._used_gpu_s(list(trials)) / 3600)
        return seconds, hours

    def spent(self, trials: Iterable[Trial], after: float = 0.0) -> str:
        """Which limit another trial would pass, in words; empty where it fits.

        `after`: how many trials' time the phases after the search take.
        """
        trials = list(trials)
        lasted = [trial for trial in trials if trial.wall_s is not None]
        mean = fmean(trial.wall_s or 0.0 for trial in lasted) if lasted else 0.0
        return self._time(mean, lasted, after) or self._gpu(mean, trials, after)

    def _time(self, mean: float, lasted: list[Trial], after: float) -> str:
        if self._seconds is None:
            return ""
        # The runs of one trial are placed each by itself.
        side_by_side = min(self._at_once, max((len(trial.run_ids) for trial in lasted), default=1) or 1)
        used = self._clock() - self._started
        needed = mean / side_by_side + after * mean / self._at_once
        if used + needed <= self._seconds:
            return ""
        return _words(used / 60, needed / 60, self._seconds / 60, "minutes")

    def _gpu(self, mean: float, trials: list[Trial], after: float) -> str:
        if self._gpu_hours is None:
            return ""
        running = sum(trial.state == "RUNNING" and trial.number not in self._before for trial in trials)
        used = self._used_gpu_s(trials) + self._gpus * running * mean
        needed = self._gpus * (1 + after) * mean
        if used + needed <= 3600 * self._gpu_hours:
            return ""
        return _words(used / 3600, needed / 3600, self._gpu_hours, "GPU-hours")

    def _used_gpu_s(self, trials: list[Trial]) -> float:
        """Of what has ended."""
        own = (trial.wall_s or 0.0 for trial in trials if trial.number not in self._before)
        return self._gpu_s + self._gpus * sum(own)


def _words(used: float, needed: float, limit: float, unit: str) -> str:
    more = f", and {needed:.3g} more would be needed" if needed else ""
    return f"the budget is spent ({used:.3g} of {limit:g} {unit}{more})"
