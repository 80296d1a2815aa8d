"""Conditions on a trial's figures, as `--where` and `search.constraints` write them.

A condition has comparisons, arithmetic, `and`, `or` and `not`: `f1 >= 0.95 * teacher and parameters < 100_000`. Names
are the selectable ones of `raykd/figures/table.py` (`f1`, `latency_ms_p90`, …), a language's dev score (`f1[nl] >=
0.8`), `over_gold`, and `objective == "structural"`. Functions cannot be called, so an expression can only compare.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from raykd.figures.table import DEV, selectable_figures, selection_fault
from raykd.figures.trial import Trial

TEACHER = "teacher"
"""In an expression: the teacher's dev score."""
OVER_GOLD = "over_gold"
"""In an expression: the student's dev score less that of the same student trained on labels alone."""
OBJECTIVE = "objective"
"""In an expression: the kind of the trial's objective, as in `objective == "structural"`."""

ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
)
COMPARISON: Mapping[type, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
    }
)


Values = Mapping[str, float | str | None]
"""Name in an expression → value for one trial; None if unknown."""
JUST_MISSED = 1e-9
"""The margin of a strict comparison whose two sides are equal."""
NOT_KNOWN = 1.0
"""The margin of a condition without a value for a trial: a figure is unknown, or the condition divides by zero."""


class ConditionError(ValueError):
    """An expression is not a condition; the caller adds where it was written."""


@dataclass(frozen=True)
class Condition:
    """A parsed expression; `parse` makes it."""

    source: str
    tree: ast.expr

    @property
    def names(self) -> frozenset[str]:
        """The names in the expression; `f1[en]` is one name."""
        return frozenset(_names(self.tree))

    @property
    def parts(self) -> Sequence[ast.expr]:
        """The parts joined by `and`; without `and`, the whole expression."""
        is_conjunction = isinstance(self.tree, ast.BoolOp) and isinstance(self.tree.op, ast.And)
        return self.tree.values if is_conjunction else [self.tree]  # type: ignore[union-attr]

    def known_before_training(self, score_name: str) -> bool:
        """True if a trial's costs and objective decide the condition, so that no training is needed."""
        figures = selectable_figures(score_name)
        return all(
            name == OBJECTIVE or (name in figures and figures[name].known_before_training)
            for name in self.names
        )

    def values(self, trial: Trial, *, teacher: float | None, over_gold: float | None = None) -> Values:
        """Return name in the expression → value for a trial; None if unknown.

        Args:
            trial: The trial.
            teacher: The teacher's dev score.
            over_gold: The student's dev score less that of its gold twin.
        """
        figures, languages = selectable_figures(trial.score_name), trial.scores.by_language("dev")
        special_values = {OBJECTIVE: trial.objective, OVER_GOLD: over_gold, TEACHER: teacher}
        values = {}
        for name in self.names:
            figure, bracket, language = name.partition("[")
            if bracket:
                values[name] = languages.get(language.rstrip("]"))
            else:
                values[name] = special_values[name] if name in special_values else figures[figure].read(trial)
        return values

    def holds(self, values: Values) -> bool:
        """True if the values meet the condition; an unknown value does not.

        Raises:
            ConditionError: The condition divides by zero.
        """
        return None not in values.values() and bool(evaluate_expression(self.tree, values))

    def margin(self, values: Values) -> float:
        """Return the miss of the condition as a share of its threshold; 0 or less if the condition holds.

        A condition without a value for the trial is missed by `NOT_KNOWN`.
        """
        if None in values.values():
            return NOT_KNOWN
        try:
            margin, holds = _margin(self.tree, values), self.holds(values)
        except ConditionError:
            return NOT_KNOWN
        # Where both sides are equal, the sign of the margin does not tell `<` from `<=`, nor `not`.
        return min(margin, 0.0) if holds else max(margin, JUST_MISSED)


