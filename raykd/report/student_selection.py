"""`--where` and `--best`: which students of a front are chosen, by conditions on their figures."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass

from raykd.errors import Fault, SpecError
from raykd.figures.conditions import TEACHER, Condition, ConditionError, Values, evaluate_expression
from raykd.figures.conditions import parse as parse_condition
from raykd.figures.table import DEV, selectable_figures, selection_fault
from raykd.figures.trial import Trial
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import significant_digits, tell_apart


@dataclass(frozen=True)
class Where:
    """A condition on the rows of a front; `parse` makes it."""

    condition: Condition

    def accepts(self, row: FrontRow, teacher: float | None) -> bool:
        """Whether the row's student meets the condition. One that lacks a figure named in it does not.

        `teacher` is the teacher's dev score. Raises SpecError where it is named and there is none, and on a division
        by zero.
        """
        try:
            return self.condition.holds(self._values(row, teacher))
        except ConditionError as error:
            raise _fault(self.condition.source, str(error)) from None

    def closest(self, rows: Iterable[FrontRow], teacher: float | None) -> tuple[FrontRow, str] | None:
        """The row that misses a condition by the least, and what it has where the condition asks for what; None where
        the condition is not one comparison of numbers, or several joined by `and`.

        Misses are compared as shares of what is asked for, the largest of each student's.
        """
        misses = []
        for row in rows:
            values = self._values(row, teacher)
            if None in values.values():
                continue
            worst = max((_miss(part, values) for part in self.condition.parts), key=lambda miss: miss[0])
            misses.append((worst[0], row, worst[1]))
        if not misses or not math.isfinite(min(misses, key=lambda miss: miss[0])[0]):
            return None
        _, row, words = min(misses, key=lambda miss: miss[0])
        return row, words

    def _values(self, row: FrontRow, teacher: float | None) -> Values:
        if teacher is None and TEACHER in self.condition.names:
            raise _fault(self.condition.source, "this sweep has no teacher with a dev score to compare with")
        return self.condition.values(row.trial, teacher=teacher, over_gold=row.gain("dev"))


def _miss(part: ast.expr, values: Values) -> tuple[float, str]:
    """By how much a comparison of two sides is missed, and its two sides in words."""
    if not isinstance(part, ast.Compare) or len(part.ops) > 1 or isinstance(part.ops[0], ast.NotEq):
        return math.inf, ""
    if evaluate_expression(part, values):
        return 0.0, ""
    left, right = evaluate_expression(part.left, values), evaluate_expression(part.comparators[0], values)
    if isinstance(left, str) or isinstance(right, str):
        return math.inf, ""
    is_, wanted = tell_apart(left, right, significant_digits)
    words = f"{ast.unparse(part.left)} is {is_}, and {ast.unparse(part.comparators[0])} is {wanted}"
    return abs(left - right) / (abs(right) or 1.0), words


def parse_where(source: str, score_name: str) -> Where:
    """The condition that `source` states, for a sweep whose task has that score.

    Raises SpecError with one fault, which names the word.
    """
    try:
        return Where(parse_condition(source, score_name))
    except ConditionError as error:
        raise _fault(source, str(error)) from None


def best_first(trials: Iterable[Trial], name: str, score_name: str) -> list[Trial]:
    """`trials` in the order of the figure `name`, the best first; costs that are timed on the grid of the sweep.

    Trials without that figure are left out. Raises SpecError for a name that cannot select.
    """
    known = selectable_figures(score_name)
    if fault := selection_fault(name, tuple(known), score_name):
        raise SpecError((Fault("--best", None, name, fault),))
    figure = known[name]
    sign = 1 if figure.direction == "min" else -1
    able = [(value, trial) for trial in trials if (value := figure.compared_value(trial)) is not None]
    # Of trials with the same figure the one with the better score comes first.
    ordered = sorted(able, key=lambda pair: (sign * pair[0], -(DEV.read(pair[1]) or 0.0)))
    return [trial for _, trial in ordered]


def _fault(source: str, message: str) -> SpecError:
    return SpecError((Fault("--where", None, source.strip(), message),))
