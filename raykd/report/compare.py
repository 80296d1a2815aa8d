"""Settings of finished sweeps against a baseline: means and spreads over seeds, and whether the difference stands."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import stdev
from typing import Literal

from raykd.errors import Fault, SpecError
from raykd.metrics import epsilon_min, seeds_needed
from raykd.metrics.significance import MOST_SEEDS, THRESHOLD
from raykd.trial import Trial

Score = Literal["test_f1", "dev_f1", "test_f1_target"]
Grouping = Literal["setting", "objective"]
Verdict = Literal["better", "worse", "cannot tell", "too few seeds", "no baseline"]

GOLD = "gold"
FEWEST = 3
"""Seeds that a setting with one should have."""
HINT = f"search.runs_per_setting: {FEWEST}"


@dataclass(frozen=True)
class Scores:
    """One setting's scores over its seeds, fractions."""

    trial: Trial
    score: Score

    @property
    def by_seed(self) -> tuple[float, ...]:
        """Each seed's score; empty where only the mean was kept."""
        return getattr(self.trial, f"{self.score}_by_seed")

    @property
    def mean(self) -> float | None:
        """Over seeds."""
        return getattr(self.trial, self.score)

    @property
    def sd(self) -> float | None:
        """The sample standard deviation (n − 1); None for one seed."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None

    @property
    def by_language(self) -> Mapping[str, float]:
        """Means over seeds."""
        return getattr(self.trial, f"{'dev' if self.score == 'dev_f1' else 'test'}_f1_by_language")


@dataclass(frozen=True)
class Comparison:
    """One setting beside its baseline. Bounds are `epsilon_min` at level `alpha` in either direction."""

    sweep: str
    setting: Scores
    baseline: Scores | None
    alpha: float = 0.05
    threshold: float = THRESHOLD

    @property
    def tested(self) -> bool:
        """Whether both sides have the two seeds that a spread takes."""
        return self.baseline is not None and min(map(len, self._samples)) > 1

    @property
    def difference(self) -> float | None:
        """Of the means."""
        if self.baseline is None or self.setting.mean is None or self.baseline.mean is None:
            return None
        return self.setting.mean - self.baseline.mean

    @cached_property
    def epsilon(self) -> float | None:
        """Bound on how much the setting fails to dominate its baseline: 0 it dominates, 1 it does not at all."""
        return epsilon_min(*self._samples, alpha=self.alpha) if self.tested else None

    @cached_property
    def epsilon_reverse(self) -> float | None:
        """Bound on how much the baseline fails to dominate the setting."""
        return epsilon_min(*self._samples[::-1], alpha=self.alpha) if self.tested else None

    @cached_property
    def needed(self) -> int | None:
        """About how many seeds would tell, where those there are do not; None: more than would be worth it."""
        if not self.tested or self._dominates:
            return None
        return seeds_needed(*self._samples, alpha=self.alpha, threshold=self.threshold)

    @property
    def how_many(self) -> str:
        """The seeds that are needed, in words."""
        return f"more than {MOST_SEEDS}" if self.needed is None else f"about {self.needed}"

    @property
    def verdict(self) -> Verdict:
        """What may be said."""
        if self.baseline is None:
            return "no baseline"
        if not self.tested:
            return "too few seeds"
        return self._dominates or "cannot tell"

    @property
    def sentence(self) -> str:
        """The verdict with its figures and, where nothing can be said, the hint."""
        seeds = " and ".join(str(n) for n in dict.fromkeys(map(len, self._samples)))
        return {
            "better": "better",
            "worse": "worse",
            "cannot tell": f"cannot tell with {seeds} seeds; {self.how_many} would be needed",
            "too few seeds": f"nothing can be said of fewer than two seeds; {HINT}",
            "no baseline": "no baseline of this student and training",
        }[self.verdict]

    @property
    def _samples(self) -> list[tuple[float, ...]]:
        return [side.by_seed for side in (self.setting, self.baseline) if side is not None]

    @property
    def _dominates(self) -> Literal["better", "worse"] | None:
        if self.epsilon is not None and self.epsilon < self.threshold:
            return "better"
        if self.epsilon_reverse is not None and self.epsilon_reverse < self.threshold:
            return "worse"
        return None


def compare(
    sweeps: Mapping[str, Sequence[Trial]],
    *,
    baseline: str = GOLD,
    score: Score = "test_f1",
    by: Grouping = "setting",
    alpha: float = 0.05,
    threshold: float = THRESHOLD,
    bonferroni: bool = True,
) -> list[Comparison]:
    """Every complete setting of the sweeps (name → trials), or each objective's best, beside its baseline; the best
    by dev first.

    `baseline`: `gold` is the same student, trained the same way on gold labels alone; an objective's kind, its best
    setting by dev; a number, that trial. Each is looked for in the setting's own sweep, or in sweep X as `X:kind` and
    `X:number`. With `bonferroni` each of k comparisons is made at α/k.

    Raises:
        SpecError: there is no such baseline, or no setting to compare.
    """
    pairs = []
    for name, trials in sweeps.items():
        done = [trial for trial in trials if trial.state == "COMPLETE" and getattr(trial, score) is not None]
        chosen = best_of_each(done) if by == "objective" else done
        if baseline == GOLD:
            pairs += [(name, trial, gold_twin(trial, done)) for trial in chosen if trial.objective != GOLD]
        else:
            other = _named(baseline, name, sweeps)
            pairs += [(name, trial, other) for trial in chosen if trial is not other]
    if not pairs:
        raise _fault(baseline, f"there is no complete setting with a {score} to compare with it")
    found = [
        Comparison(name, Scores(trial, score), twin and Scores(twin, score), alpha, threshold)
        for name, trial, twin in sorted(pairs, key=lambda pair: -(pair[1].dev_f1 or 0))
    ]
    tests = sum(comparison.tested for comparison in found) if bonferroni else 1
    return [replace(comparison, alpha=alpha / max(tests, 1)) for comparison in found]


def left_out(sweeps: Mapping[str, Sequence[Trial]]) -> list[str]:
    """What is not compared, and why: a line for each trial that failed, was stopped or still runs."""
    words = {"FAILED": "failed", "PRUNED": "was stopped early", "RUNNING": "has not ended"}
    return [
        f"{name}: {trial.name} {words[trial.state]}" + (f" ({trial.message})" if trial.message else "")
        for name, trials in sweeps.items()
        for trial in trials
        if trial.state != "COMPLETE"
    ]


def best_of_each(trials: Sequence[Trial]) -> list[Trial]:
    """Of each objective the setting with the highest dev F1."""
    best: dict[str, Trial] = {}
    for trial in trials:
        if trial.objective not in best or (trial.dev_f1 or 0) > (best[trial.objective].dev_f1 or 0):
            best[trial.objective] = trial
    return list(best.values())


def gold_twin(trial: Trial, trials: Sequence[Trial]) -> Trial | None:
    """The complete trial of the same student and training that learnt from gold labels alone; None if there is
    none.
    """
    own = _without_teacher(trial)
    return next(
        (
            other
            for other in trials
            if other.state == "COMPLETE" and other.objective == GOLD and _without_teacher(other) == own
        ),
        None,
    )


def _without_teacher(trial: Trial) -> dict[str, object]:
    # How λ is annealed does not matter on gold labels alone: one run serves every rate.
    return {
        path: value
        for path, value in trial.settings.items()
        if path.startswith(("student.", "training.")) or path == "schedule.epochs"
    }


def _named(baseline: str, own: str, sweeps: Mapping[str, Sequence[Trial]]) -> Trial:
    """The trial that `baseline` names, for settings of the sweep `own`."""
    name, label = baseline.rsplit(":", 1) if ":" in baseline else (own, baseline)
    if name not in sweeps:
        raise _fault(baseline, f"no sweep {name!r} is compared; there are {', '.join(sweeps)}")
    done = [trial for trial in sweeps[name] if trial.state == "COMPLETE"]
    best = {trial.objective: trial for trial in best_of_each(done)}
    known: dict[str, Trial] = {str(trial.number): trial for trial in done} | best
    # Trials are shown as #07.
    plain = label.lstrip("#").lstrip("0") or "0"
    found = known.get(label) or known.get(plain)
    if found is None:
        near = difflib.get_close_matches(label, best, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        numbers = ", ".join(str(trial.number) for trial in done)
        raise _fault(baseline, f"not in {name}; {guess}there are {', '.join(best)}, and trials {numbers}")
    return found


def _fault(baseline: str, message: str) -> SpecError:
    return SpecError((Fault("--baseline", None, baseline, message),))
