"""Finished sweeps' settings against a baseline: means and spreads over seeds, and the test of the difference."""

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
from raykd.report.dev_scores import dev_score
from raykd.spec.messages import did_you_mean, unknown_message

ComparedScore = Literal["test", "dev", "target"]
FIGURE: Mapping[ComparedScore, Figure] = MappingProxyType({"test": TEST, "dev": DEV, "target": TARGET})
"""Option → figure to compare; `target` is the mean test score over languages without labels."""
Grouping = Literal["setting", "objective"]
Verdict = Literal["better", "worse", "cannot tell", "too few seeds", "no baseline"]

FEWEST = 3
"""Recommended number of seeds for a setting that has only one."""
HINT = f"set search.runs_per_setting: {FEWEST}"


@dataclass(frozen=True)
class Side:
    """A setting and its scores over seeds, as fractions."""

    trial: Trial
    compared_score: ComparedScore
    metric: str = ""
    """A metric beside the task's score; empty: the score itself."""

    @property
    def figure(self) -> Figure:
        """The compared score, as an entry of the table of figures."""
        return metrics_of(self.trial, self.compared_score)[self.metric]

    @property
    def score(self) -> Score | None:
        """The score with its values by seed and language; None if the trial has none."""
        return self.trial.scores.get(*self.figure.score) if self.figure.score else None

    @property
    def name(self) -> str:
        """The score's name in CSV and MLflow: `test_f1`."""
        return self.figure.full_name(self.trial.score_name)

    @property
    def by_seed(self) -> tuple[float, ...]:
        """Scores by seed."""
        return () if self.score is None else self.score.by_seed

    @property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return self.score and self.score.mean

    @property
    def sd(self) -> float | None:
        """Sample standard deviation (n − 1) over seeds; None for one seed."""
        return self.score and self.score.sd

    @property
    def by_language(self) -> Mapping[str, float]:
        """Means over seeds for source and target languages."""
        return self.trial.scores.by_language("dev" if self.compared_score == "dev" else "test", self.metric)


