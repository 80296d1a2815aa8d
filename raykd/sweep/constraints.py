"""Constraints on the students of a front, and the margins by which trials miss them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from raykd.figures.conditions import OVER_GOLD, Condition, ConditionError, parse
from raykd.figures.table import DEV
from raykd.figures.trial import Trial

KNOWN_LATER = f"{OVER_GOLD} is known after the search, when the baseline is trained; ask --where for it"


@dataclass(frozen=True)
class Constraints:
    """The parsed `search.constraints`.

    Attributes:
        conditions: One condition per constraint.
        teacher: The dev score that students are compared with, 0 to 1.
    """

    conditions: tuple[Condition, ...] = ()
    teacher: float | None = None

    @staticmethod
    def from_sources(sources: Iterable[str], score_name: str, teacher: float | None) -> Constraints:
        """Return the constraints of a checked sweep file.

        Args:
            sources: The constraints as written.
            score_name: Name of the task's score.
            teacher: The dev score that students are compared with, 0 to 1.
        """
        return Constraints(tuple(parse(source, score_name) for source in sources), teacher)

    def with_violations(self, trial: Trial) -> Trial:
        """Return `trial` with its margins to the constraints.

        Before a trial is complete, only constraints on figures known before training are checked.
        """
        decidable = [
            condition
            for condition in self.conditions
            if trial.state == "COMPLETE" or condition.known_before_training(trial.score_name)
        ]
        margins = {
            condition.source: condition.margin(condition.values(trial, teacher=self.teacher))
            for condition in decidable
        }
        return replace(trial, violations=margins)


def constraint_fault(source: str, score_name: str, labelled: Sequence[str]) -> str | None:
    """Return the fault in one of `search.constraints`; None if there is none.

    Args:
        source: The constraint as written.
        score_name: Name of the task's score.
        labelled: Languages with a dev score.
    """
    try:
        names = parse(source, score_name).names
    except ConditionError as error:
        return str(error)
    if OVER_GOLD in names:
        return KNOWN_LATER
    for name in sorted(names):
        score, bracket, language = name.partition("[")
        if bracket and language.rstrip("]") not in labelled:
            known_names = ", ".join(f"{score}[{language}]" for language in labelled)
            return f"{name} is not known: only languages with labels have a {DEV.full_name(score_name)} ({known_names})"
    return None
