"""The results of a sweep: the front as terminal table, Markdown, CSV, Parquet and one HTML page; `--where` and
`--best`.

Everything here returns strings, bytes or rich renderables; `cli/` prints them.
"""

from raykd.report.cost_notes import cost_notes
from raykd.report.curves import curves_of
from raykd.report.export import trials_csv, trials_parquet, trials_table
from raykd.report.findings import Judgement, judge
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.page import front_html
from raykd.report.provenance import Provenance
from raykd.report.stopped import stopped_of
from raykd.report.table import front_markdown, front_table, headline
from raykd.report.where import Where, best, parse

__all__ = [
    "FrontRow",
    "Judgement",
    "Provenance",
    "Where",
    "best",
    "cost_notes",
    "curves_of",
    "front_html",
    "front_markdown",
    "front_rows",
    "front_table",
    "headline",
    "judge",
    "parse",
    "stopped_of",
    "trials_csv",
    "trials_parquet",
    "trials_table",
]
