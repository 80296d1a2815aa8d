"""The small language of `--where`: comparisons, arithmetic and `and`, `or`, `not` over a student's figures.

`f1 >= 0.95 * teacher and parameters < 100_000`. Names are looked up in a fixed list and nothing is called,
so an expression can do nothing but compare numbers.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from raykd.errors import Fault, SpecError
from raykd.trial import Trial

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "f1": "dev_f1",
        "dev_f1": "dev_f1",
        "latency_ms": "latency_ms",
        "parameters": "parameters",
        "bytes": "bytes",
        "compression": "compression",
        "speedup": "speedup",
    }
)
"""What a student is asked for, and the field of its trial. `f1` is the dev score, also where the task calls
it accuracy, and `teacher` the teacher's. Target languages have no dev, so nothing is asked of them."""
BEST: Mapping[str, str] = MappingProxyType(
    {name: "min" if name in ("latency_ms", "parameters", "bytes") else "max" for name in NAMES}
)
HIDDEN = "selection is on dev: test scores are only reported, so that they stay honest estimates"

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
        """Whether `trial` meets the condition. A student that lacks a figure asked for does not.

        Raises SpecError when `teacher` is asked for and there is none, or on a division by zero.
        """
        values = {name: getattr(trial, field) for name, field in NAMES.items()} | {"teacher": teacher}
        if teacher is None and "teacher" in self.names:
            raise _fault("--where", self.source, "this sweep has no teacher with a dev score to compare with")
        if any(values[name] is None for name in self.names):
            return False
        try:
            return bool(_value(self.tree, values))
        except ZeroDivisionError:
            raise _fault("--where", self.source, "divides by zero") from None

    @property
    def names(self) -> frozenset[str]:
        """The names that the expression asks for."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))


def parse(source: str) -> Where:
    """The condition that `source` states.

    Raises SpecError with one fault, which points at the word: bad syntax, an unknown name, anything but
    comparisons, arithmetic and logic over the known names.
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        told = getattr(error, "msg", None) or str(error)
        raise _fault(
            "--where", source, f"is no comparison ({told}); write for instance f1 >= 0.95 * teacher"
        ) from None
    _refuse(tree, source)
    if not _is_condition(tree):
        raise _fault("--where", source, f"is a number, not a condition; compare it: {source.strip()} >= 0.8")
    return Where(source, tree)


def best(trials: Iterable[Trial], name: str) -> list[Trial]:
    """`trials` in the order of `name`, the best first: the least latency, parameters, bytes; the most of
    the rest.

    Trials without that figure are left out. Raises SpecError for a name that is not known.
    """
    if name not in NAMES:
        raise _unknown("--best", name, name, tuple(NAMES))
    able = [trial for trial in trials if getattr(trial, NAMES[name]) is not None]
    sign = 1 if BEST[name] == "min" else -1
    # Equals in what was asked for: the better F1 first.
    return sorted(able, key=lambda trial: (sign * getattr(trial, NAMES[name]), -(trial.dev_f1 or 0.0)))


def _refuse(tree: ast.expr, source: str) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id not in (*NAMES, "teacher"):
                raise _unknown("--where", source, node.id, (*NAMES, "teacher"))
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise _fault("--where", source, f"{ast.unparse(node)} is no number")
        elif not isinstance(node, ALLOWED):
            told = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            hint = "only names, numbers, + - * /, comparisons, and, or, not"
            raise _fault("--where", source, f"{told!r} is not understood here; {hint}")


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
            told = (_value(part, values) for part in parts)
            return all(told) if isinstance(op, ast.And) else any(told)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [_value(side, values) for side in (left, *rights)]
            return all(
                COMPARISON[type(op)](a, b) for op, a, b in zip(ops, sides[:-1], sides[1:], strict=True)
            )
    raise TypeError(f"{type(node).__name__} passed the check and has no meaning")


def _unknown(option: str, source: str, name: str, known: tuple[str, ...]) -> SpecError:
    if name.startswith(("test", "target")):
        return _fault(option, source, f"{name!r} cannot select; {HIDDEN}")
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return _fault(option, source, f"unknown name {name!r}; {guess}({', '.join(known)})")


def _fault(option: str, source: str, message: str) -> SpecError:
    return SpecError((Fault(option, None, source.strip(), message),))
