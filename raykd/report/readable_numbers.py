"""Numbers for people: scores in percent with one decimal, costs with three digits. None becomes a dash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from raykd.figures.table import COLUMNS, COSTS, Figure, Form
from raykd.figures.trial import TrialOrTeacher

NONE = "–"
"""Text for an unknown number."""


def percent(score: float | None) -> str:
    """Return 0.8512 as `85.1`.

    Args:
        score: A fraction; None becomes a dash.
    """
    return NONE if score is None else f"{100 * score:.1f}"


def share(part: float | None, more: int = 0) -> str:
    """Return 0.9512 as `95 %`, or with one more decimal as `95.1 %`.

    Args:
        part: A fraction; None becomes a dash.
        more: Number of decimals.
    """
    return NONE if part is None else f"{100 * part:.{more}f} %"


def significant_digits(number: float, more: int = 0) -> str:
    """Return a number of any unit with four significant digits, or `more` than four."""
    return f"{number:.{4 + more}g}"


def tell_apart(value: float, reference: float, form: Callable[[float, int], str] = share) -> tuple[str, str]:
    """Return two numbers with just enough digits to differ: `94.7 %` and `95.0 %`.

    Equal numbers, and numbers that differ already, get no additional digits.
    """
    for more in range(10):
        first, second = form(value, more), form(reference, more)
        if first != second:
            return first, second
    return form(value, 0), form(reference, 0)


def spread(sd: float | None) -> str:
    """Return a standard deviation over seeds as ` ±0.3`; empty for a single seed, or if all seeds are equal."""
    return f" ±{100 * sd:.1f}" if sd else ""


def gain(difference: float | None) -> str:
    """Return a difference of scores with a sign: `+2.3`.

    Args:
        difference: A difference of fractions; None becomes a dash.
    """
    return NONE if difference is None else f"{100 * difference:+.1f}"


def change(fraction: float | None) -> str:
    """Return a relative change with a sign: -0.032 as `-3.2 %`."""
    return NONE if fraction is None else f"{100 * fraction:+.1f} %"


def count(number: float | None) -> str:
    """Return 45_123 as `45.1k` and 6_412_380 as `6.41M`.

    Args:
        number: A count; None becomes a dash.
    """
    if number is None:
        return NONE
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        # Otherwise 999,600 would become 1000k.
        if number >= 0.9995 * factor:
            return f"{_digits(number / factor)}{unit}"
    return f"{number:.0f}"


def milliseconds(latency_ms: float | None) -> str:
    """Return three digits without the unit, which stands in the heading.

    Args:
        latency_ms: In ms; None becomes a dash.
    """
    return NONE if latency_ms is None else _digits(latency_ms)


def seconds(duration_s: float | None) -> str:
    """Return three digits without the unit."""
    return NONE if duration_s is None else _digits(duration_s)


def size(number: float | None) -> str:
    """Return bytes: 25_649_520 as `25.6 MB`.

    Args:
        number: Bytes; None becomes a dash.
    """
    if number is None:
        return NONE
    digits = count(number)
    return f"{digits[:-1]} {digits[-1]}B" if digits[-1].isalpha() else f"{digits} B"


def times(factor: float | None) -> str:
    """Return a factor of size or speed: `28.2×`."""
    return NONE if factor is None else f"{_digits(factor)}×"


def decimal(number: float | None) -> str:
    """Return three digits."""
    return NONE if number is None else _digits(number)


FORMS: Mapping[Form, Callable[[float | None], str]] = MappingProxyType(
    {
        "percent": percent,
        "count": count,
        "bytes": size,
        "milliseconds": milliseconds,
        "seconds": seconds,
        "times": times,
        "decimal": decimal,
    }
)


def format_figure(figure: Figure, scored: TrialOrTeacher) -> str:
    """Return the figure of a trial or teacher as a cell of a table."""
    return FORMS[figure.form](figure.read(scored))


def in_words(figure: Figure, value: float) -> str:
    """Return a value as part of a sentence: `0.83 ms`, `11.9× faster`, `1.47× slower`."""
    if figure.form == "times" and 0 < value < 1:
        words = figure.words.replace("faster", "slower").replace("smaller", "larger")
        return f"{times(1 / value)} {words}"
    return f"{FORMS[figure.form](value)} {figure.words}".rstrip()


def costs_in_words(scored: TrialOrTeacher, figures: Iterable[Figure] = COSTS) -> list[str]:
    """Return the known costs: `0.83 ms`, `274k parameters`, ….

    Args:
        scored: A trial or teacher.
        figures: Costs to name; unknown ones are left out.
    """
    return [in_words(figure, value) for figure in figures if (value := figure.read(scored)) is not None]


def main_costs(scored: TrialOrTeacher) -> str:
    """Return the costs of the permanent columns on one line: `0.83 ms · 274k parameters`."""
    return " · ".join(costs_in_words(scored, [figure for figure in COLUMNS if figure.column == 0]))


def _digits(number: float) -> str:
    """Three significant digits, never with an exponent."""
    for bound, places in ((9.995, 2), (99.95, 1)):
        if abs(number) < bound:
            return f"{number:.{places}f}"
    return f"{number:.0f}"
