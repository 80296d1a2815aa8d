"""Selection of students from a front by conditions on figures: `--where` and `--best`."""

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
    """A condition on the rows of a front, made by `parse_where`."""

    condition: Condition

    def accepts(self, row: FrontRow, teacher: float | None) -> bool:
        """Return whether the row's student meets the condition. A student without a named figure does not.

        Args:
            row: A student of the front.
            teacher: The teacher's dev score, a fraction; None without a teacher.

        Raises:
            SpecError: The condition names the teacher but there is none, or divides by zero.
        """
        try:
            return self.condition.holds(self._values(row, teacher))
        except ConditionError as error:
            raise _fault(self.condition.source, str(error)) from None

    def closest(self, rows: Iterable[FrontRow], teacher: float | None) -> tuple[FrontRow, str] | None:
        """Return the row with the smallest miss of the condition, and a comparison in words.

        Misses are compared relative to the required value; the largest miss of each student counts. A student without a
        named figure is left out, and so is one whose figures make the condition divide by zero.

        Args:
            rows: Students of the front.
            teacher: The teacher's dev score, a fraction; None without a teacher.

        Returns:
            None if no student is left, and unless the condition is one comparison of numbers or several joined by
            `and`.

        Raises:
            SpecError: The condition names the teacher but there is none.
        """
        misses: list[tuple[float, FrontRow, str]] = []
        for row in rows:
            values = self._values(row, teacher)
            if None in values.values():
                continue
            largest, words = max(
                (_miss(part, values) for part in self.condition.parts), key=lambda miss: miss[0]
            )
            if math.isfinite(largest):
                misses.append((largest, row, words))
        if not misses:
            return None
        _, row, words = min(misses, key=lambda miss: miss[0])
        return row, words

    def _values(self, row: FrontRow, teacher: float | None) -> Values:
        if teacher is None and TEACHER in self.condition.names:
            raise _fault(self.condition.source, "this sweep has no teacher with a dev score to compare with")
        return self.condition.values(row.trial, teacher=teacher, over_gold=row.gain("dev"))


def _miss(part: ast.expr, values: Values) -> tuple[float, str]:
    """The relative miss of a comparison, and its two sides in words; ∞ if the sides have no distance."""
    if not isinstance(part, ast.Compare) or len(part.ops) > 1 or isinstance(part.ops[0], ast.NotEq):
        return math.inf, ""
    try:
        if evaluate_expression(part, values):
            return 0.0, ""
        left, right = evaluate_expression(part.left, values), evaluate_expression(part.comparators[0], values)
    except ConditionError:
        return math.inf, ""
    if isinstance(left, str) or isinstance(right, str):
        return math.inf, ""
    actual, required = tell_apart(left, right, significant_digits)
    words = f"{ast.unparse(part.left)} is {actual}, and {ast.unparse(part.comparators[0])} is {required}"
    return abs(left - right) / (abs(right) or 1.0), words


def parse_where(source: str, score_name: str) -> Where:
    """Parse a condition.

    Args:
        source: The condition as written by the user.
        score_name: Score of the sweep's task.

    Raises:
        SpecError: The condition is not valid; its single fault names the word.
    """
    try:
        return Where(parse_condition(source, score_name))
    except ConditionError as error:
        raise _fault(source, str(error)) from None


def best_first(trials: Iterable[Trial], name: str, score_name: str) -> list[Trial]:
    """Sort trials by a figure, the best first. Trials without the figure are left out.

    Timed costs are compared on the grid of the sweep, so that noise does not decide.

    Args:
        trials: The trials.
        name: Name of the figure.
        score_name: Score of the sweep's task.

    Raises:
        SpecError: The figure cannot select.
    """
    figures = selectable_figures(score_name)
    if fault := selection_fault(name, tuple(figures), score_name):
        raise SpecError((Fault("--best", None, name, fault),))
    figure = figures[name]
    sign = 1 if figure.direction == "min" else -1
    measured = [(value, trial) for trial in trials if (value := figure.compared_value(trial)) is not None]
    # Ties are broken by the score.
    ordered = sorted(measured, key=lambda pair: (sign * pair[0], -(DEV.read(pair[1]) or 0.0)))
    return [trial for _, trial in ordered]


def _fault(source: str, message: str) -> SpecError:
    return SpecError((Fault("--where", None, source.strip(), message),))
