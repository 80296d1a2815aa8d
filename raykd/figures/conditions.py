"""Conditions on a trial's figures, as `--where` and `search.constraints` write them: comparisons, arithmetic and `and`,
`or`, `not`.

`f1 >= 0.95 * teacher and parameters < 100_000`. Names are those of `raykd/figures/table.py` that may select (`f1`,
`latency_ms_p90`, …), a language's own score (`f1[nl] >= 0.8`), `over_gold`, and `objective == "structural"`. Nothing is
called, so an expression can do nothing but compare.
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
"""The student's dev score less that of the same student on labels alone."""
OBJECTIVE = "objective"
"""The kind of its objective: `objective == "structural"`."""

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
"""What a trial has of the names of an expression; None: not known."""
JUST_MISSED = 1e-9
"""The margin of a condition that does not hold though its two sides are equal."""
NOT_KNOWN = 1.0
"""The margin of a condition that has no value for a trial, which lacks a figure or makes it divide by zero."""


class ConditionError(ValueError):
    """What is wrong with an expression; who asked for it says where it was written."""


@dataclass(frozen=True)
class Condition:
    """A parsed expression; `parse` makes it."""

    source: str
    tree: ast.expr

    @property
    def names(self) -> frozenset[str]:
        """The names in the expression; `f1[en]` is one."""
        return frozenset(_names(self.tree))

    @property
    def parts(self) -> Sequence[ast.expr]:
        """What is joined by `and`; the expression itself where nothing is."""
        both = isinstance(self.tree, ast.BoolOp) and isinstance(self.tree.op, ast.And)
        return self.tree.values if both else [self.tree]  # type: ignore[union-attr]

    def known_before_training(self, score_name: str) -> bool:
        """Whether it is decided by what is known of a trial before it is trained: its costs and its objective."""
        known = selectable_figures(score_name)
        return all(
            name == OBJECTIVE or (name in known and known[name].known_before_training) for name in self.names
        )

    def values(self, trial: Trial, *, teacher: float | None, over_gold: float | None = None) -> Values:
        """Name → what the trial has; None: not known. `teacher` is the teacher's dev score."""
        known, languages = selectable_figures(trial.score_name), trial.scores.by_language("dev")
        own = {OBJECTIVE: trial.objective, OVER_GOLD: over_gold, TEACHER: teacher}
        values = {}
        for name in self.names:
            figure, bracket, language = name.partition("[")
            if bracket:
                values[name] = languages.get(language.rstrip("]"))
            else:
                values[name] = own[name] if name in own else known[figure].read(trial)
        return values

    def holds(self, values: Values) -> bool:
        """Whether the values meet it. One of them that is not known does not. Raises ConditionError on a division by
        zero.
        """
        return None not in values.values() and bool(evaluate_expression(self.tree, values))

    def margin(self, values: Values) -> float:
        """By how much the values miss it, as a share of what is asked for; 0 or less where they meet it."""
        if None in values.values():
            return NOT_KNOWN
        try:
            margin, holds = _margin(self.tree, values), self.holds(values)
        except ConditionError:
            return NOT_KNOWN
        # Of strict comparisons and of `not` the sign says nothing where both sides are equal.
        return min(margin, 0.0) if holds else max(margin, JUST_MISSED)


def parse(source: str, score_name: str) -> Condition:
    """The condition that `source` states, for a sweep whose task has that score.

    Raises ConditionError, which names the word: bad syntax, an unknown name, anything but comparisons, arithmetic and
    logic over the known names.
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", None) or str(error)
        raise ConditionError(
            f"is not a comparison ({why}); write for instance {score_name} >= 0.95 * {TEACHER}"
        ) from None
    _refuse(tree, score_name)
    if not _is_condition(tree):
        raise ConditionError(f"is a number, not a condition; compare it: {source.strip()} >= 0.8")
    return Condition(source.strip(), tree)


def evaluate_expression(tree: ast.expr, values: Values) -> float | str:
    """What an expression, or a part of one, comes to. Raises ConditionError on a division by zero."""
    try:
        return _value(tree, values)
    except ZeroDivisionError:
        raise ConditionError("divides by zero") from None


def _margin(tree: ast.expr, values: Values) -> float:
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
    if isinstance(left, str) or isinstance(right, str):
        return 0.0 if COMPARISON[type(op)](left, right) else 1.0
    apart = (left - right) / (abs(right) or 1.0)
    if isinstance(op, ast.Eq | ast.NotEq):
        return abs(apart) if isinstance(op, ast.Eq) else -abs(apart)
    return apart if isinstance(op, ast.Lt | ast.LtE) else -apart


def _names(tree: ast.AST) -> Iterator[str]:
    if isinstance(tree, ast.Subscript):
        yield _subscript(tree)
    elif isinstance(tree, ast.Name):
        yield tree.id
    else:
        for child in ast.iter_child_nodes(tree):
            yield from _names(child)


def _subscript(tree: ast.Subscript) -> str:
    """`f1[en]` and `f1["en"]` as one name."""
    where = tree.slice
    language = where.id if isinstance(where, ast.Name) else getattr(where, "value", None)
    if isinstance(where, ast.BinOp):  # f1[zh-min-nan] reads as a subtraction
        language = ast.unparse(where).replace(" - ", "-")
    return f"{ast.unparse(tree.value)}[{language}]"


def _refuse(node: ast.AST, score_name: str) -> None:
    if isinstance(node, ast.Subscript):
        if not (isinstance(node.value, ast.Name) and node.value.id in DEV.accepted_names(score_name)):
            raise ConditionError(
                f"{ast.unparse(node)!r} is not understood; a language's dev score is {score_name}[en]"
            )
        return
    if isinstance(node, ast.Name):
        known = (*selectable_figures(score_name), TEACHER, OVER_GOLD, OBJECTIVE)
        if fault := selection_fault(node.id, known, score_name):
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
    """`objective == "structural"`, or `!=`."""
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
    *(
        ast.BinOp,
        ast.UnaryOp,
        ast.BoolOp,
        ast.Compare,
        ast.Load,
        ast.And,
        ast.Or,
        ast.Not,
        ast.USub,
        ast.UAdd,
    ),
    *ARITHMETIC,
    *COMPARISON,
)


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
