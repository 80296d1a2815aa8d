"""Settings of finished sweeps against a baseline: means and spreads over seeds, and what the difference proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Literal

from raykd.errors import Fault, SpecError
from raykd.figures.front import GOLD, find_gold_twin
from raykd.figures.results import Score
from raykd.figures.table import DEV, SCORES, TARGET, TEST, Figure
from raykd.figures.trial import Trial
from raykd.metrics.significance import MOST_SEEDS, THRESHOLD, epsilon_min, seeds_needed
from raykd.spec.messages import did_you_mean, unknown_message

ComparedScore = Literal["test", "dev", "target"]
FIGURE: Mapping[ComparedScore, Figure] = MappingProxyType({"test": TEST, "dev": DEV, "target": TARGET})
"""The score that is compared; target: the test's mean over languages without labels."""
Grouping = Literal["setting", "objective"]
Verdict = Literal["better", "worse", "cannot tell", "too few seeds", "no baseline"]

FEWEST = 3
"""Seeds that a setting with one should have."""
HINT = f"set search.runs_per_setting: {FEWEST}"


@dataclass(frozen=True)
class Side:
    """One setting and its scores over its seeds, fractions."""

    trial: Trial
    compared_score: ComparedScore
    metric: str = ""
    """One that stands beside the task's score; empty: the score itself."""

    @property
    def figure(self) -> Figure:
        """The score that is compared."""
        return metrics_of(self.trial, self.compared_score)[self.metric]

    @property
    def score(self) -> Score | None:
        """Its means and what they are made of; None where the trial has none."""
        return self.trial.scores.get(*self.figure.score) if self.figure.score else None

    @property
    def name(self) -> str:
        """The score's name in CSV and MLflow: `test_f1`."""
        return self.figure.full_name(self.trial.score_name)

    @property
    def by_seed(self) -> tuple[float, ...]:
        """Each seed's score."""
        return () if self.score is None else self.score.by_seed

    @property
    def mean(self) -> float | None:
        """Over seeds."""
        return self.score and self.score.mean

    @property
    def sd(self) -> float | None:
        """The sample standard deviation (n − 1); None for one seed."""
        return self.score and self.score.sd

    @property
    def by_language(self) -> Mapping[str, float]:
        """Means over seeds, of source and target languages."""
        return self.trial.scores.by_language("dev" if self.compared_score == "dev" else "test", self.metric)


