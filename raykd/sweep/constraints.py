"""Constraints: what every student of a sweep has to meet to be on its front, and by how much a trial misses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from raykd.figures.conditions import OVER_GOLD, Condition, ConditionError, parse
from raykd.figures.table import DEV
from raykd.figures.trial import Trial

KNOWN_LATER = f"{OVER_GOLD} is known after the search, when the baseline is trained; ask --where for it"


@dataclass(frozen=True)
class Constraints:
    """The parsed `search.constraints`. `teacher`: the dev score that students are compared with."""

    conditions: tuple[Condition, ...] = ()
    teacher: float | None = None

    @staticmethod
    def of(sources: Iterable[str], score_name: str, teacher: float | None) -> Constraints:
        """The constraints of a sweep file that was checked."""
        return Constraints(tuple(parse(source, score_name) for source in sources), teacher)

    def judged(self, trial: Trial) -> Trial:
        """`trial` with by how much it misses each; what is not known before it is complete is left out until then."""
        decided = [
            condition
            for condition in self.conditions
            if trial.state == "COMPLETE" or condition.known_before_training(trial.score_name)
        ]
        margins = {each.source: each.margin(each.values(trial, teacher=self.teacher)) for each in decided}
        return replace(trial, violations=margins)


def constraint_fault(source: str, score_name: str, labelled: Sequence[str]) -> str | None:
    """What is wrong with one of `search.constraints`; None: nothing. `labelled`: languages with a dev score."""
    try:
        names = parse(source, score_name).names
    except ConditionError as error:
        return str(error)
    if OVER_GOLD in names:
        return KNOWN_LATER
    for name in sorted(names):
        score, bracket, language = name.partition("[")
        if bracket and language.rstrip("]") not in labelled:
            known = ", ".join(f"{score}[{each}]" for each in labelled)
            return f"{name} is not known: only languages with labels have a {DEV.full_name(score_name)} ({known})"
    return None