def parse(source: str, score_name: str) -> Condition:
    """Parse an expression as a condition.

    Args:
        source: The expression, such as `f1 >= 0.95 * teacher`.
        score_name: Name of the task's score: `f1`, `accuracy`.

    Raises:
        ConditionError: The syntax is wrong, a name is unknown, or the expression has anything but comparisons,
            arithmetic and logic. The message names the word.

    Examples:
        >>> sorted(parse("f1 >= 0.95 * teacher and f1[nl] >= 0.8", "f1").names)
        ['f1', 'f1[nl]', 'teacher']
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise ConditionError(
            f"is not a comparison ({reason}); write for instance {score_name} >= 0.95 * {TEACHER}"
        ) from None
    _refuse(tree, score_name)
    if not _is_condition(tree):
        raise ConditionError(f"is a number, not a condition; compare it: {source.strip()} >= 0.8")
    return Condition(source.strip(), tree)


def evaluate_expression(tree: ast.expr, values: Values) -> float | str:
    """Return the value of an expression, or of a part of one.

    Args:
        tree: The parsed expression.
        values: Name → value; every name of the expression must be known.

    Raises:
        ConditionError: The expression divides by zero.
    """
    try:
        return _value(tree, values)
    except ZeroDivisionError:
        raise ConditionError("divides by zero") from None


def _margin(tree: ast.expr, values: Values) -> float:
    """Return `Condition.margin` without regard to equal sides; of several parts joined by `and` the largest counts."""
    match tree:
        case ast.BoolOp(op=op, values=parts):
            margins = [_margin(part, values) for part in parts]
            return max(margins) if isinstance(op, ast.And) else min(margins)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return -_margin(operand, values)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [evaluate_expression(side, values) for side in (left, *rights)]
            return max(_miss(op, a, b) for op, a, b in zip(ops, sides[:-1], sides[1:], strict=True))
    raise TypeError(f"{type(tree).__name__} passed the check and is no condition")


def _miss(op: ast.cmpop, left: float | str, right: float | str) -> float:
    """Return the miss of one comparison as a share of its right side; negative if the comparison holds with room."""
    if isinstance(left, str) or isinstance(right, str):
        return 0.0 if COMPARISON[type(op)](left, right) else 1.0
    difference = (left - right) / (abs(right) or 1.0)
    if isinstance(op, ast.Eq | ast.NotEq):
        return abs(difference) if isinstance(op, ast.Eq) else -abs(difference)
    return difference if isinstance(op, ast.Lt | ast.LtE) else -difference


def _names(tree: ast.AST) -> Iterator[str]:
    if isinstance(tree, ast.Subscript):
        yield _subscript(tree)
    elif isinstance(tree, ast.Name):
        yield tree.id
    else:
        for child in ast.iter_child_nodes(tree):
            yield from _names(child)


def _subscript(tree: ast.Subscript) -> str:
    """Return `f1[en]` or `f1["en"]` as one name."""
    index = tree.slice
    language = index.id if isinstance(index, ast.Name) else getattr(index, "value", None)
    if isinstance(index, ast.BinOp):  # f1[zh-min-nan] reads as a subtraction
        language = ast.unparse(index).replace(" - ", "-")
    return f"{ast.unparse(tree.value)}[{language}]"


def _refuse(node: ast.AST, score_name: str) -> None:
    """Raise ConditionError for a part of an expression that conditions cannot have."""
    if isinstance(node, ast.Subscript):
        if not (isinstance(node.value, ast.Name) and node.value.id in DEV.accepted_names(score_name)):
            raise ConditionError(
                f"{ast.unparse(node)!r} is not understood; write a language's dev score as {score_name}[en]"
            )
        return
    if isinstance(node, ast.Name) and node.id == OBJECTIVE:
        raise ConditionError(f'{OBJECTIVE} is not a number; compare it: {OBJECTIVE} == "structural"')
    if isinstance(node, ast.Name):
        names = (*selectable_figures(score_name), TEACHER, OVER_GOLD, OBJECTIVE)
        if fault := selection_fault(node.id, names, score_name):
            raise ConditionError(fault)
    elif isinstance(node, ast.Compare) and _is_objective(node):
        return
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ConditionError(f"{ast.unparse(node)} is not a number")
    elif not isinstance(node, ALLOWED):
        written = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        hint = "use only names, numbers, + - * /, comparisons, and, or, not"
        raise ConditionError(f"{written!r} is not understood here; {hint}")
    for child in ast.iter_child_nodes(node):
        _refuse(child, score_name)


def _is_objective(node: ast.Compare) -> bool:
    """True for `objective == "structural"`, or `!=`."""
    left, right = node.left, node.comparators[0]
    return (
        len(node.ops) == 1
        and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        and isinstance(left, ast.Name)
        and left.id == OBJECTIVE
        and isinstance(right, ast.Constant)
        and isinstance(right.value, str)
    )


ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Load, ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd,
    *ARITHMETIC, *COMPARISON,
)  # fmt: skip
"""Nodes of the syntax tree that an expression may have beside names and numbers."""


def _is_condition(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(_is_condition(part) for part in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is_condition(node.operand)
    return isinstance(node, ast.Compare)


def _value(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Subscript():
            return values[_subscript(node)]
        case ast.Constant(value=value):
            return value
        case ast.BinOp(left=left, op=op, right=right):
            return ARITHMETIC[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, values)
            return not value if isinstance(op, ast.Not) else -value if isinstance(op, ast.USub) else value
        case ast.BoolOp(op=op, values=parts):
            results = (_value(part, values) for part in parts)
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, values) for side in (left, *rights)]
            return all(
                COMPARISON[type(op)](a, b) for op, a, b in zip(ops, sides[:-1], sides[1:], strict=True)
            )
    raise TypeError(f"{type(node).__name__} passed the check and has no meaning")