@dataclass(frozen=True)
class Comparison:
    """One setting beside its baseline. Bounds are `epsilon_min` at level `alpha` in either direction."""

    sweep: str
    setting: Side
    baseline: Side | None
    alpha: float = 0.05
    threshold: float = THRESHOLD

    @property
    def tested(self) -> bool:
        """Whether both sides have the two seeds that a spread needs."""
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
        """About how many seeds would decide, where those that there are do not; None: more than `MOST_SEEDS`."""
        if not self.tested or self._dominates:
            return None
        return seeds_needed(*self._samples, alpha=self.alpha, threshold=self.threshold)

    @property
    def how_many(self) -> str:
        """The seeds that are needed, in words."""
        return f"more than {MOST_SEEDS}" if self.needed is None else f"about {self.needed}"

    @property
    def verdict(self) -> Verdict:
        """What the scores prove."""
        if self.baseline is None:
            return "no baseline"
        if not self.tested:
            return "too few seeds"
        return self._dominates or "cannot tell"

    @property
    def sentence(self) -> str:
        """The verdict with its figures and, where nothing can be concluded, the hint."""
        seeds = " and ".join(str(n) for n in dict.fromkeys(map(len, self._samples)))
        return {
            "better": "better",
            "worse": "worse",
            "cannot tell": f"cannot tell with {seeds} seeds; {self.how_many} would be needed",
            "too few seeds": f"nothing can be concluded from fewer than two seeds; {HINT}",
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


def metrics_of(trial: Trial, which: ComparedScore = "test") -> dict[str, Figure]:
    """What trials of the task can be compared by: its own score, by the name "", and the metrics beside it of which
    more is better and which are shares.
    """
    own = FIGURE[which]
    beside = {
        figure.metric: figure
        for figure in SCORES
        if figure.score and own.score and figure.score[:2] == own.score[:2] and figure.beside == trial.score_name
        and (figure.direction, figure.form) == (own.direction, own.form)
    }  # fmt: skip
    return {"": own, **beside}


def compare(
    sweeps: Mapping[str, Sequence[Trial]],
    *,
    baseline: str = GOLD,
    score: ComparedScore = "test",
    metric: str = "",
    by: Grouping = "setting",
    alpha: float = 0.05,
    threshold: float = THRESHOLD,
    bonferroni: bool = True,
) -> list[Comparison]:
    """Every complete setting of the sweeps (name → trials), or each objective's best, beside its baseline; the best
    on dev first.

    `baseline`: `gold` is the same student, trained the same way on gold labels alone (`gold_twin`); an objective's
    kind, its best setting on dev; a number, that trial. Each is looked for in the setting's own sweep, or in sweep X
    as `X:kind` and `X:number`. With `bonferroni` each of k comparisons is made at α/k. `metric`: of those beside the
    task's score (`slot_f1`); empty or the score's name: the score itself.

    Raises:
        SpecError: there is no such baseline or metric, or no setting to compare.
    """
    pairs, side = [], partial(_side, compared_score=score, metric=metric)
    for name, trials in sweeps.items():
        done = [trial for trial in trials if trial.state == "COMPLETE" and side(trial).score is not None]
        chosen = best_of_each_objective(done) if by == "objective" else done
        if baseline == GOLD:
            pairs += [
                (name, trial, find_gold_twin(trial, done)) for trial in chosen if trial.objective != GOLD
            ]
        else:
            other = _named_baseline(baseline, name, sweeps)
            pairs += [(name, trial, other) for trial in chosen if trial is not other]
    if not pairs:
        raise _fault(baseline, f"there is no complete setting with a {score} score to compare with it")
    found = [
        Comparison(name, side(trial), twin and side(twin), alpha, threshold)
        for name, trial, twin in sorted(pairs, key=lambda pair: -_dev(pair[1]))
    ]
    tests = sum(comparison.tested for comparison in found) if bonferroni else 1
    return [replace(comparison, alpha=alpha / max(tests, 1)) for comparison in found]


def reasons_not_compared(sweeps: Mapping[str, Sequence[Trial]]) -> list[str]:
    """What is not compared, and why: a line for each trial that failed, was stopped or still runs."""
    words = {"FAILED": "failed", "PRUNED": "was stopped early", "RUNNING": "has not ended"}
    return [
        f"{name}: {trial.name} {words[trial.state]}" + (f" ({trial.message})" if trial.message else "")
        for name, trials in sweeps.items()
        for trial in trials
        if trial.state != "COMPLETE"
    ]


def best_of_each_objective(trials: Sequence[Trial]) -> list[Trial]:
    """Of each objective the setting with the highest dev score."""
    best: dict[str, Trial] = {}
    for trial in trials:
        if trial.objective not in best or _dev(trial) > _dev(best[trial.objective]):
            best[trial.objective] = trial
    return list(best.values())


def _side(trial: Trial, compared_score: ComparedScore, metric: str) -> Side:
    """Raises SpecError where trials of this task have no such metric."""
    known = metrics_of(trial, compared_score)
    asked = "" if metric == trial.score_name else metric
    if asked not in known:
        names = (trial.score_name, *filter(None, known))
        raise SpecError((Fault("--metric", None, metric, unknown_message(metric, names, noun="metric ")),))
    return Side(trial, compared_score, asked)


def _dev(trial: Trial) -> float:
    return DEV.read(trial) or 0.0


def _named_baseline(baseline: str, own: str, sweeps: Mapping[str, Sequence[Trial]]) -> Trial:
    """The trial that `baseline` names, for settings of the sweep `own`."""
    name, label = baseline.rsplit(":", 1) if ":" in baseline else (own, baseline)
    if name not in sweeps:
        raise _fault(baseline, f"no sweep {name!r} is compared; there are {', '.join(sweeps)}")
    done = [trial for trial in sweeps[name] if trial.state == "COMPLETE"]
    best = {trial.objective: trial for trial in best_of_each_objective(done)}
    known: dict[str, Trial] = {str(trial.number): trial for trial in done} | best
    # Trials are shown as #07.
    plain = label.lstrip("#").lstrip("0") or "0"
    found = known.get(label) or known.get(plain)
    if found is None:
        guess = did_you_mean(label, best)
        numbers = ", ".join(str(trial.number) for trial in done)
        raise _fault(baseline, f"not in {name}; {guess}there are {', '.join(best)}, and trials {numbers}")
    return found


def _fault(baseline: str, message: str) -> SpecError:
    return SpecError((Fault("--baseline", None, baseline, message),))
