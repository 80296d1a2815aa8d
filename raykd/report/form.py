"""Numbers as people read them. F1 is shown in percent with one decimal, sizes with three digits."""

from __future__ import annotations

NONE = "–"


def percent(f1: float | None) -> str:
    """0.8512 as `85.1`."""
    return NONE if f1 is None else f"{100 * f1:.1f}"


def spread(sd: float | None) -> str:
    """A standard deviation over seeds as ` ±0.3`; nothing for a single seed."""
    return f" ±{100 * sd:.1f}" if sd else ""


def gain(difference: float | None) -> str:
    """A difference of F1 with its sign: `+2.3`."""
    return NONE if difference is None else f"{100 * difference:+.1f}"


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


def times(factor: float | None) -> str:
    """How many times smaller or faster: `28.2×`."""
    return NONE if factor is None else f"{_digits(factor)}×"


def _digits(number: float) -> str:
    """Three significant digits, never with an exponent."""
    for bound, places in ((9.995, 2), (99.95, 1)):
        if abs(number) < bound:
            return f"{number:.{places}f}"
    return f"{number:.0f}"
