"""The budget: whether another trial fits, together with the phases after the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import fmean

from raykd.figures.trial import Trial
from raykd.sweep.spec import BudgetConfig


class Budget:
    """The budget of one driver. A trial is assumed to last as long as the sweep's trials did on average."""

    def __init__(
        self,
        config: BudgetConfig,
        *,
        gpus: float = 0.0,
        at_once: int = 1,
        ended: Iterable[int] = (),
        clock: Callable[[], float] = time.monotonic,
    ):
        """Start the clock.

        Args:
            config: The limits.
            gpus: GPUs of one run.
            at_once: Runs at the same time.
            ended: Numbers of trials that earlier drivers ended; their time does not count.
            clock: Returns seconds.
        """
        self._seconds, self._gpu_hours = config.seconds, config.gpu_hours
        self._gpus, self._at_once, self._earlier_trials = gpus, at_once, frozenset(ended)
        self._clock, self._started, self._gpu_s = clock, clock(), 0.0

    def charge(self, seconds: float) -> None:
        """Count the seconds of a run outside of trials, such as a teacher's."""
        self._gpu_s += seconds * self._gpus

    def remaining(self, trials: Iterable[Trial]) -> tuple[float | None, float | None]:
        """Return the remaining seconds and GPU-hours, None without a limit; running trials count only when they end."""
        seconds = self._seconds and max(0.0, self._seconds - (self._clock() - self._started))
        hours = self._gpu_hours and max(0.0, self._gpu_hours - self._used_gpu_s(list(trials)) / 3600)
        return seconds, hours

    def reason_to_stop(self, trials: Iterable[Trial], after: float = 0.0) -> str:
        """Return the limit too small for a further trial, in words; empty if the trial fits.

        Args:
            trials: All trials of the sweep.
            after: Time of the phases after the search, in trials.
        """
        trials = list(trials)
        timed = [trial for trial in trials if trial.wall_s is not None]
        mean = fmean(trial.wall_s or 0.0 for trial in timed) if timed else 0.0
        return self._time_reason(mean, timed, after) or self._gpu_reason(mean, trials, after)

    def _time_reason(self, mean: float, timed: list[Trial], after: float) -> str:
        if self._seconds is None:
            return ""
        # The runs of one trial may run at the same time, as each is placed by itself.
        side_by_side = min(self._at_once, max((len(trial.run_ids) for trial in timed), default=1) or 1)
        used = self._clock() - self._started
        needed = mean / side_by_side + after * mean / self._at_once
        if used + needed <= self._seconds:
            return ""
        return _exceeded(used / 60, needed / 60, self._seconds / 60, "minutes")

    def _gpu_reason(self, mean: float, trials: list[Trial], after: float) -> str:
        if self._gpu_hours is None:
            return ""
        running = sum(
            trial.state == "RUNNING" and trial.number not in self._earlier_trials for trial in trials
        )
        used = self._used_gpu_s(trials) + self._gpus * running * mean
        needed = self._gpus * (1 + after) * mean
        if used + needed <= 3600 * self._gpu_hours:
            return ""
        return _exceeded(used / 3600, needed / 3600, self._gpu_hours, "GPU-hours")

    def _used_gpu_s(self, trials: list[Trial]) -> float:
        seconds = (trial.wall_s or 0.0 for trial in trials if trial.number not in self._earlier_trials)
        return self._gpu_s + self._gpus * sum(seconds)


def _exceeded(used: float, needed: float, limit: float, unit: str) -> str:
    more = f", and {needed:.3g} more would be needed" if needed else ""
    return f"the budget is spent ({used:.3g} of {limit:g} {unit}{more})"
