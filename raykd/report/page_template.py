"""The frame of the HTML page: its document, style and script, and plotly.js packed into it."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files
from string import Template

from raykd.report.look import variables

PLOTLY = "plotly-basic.min.js"
"""plotly.js with the few kinds of pictures that the page has, as its authors publish it: `npm pack
plotly.js-basic-dist-min` of the version that plotly for Python is made for."""


def filled(**parts: str) -> str:
    """The page with its `parts`, which are HTML."""
    return Template(asset("page.html")).substitute(
        variables=_themes(),
        style=asset("page.css"),
        script=asset("page.js"),
        plotly=_packed_plotly(),
        **parts,
    )


@cache
def asset(name: str) -> str:
    """The text of a file beside this one, in `assets/`."""
    return (files("raykd.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def _packed_plotly() -> str:
    """Half a megabyte in place of 1.2: pages are kept with every sweep, logged and mailed."""
    return base64.b64encode(gzip.compress(asset(PLOTLY).encode(), mtime=0)).decode()


def _themes() -> str:
    light, dark = variables(dark=False), variables(dark=True)
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ color-scheme: dark; {dark} }} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
        f"@media print {{ :root:root:root {{ color-scheme: light; {light} }} }}"
    )
