"""Numbers as people read them. Scores are shown in percent with one decimal, costs with three digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from raykd.figures.table import COLUMNS, COSTS, Figure, Form
from raykd.figures.trial import TrialOrTeacher

NONE = "–"


def percent(score: float | None) -> str:
    """0.8512 as `85.1`."""
    return NONE if score is None else f"{100 * score:.1f}"


def share(part: float | None, more: int = 0) -> str:
    """0.9512 as `95 %`, with more decimals as `95.1 %`."""
    return NONE if part is None else f"{100 * part:.{more}f} %"


def significant_digits(number: float, more: int = 0) -> str:
    """A number of any unit, with four significant digits and more."""
    return f"{number:.{4 + more}g}"


def tell_apart(value: float, other: float, form: Callable[[float, int], str] = share) -> tuple[str, str]:
    """Two numbers with as many more digits as it takes to tell them apart: `94.7 %` and `95.0 %`; with none where these
    tell them apart, or where they are equal.
    """
    for more in range(10):
        one, two = form(value, more), form(other, more)
        if one != two:
            return one, two
    return form(value, 0), form(other, 0)


def spread(sd: float | None) -> str:
    """A standard deviation over seeds as ` ±0.3`; nothing for a single seed."""
    return f" ±{100 * sd:.1f}" if sd else ""


def gain(difference: float | None) -> str:
    """A difference of scores with its sign: `+2.3`."""
    return NONE if difference is None else f"{100 * difference:+.1f}"


def change(fraction: float | None) -> str:
    """By which fraction something is more or less: -0.032 as `-3.2 %`."""
    return NONE if fraction is None else f"{100 * fraction:+.1f} %"


def count(number: float | None) -> str:
    """45_123 as `45.1k`, 6_412_380 as `6.41M`."""
    if number is None:
        return NONE
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        # 999,600 would read 1000k.
        if number >= 0.9995 * size:
            return f"{_digits(number / size)}{unit}"
    return f"{number:.0f}"


def milliseconds(latency_ms: float | None) -> str:
    """Three digits without the unit, which the heading names."""
    return NONE if latency_ms is None else _digits(latency_ms)


def seconds(duration_s: float | None) -> str:
    """Three digits without the unit."""
    return NONE if duration_s is None else _digits(duration_s)


def size(number: float | None) -> str:
    """Bytes: 25_649_520 as `25.6 MB`."""
    if number is None:
        return NONE
    digits = count(number)
    return f"{digits[:-1]} {digits[-1]}B" if digits[-1].isalpha() else f"{digits} B"


def times(factor: float | None) -> str:
    """How many times smaller or faster: `28.2×`."""
    return NONE if factor is None else f"{_digits(factor)}×"


def decimal(number: float | None) -> str:
    """Three digits."""
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
    """The figure of a trial or teacher as a cell of its column."""
    return FORMS[figure.form](figure.read(scored))


def in_words(figure: Figure, value: float) -> str:
    """A value of the figure as part of a sentence: `0.83 ms`, `11.9× faster`, `1.47× slower`."""
    if figure.form == "times" and 0 < value < 1:
        words = figure.words.replace("faster", "slower").replace("smaller", "larger")
        return f"{times(1 / value)} {words}"
    return f"{FORMS[figure.form](value)} {figure.words}".rstrip()


def costs_in_words(scored: TrialOrTeacher, figures: Iterable[Figure] = COSTS) -> list[str]:
    """What is known of what it costs: `0.83 ms`, `274k parameters`, …"""
    return [in_words(figure, value) for figure in figures if (value := figure.read(scored)) is not None]


def main_costs(scored: TrialOrTeacher) -> str:
    """The costs whose column always stays, in one line: `0.83 ms · 274k parameters`."""
    return " · ".join(costs_in_words(scored, [figure for figure in COLUMNS if figure.column == 0]))


def _digits(number: float) -> str:
    """Three significant digits, never with an exponent."""
    for bound, places in ((9.995, 2), (99.95, 1)):
        if abs(number) < bound:
            return f"{number:.{places}f}"
    return f"{number:.0f}"