@dataclass(frozen=True)
class Comparison:
    """A setting beside its baseline, with the test of Almost Stochastic Dominance in both directions.

    Attributes:
        baseline: The baseline of this setting; None if there is none.
        alpha: Level of significance of this one comparison.
        threshold: A side is better if its bound (`epsilon_min`) is below this value.
    """

    sweep: str
    setting: Side
    baseline: Side | None
    alpha: float = 0.05
    threshold: float = THRESHOLD

    @property
    def tested(self) -> bool:
        """Both sides have at least two seeds, so that there is a spread."""
        return self.baseline is not None and min(map(len, self._samples)) > 1

    @property
    def difference(self) -> float | None:
        """Mean of the setting minus mean of the baseline; None if one of them is missing."""
        if self.baseline is None or self.setting.mean is None or self.baseline.mean is None:
            return None
        return self.setting.mean - self.baseline.mean

    @cached_property
    def epsilon(self) -> float | None:
        """Bound on the setting's failure to dominate its baseline: 0 is full dominance, 1 is none."""
        return epsilon_min(*self._samples, alpha=self.alpha) if self.tested else None

    @cached_property
    def epsilon_reverse(self) -> float | None:
        """Bound on the baseline's failure to dominate the setting."""
        return epsilon_min(*self._samples[::-1], alpha=self.alpha) if self.tested else None

    @cached_property
    def needed_seeds(self) -> int | None:
        """Approximate number of seeds on each side for a decision.

        None if the present seeds decide, if there is nothing to test, or if more than `MOST_SEEDS` would be needed.
        """
        if not self.tested or self._dominates:
            return None
        return seeds_needed(*self._samples, alpha=self.alpha, threshold=self.threshold)

    @property
    def needed_seeds_in_words(self) -> str:
        """The number of seeds for a decision, if the present ones do not decide."""
        return f"more than {MOST_SEEDS}" if self.needed_seeds is None else f"about {self.needed_seeds}"

    @property
    def verdict(self) -> Verdict:
        """The conclusion from the scores."""
        if self.baseline is None:
            return "no baseline"
        if not self.tested:
            return "too few seeds"
        return self._dominates or "cannot tell"

    @property
    def sentence(self) -> str:
        """The verdict with its figures and, if nothing can be concluded, a hint."""
        seeds = " and ".join(str(n) for n in dict.fromkeys(map(len, self._samples)))
        return {
            "better": "better",
            "worse": "worse",
            "cannot tell": f"cannot tell with {seeds} seeds; {self.needed_seeds_in_words} would be needed",
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


def metrics_of(trial: Trial, compared_score: ComparedScore = "test") -> dict[str, Figure]:
    """Return the scores by which trials of this task can be compared.

    Args:
        trial: A trial of the task.
        compared_score: Part and languages of the score.

    Returns:
        The task's score under the name "", then the metrics beside it for which more is better and which are shares.
    """
    task_figure = FIGURE[compared_score]
    beside = {
        figure.metric: figure
        for figure in SCORES
        if figure.score and task_figure.score and figure.score[:2] == task_figure.score[:2]
        and figure.metric and figure.belongs_to(trial.score_name)
        and (figure.direction, figure.form) == (task_figure.direction, task_figure.form)
    }  # fmt: skip
    return {"": task_figure, **beside}


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
    """Compare all complete settings of the sweeps, or the best of each objective, with a baseline.

    Args:
        sweeps: Name of each sweep → its trials.
        baseline: `gold` for the same student trained in the same way on gold labels alone (`find_gold_twin`); the kind
            of an objective, for its best setting on dev; or the number of a trial. The setting's own sweep is searched;
            `X:kind` and `X:number` name one of sweep X.
        score: Part and languages of the compared score.
        metric: A metric beside the task's score (`slot_f1`); empty or the score's name: the score itself.
        by: `setting` for all settings, `objective` for the best setting of each objective on dev.
        alpha: Level of significance.
        threshold: Bound below which a setting is said to be better.
        bonferroni: Test each of k comparisons at α/k.

    Returns:
        The comparisons, the setting with the best dev score first.

    Raises:
        SpecError: There is no such baseline or metric, or no setting to compare.
    """
    pairs, side = [], partial(_side, compared_score=score, metric=metric)
    for name, trials in sweeps.items():
        complete = [trial for trial in trials if trial.state == "COMPLETE" and side(trial).score is not None]
        chosen = best_of_each_objective(complete) if by == "objective" else complete
        if baseline == GOLD:
            pairs += [
                (name, trial, find_gold_twin(trial, complete)) for trial in chosen if trial.objective != GOLD
            ]
        else:
            named_trial = _named_baseline(baseline, name, sweeps)
            pairs += [(name, trial, named_trial) for trial in chosen if trial is not named_trial]
    if not pairs:
        raise _fault(baseline, f"there is no complete setting with a {score} score to compare with it")
    comparisons = [
        Comparison(name, side(trial), baseline_trial and side(baseline_trial), alpha, threshold)
        for name, trial, baseline_trial in sorted(pairs, key=lambda pair: -dev_score(pair[1]))
    ]
    tests = sum(comparison.tested for comparison in comparisons) if bonferroni else 1
    return [replace(comparison, alpha=alpha / max(tests, 1)) for comparison in comparisons]


def reasons_not_compared(sweeps: Mapping[str, Sequence[Trial]]) -> list[str]:
    """Return a line for each trial that failed, was stopped or still runs.

    Args:
        sweeps: Name of each sweep → its trials.
    """
    words = {"FAILED": "failed", "PRUNED": "was stopped early", "RUNNING": "has not ended"}
    return [
        f"{name}: {trial.name} {words[trial.state]}" + (f" ({trial.message})" if trial.message else "")
        for name, trials in sweeps.items()
        for trial in trials
        if trial.state != "COMPLETE"
    ]


def best_of_each_objective(trials: Sequence[Trial]) -> list[Trial]:
    """Return the setting with the highest dev score for each objective."""
    best: dict[str, Trial] = {}
    for trial in trials:
        if trial.objective not in best or dev_score(trial) > dev_score(best[trial.objective]):
            best[trial.objective] = trial
    return list(best.values())


def _side(trial: Trial, compared_score: ComparedScore, metric: str) -> Side:
    """The trial's score of this metric; SpecError if its task has no such metric."""
    figures = metrics_of(trial, compared_score)
    name = "" if metric == trial.score_name else metric
    if name not in figures:
        names = (trial.score_name, *filter(None, figures))
        raise SpecError((Fault("--metric", None, metric, unknown_message(metric, names, noun="metric ")),))
    return Side(trial, compared_score, name)


def _named_baseline(baseline: str, default_sweep: str, sweeps: Mapping[str, Sequence[Trial]]) -> Trial:
    """The trial named by `baseline`, for settings of the sweep `default_sweep`."""
    name, label = baseline.rsplit(":", 1) if ":" in baseline else (default_sweep, baseline)
    if name not in sweeps:
        raise _fault(baseline, f"no sweep {name!r} is compared; there are {', '.join(sweeps)}")
    complete = [trial for trial in sweeps[name] if trial.state == "COMPLETE"]
    best = {trial.objective: trial for trial in best_of_each_objective(complete)}
    by_label: dict[str, Trial] = {str(trial.number): trial for trial in complete} | best
    # Tables show a trial's number as #07.
    number = label.lstrip("#").lstrip("0") or "0"
    trial = by_label.get(label) or by_label.get(number)
    if trial is None:
        guess = did_you_mean(label, best)
        numbers = ", ".join(str(trial.number) for trial in complete)
        raise _fault(baseline, f"not in {name}; {guess}there are {', '.join(best)}, and trials {numbers}")
    return trial


def _fault(baseline: str, message: str) -> SpecError:
    return SpecError((Fault("--baseline", None, baseline, message),))
