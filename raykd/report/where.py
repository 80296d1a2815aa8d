"""The small language of `--where`: comparisons, arithmetic and `and`, `or`, `not` over a student's figures.

`f1 >= 0.95 * teacher and parameters < 100_000`. Names are those of `raykd/figures.py` that may select (`f1`,
`latency_ms_p90`, …), a language's own score (`f1[nl] >= 0.8`), `over_gold`, and `objective == "structural"`. Nothing is
called, so an expression can do nothing but compare.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from raykd.errors import Fault, SpecError
from raykd.figures import DEV, selecting, selection_fault
from raykd.report.form import apart, plain
from raykd.report.front_rows import FrontRow
from raykd.trial import Trial

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


@dataclass(frozen=True)
class Where:
    """A parsed expression; `parse` makes it."""

    source: str
    tree: ast.expr

    def accepts(self, row: FrontRow, teacher: float | None) -> bool:
        """Whether the row's student meets the condition. One that lacks a figure named in it does not.

        `teacher` is the teacher's dev score. Raises SpecError where it is named and there is none, and on a division
        by zero.
        """
        values = self._values(row, teacher)
        if any(values[name] is None for name in self.names):
            return False
        return bool(self._of(self.tree, values))

    def closest(self, rows: Iterable[FrontRow], teacher: float | None) -> tuple[FrontRow, str] | None:
        """The row that misses a condition by the least, and what it has where the condition asks for what; None where
        the condition is not one comparison of numbers, or several joined by `and`.

        Misses are compared as shares of what is asked for, the largest of each student's.
        """
        parts = self.tree.values if isinstance(self.tree, ast.BoolOp) else [self.tree]
        if isinstance(self.tree, ast.BoolOp) and not isinstance(self.tree.op, ast.And):
            return None
        misses = []
        for row in rows:
            values = self._values(row, teacher)
            if any(values[name] is None for name in self.names):
                continue
            worst = max((self._miss(part, values) for part in parts), key=lambda miss: miss[0])
            misses.append((worst[0], row, worst[1]))
        if not misses or not math.isfinite(min(misses, key=lambda miss: miss[0])[0]):
            return None
        _, row, words = min(misses, key=lambda miss: miss[0])
        return row, words

    def _miss(self, part: ast.expr, values: Mapping[str, Any]) -> tuple[float, str]:
        """By how much a comparison of two sides is missed, and its two sides in words."""
        if not isinstance(part, ast.Compare) or len(part.ops) > 1 or isinstance(part.ops[0], ast.NotEq):
            return math.inf, ""
        if self._of(part, values):
            return 0.0, ""
        left, right = self._of(part.left, values), self._of(part.comparators[0], values)
        is_, wanted = apart(left, right, plain)
        words = f"{ast.unparse(part.left)} is {is_}, and {ast.unparse(part.comparators[0])} is {wanted}"
        return abs(left - right) / (abs(right) or 1.0), words

    def _values(self, row: FrontRow, teacher: float | None) -> dict[str, Any]:
        if teacher is None and TEACHER in self.names:
            raise _fault(self.source, "this sweep has no teacher with a dev score to compare with")
        trial, values = row.trial, {}
        known, languages = selecting(trial.score_name), trial.scores.by_language("dev")
        own = {OBJECTIVE: trial.objective, OVER_GOLD: row.gain("dev"), TEACHER: teacher}
        for name in self.names:
            figure, bracket, language = name.partition("[")
            if bracket:
                values[name] = languages.get(language.rstrip("]"))
            else:
                values[name] = own[name] if name in own else known[figure].read(trial)
        return values

    def _of(self, tree: ast.expr, values: Mapping[str, Any]) -> Any:
        try:
            return _value(tree, values)
        except ZeroDivisionError:
            raise _fault(self.source, "divides by zero") from None

    @property
    def names(self) -> frozenset[str]:
        """The names in the expression; `f1[en]` is one."""
        return frozenset(_names(self.tree))


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


def _refuse(node: ast.AST, source: str, score_name: str) -> None:
    if isinstance(node, ast.Subscript):
        if not (isinstance(node.value, ast.Name) and node.value.id in DEV.answers_to(score_name)):
            raise _fault(
                source, f"{ast.unparse(node)!r} is not understood; a language's dev score is {score_name}[en]"
            )
        return
    if isinstance(node, ast.Name):
        known = (*selecting(score_name), TEACHER, OVER_GOLD, OBJECTIVE)
        if fault := selection_fault(node.id, known, score_name):
            raise _fault(source, fault)
    elif isinstance(node, ast.Compare) and _is_objective(node):
        return
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise _fault(source, f"{ast.unparse(node)} is not a number")
    elif not isinstance(node, ALLOWED):
        written = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        hint = "use only names, numbers, + - * /, comparisons, and, or, not"
        raise _fault(source, f"{written!r} is not understood here; {hint}")
    for child in ast.iter_child_nodes(node):
        _refuse(child, source, score_name)


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


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
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


def _fault(source: str, message: str) -> SpecError:
    return SpecError((Fault("--where", None, source.strip(), message),))
