"""The small language of `--where`: comparisons, arithmetic and `and`, `or`, `not` over a student's figures.

`f1 >= 0.95 * teacher and parameters < 100_000`. Names are those of `raykd/figures.py` that may select; nothing is
called, so an expression can do nothing but compare numbers.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from raykd.errors import Fault, SpecError
from raykd.figures import DEV, selecting, selection_fault
from raykd.trial import Trial

TEACHER = "teacher"
"""In an expression: the teacher's dev score."""

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


@dataclass(frozen=True)
class Where:
    """A parsed expression; `parse` makes it."""

    source: str
    tree: ast.expr

    def accepts(self, trial: Trial, teacher: float | None) -> bool:
        """Whether `trial` meets the condition. A student that lacks a figure named in it does not.

        `teacher` is the teacher's dev score. Raises SpecError where it is named and there is none, and on a division
        by zero.
        """
        known = selecting(trial.score_name)
        values = {name: known[name].read(trial) for name in self.names - {TEACHER}} | {TEACHER: teacher}
        if teacher is None and TEACHER in self.names:
            raise _fault(self.source, "this sweep has no teacher with a dev score to compare with")
        if any(values[name] is None for name in self.names):
            return False
        try:
            return bool(_value(self.tree, values))
        except ZeroDivisionError:
            raise _fault(self.source, "divides by zero") from None

    @property
    def names(self) -> frozenset[str]:
        """The names in the expression."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))


def parse(source: str, score_name: str) -> Where:
    """The condition that `source` states, for a sweep whose task has that score.

    Raises SpecError with one fault, which names the word: bad syntax, an unknown name, anything but
    comparisons, arithmetic and logic over the known names.
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", None) or str(error)
        raise _fault(
            source, f"is not a comparison ({why}); write for instance {score_name} >= 0.95 * {TEACHER}"
        ) from None
    _refuse(tree, source, score_name)
    if not _is_condition(tree):
        raise _fault(source, f"is a number, not a condition; compare it: {source.strip()} >= 0.8")
    return Where(source, tree)


def best(trials: Iterable[Trial], name: str, score_name: str) -> list[Trial]:
    """`trials` in the order of the figure `name`, the best first.

    Trials without that figure are left out. Raises SpecError for a name that cannot select.
    """
    known = selecting(score_name)
    if fault := selection_fault(name, tuple(known), score_name):
        raise SpecError((Fault("--best", None, name, fault),))
    figure = known[name]
    sign = 1 if figure.direction == "min" else -1
    able = [(value, trial) for trial in trials if (value := figure.read(trial)) is not None]
    # Of trials with the same figure the one with the better score comes first.
    ordered = sorted(able, key=lambda pair: (sign * pair[0], -(DEV.read(pair[1]) or 0.0)))
    return [trial for _, trial in ordered]


def _refuse(tree: ast.expr, source: str, score_name: str) -> None:
    known = (*selecting(score_name), TEACHER)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if fault := selection_fault(node.id, known, score_name):
                raise _fault(source, fault)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise _fault(source, f"{ast.unparse(node)} is not a number")
        elif not isinstance(node, ALLOWED):
            written = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            hint = "use only names, numbers, + - * /, comparisons, and, or, not"
            raise _fault(source, f"{written!r} is not understood here; {hint}")


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


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return values[name]
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


def _fault(source: str, message: str) -> SpecError:
    return SpecError((Fault("--where", None, source.strip(), message),))
