"""What the pictures of the page have in common: their colours in light and in dark, the shapes of markers, and their
frame.

Pictures are built in the light colours; the page replaces them by the dark ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import plotly.graph_objects as go

from raykd.figures.trial import Trial

COLOURS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "paper": ("#ffffff", "#11161d"),
        "ink": ("#1d2733", "#e4eaf0"),
        "quiet": ("#5d6975", "#9aa7b4"),
        "line": ("#cfd6dd", "#3a4552"),
        "grid": ("#edf0f3", "#232b35"),
        "grey": ("#aeb8c2", "#66727f"),
        "bar": ("#e3e8ed", "#2b3542"),
        "gold": ("#966a00", "#e3ae45"),
        "tie": ("#e3c47d", "#7b6636"),
        "ship": ("#1f7a4d", "#4fc48b"),
        "bad": ("#b3261e", "#ff8a80"),
        "ship-back": ("#e9f6ef", "#13291f"),
        "wait-back": ("#fff4e0", "#2c2312"),
    }
)
"""Name → the colour on light paper and on dark: of pictures, and as CSS variables of the page."""
PAPER, INK, QUIET, GRID, GREY, BAR, GOLD, TIE, SHIP = (
    COLOURS[name][0] for name in ("paper", "ink", "quiet", "grid", "grey", "bar", "gold", "tie", "ship")
)
FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
AXIS = MappingProxyType(
    {"gridcolor": GRID, "zeroline": False, "title_font": {"color": QUIET, "size": 13}, "title_standoff": 12}
)
"""The look of an axis."""


@dataclass(frozen=True)
class Look:
    """How the students of one kind are drawn: a colour of its own, and for whoever cannot tell colours, a shape."""

    colour: str
    dark: str
    symbol: str
    """Plotly's name of the shape."""
    glyph: str
    """The shape as a character."""


LOOKS = (
    Look("#0b6fb8", "#58aeea", "circle", "●"),
    Look("#d1495b", "#f28493", "square", "■"),
    Look("#21805a", "#4cc79a", "diamond", "◆"),
    Look("#7b4fb5", "#b996ec", "pentagon", "⬟"),
    Look("#b34d12", "#f29b66", "hexagon", "⬢"),
    Look("#0f7f8c", "#45c4d2", "triangle-up", "▲"),
    Look("#7d612f", "#cbae76", "cross", "✚"),
    Look("#5a6b7b", "#a3b3c2", "hourglass", "⧗"),
)
DARK: Mapping[str, str] = MappingProxyType(
    {**dict(COLOURS.values()), **{look.colour: look.dark for look in LOOKS}}
)
"""Each light colour → the one that takes its place in the dark."""


def looks(trials: Iterable[Trial]) -> Mapping[str, Look]:
    """A look for each strategy or objective, the same in every picture of a sweep."""
    kinds = sorted({trial.kind for trial in trials if trial.role == "search"})
    return MappingProxyType({kind: LOOKS[i % len(LOOKS)] for i, kind in enumerate(kinds)})


def variables(*, dark: bool) -> str:
    """The colours as CSS variables."""
    named = {f"--{name}": pair[dark] for name, pair in COLOURS.items()}
    kinds = {f"--kind-{i}": look.dark if dark else look.colour for i, look in enumerate(LOOKS)}
    return " ".join(f"{name}: {colour};" for name, colour in {**named, **kinds}.items())


def dress(figure: go.Figure, *, height: int) -> None:
    """Give a figure the page's look. `height`: in pixels."""
    font = {"family": FONT, "size": 13, "color": INK}
    figure.update_layout(
        # A template of plotly's would be 7 kB of the page for each figure.
        template="none",
        font=font,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 60, "r": 16, "t": 44, "b": 50},
        hoverlabel={"bgcolor": PAPER, "bordercolor": GREY, "font": font, "align": "left"},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "itemsizing": "constant"},
        hovermode="closest",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": INK},
        height=height,
    )
    figure.update_xaxes(dict(AXIS))
    figure.update_yaxes(dict(AXIS))
