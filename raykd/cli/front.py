"""`raykd front`: show the front of a sweep, and the student to ship."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated

import typer
from rich.text import Text

from raykd.cli.console import stdout, warn
from raykd.cli.options import (
    Overrides,
    Small,
    SweepName,
    SweepStore,
    Variants,
    file_arguments,
    store_argument,
    where_argument,
)
from raykd.cli.pages import report_files
from raykd.cli.records import find_records
from raykd.errors import StoreError
from raykd.figures.table import COSTS, Directions, cost_columns, main_latency
from raykd.figures.trial import Teacher, Trial, common_score_name, format_scores, teacher_score
from raykd.report.cost_notes import cost_notes
from raykd.report.findings import Judgement, judge
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.readable_numbers import costs_in_words
from raykd.report.student_selection import Where, best_first, parse_where
from raykd.report.terminal_table import front_table
from raykd.sweep.records import SweepRecords


def front(
    sweep: SweepName,
    store: SweepStore = None,
    where: Annotated[
        str | None,
        typer.Option(
            help="Show only students that meet a condition, for example 'f1 >= 0.95 * teacher'. "
            "Names: the task's score "
            "on dev (f1, accuracy), the score of one language (f1\\[nl]), teacher (its score), "
            "over_gold (the gain over "
            "gold labels alone), objective (== 'structural') and the costs in front.csv (latency_ms, latency_ms_int8, "
            "bytes, …)."
        ),
    ] = None,
    best: Annotated[
        str | None, typer.Option(help="Choose the best student by this figure, for example latency_ms.")
    ] = None,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
) -> None:
    """Show the front of SWEEP, and the student to ship; choose another with --where and --best."""
    records = find_records(sweep, store, variant, small, set_, command="raykd front ")
    trials, teachers = records.trials(), records.teachers()
    score_name = common_score_name([*teachers, *trials])
    condition = parse_where(where, score_name) if where else None
    if condition is None and best is None:
        written = _write(report_files(trials, teachers, records), records)
        judged = judge(trials, teachers, objectives=records.objectives, dev_labels=records.dev_labels())
        show_front(trials, teachers, judged, sweep=records.name, objectives=records.objectives)
        stdout.print(
            f"front: {written}. Next: raykd front {file_arguments(sweep, variant, small, set_)}{store_argument(store)} "
            f"{where_argument(teachers, score_name)}--best {main_latency(records.objectives).name}"
        )
        return
    reference = teacher_score(teachers)
    rows = front_rows(trials, teachers, objectives=records.objectives)
    accepted = [row.trial for row in rows if condition is None or condition.accepts(row, reference)]
    chosen = best_first(accepted, best or main_latency(records.objectives).name, score_name)
    if not chosen:
        _print_closest(rows, condition, reference)
        _print_unmeasured(rows, {*(condition.condition.names if condition else ()), best})
        raise typer.Exit(1)
    _print_choice(chosen, best, records)
    show_verdict(
        judge(
            trials, teachers, objectives=records.objectives, dev_labels=records.dev_labels(), chosen=chosen[0]
        )
    )


def _write(files: Mapping[str, bytes], records: SweepRecords) -> str:
    """Write the report, and return a clause on its place. A failure is a warning: the table is shown all the same."""
    *first, last = files
    names = f"{', '.join(first)} and {last}"
    try:
        for name, data in files.items():
            records.folder.write(name, data)
    except StoreError as error:
        warn(error)
        return f"{names} could not be written"
    return f"{names} are in {records.folder.address}"


def show_front(
    trials: list[Trial], teachers: list[Teacher], judged: Judgement, *, sweep: str, objectives: Directions
) -> None:
    """Print the table, the findings and the verdict."""
    ship = judged.verdict.ship
    shipped = ship.number if ship else None
    stdout.print(front_table(trials, teachers, sweep=sweep, objectives=objectives, best=shipped))
    notes = cost_notes([row.trial for row in judged.rows], teachers)
    for finding in (*judged.findings, *notes):
        warn(finding)
    show_verdict(judged)


def show_verdict(judged: Judgement) -> None:
    """Print the verdict."""
    style = "bold green" if judged.verdict.ship else "bold yellow"
    stdout.print(Text(judged.verdict.text, style=style))


def _print_closest(rows: list[FrontRow], condition: Where | None, teacher: float | None) -> None:
    """Print a message: no student meets the condition; the closest one is named."""
    closest = condition.closest(rows, teacher) if condition is not None else None
    hint = "" if closest is None else f"; the closest is {closest[0].trial.name}: {closest[1]}"
    stdout.print(
        f"front: no student of the front meets the condition{hint}. Next: relax it, or search other students"
    )


def _print_unmeasured(rows: list[FrontRow], names: Collection[str | None]) -> None:
    """Print the costs among the figures `names` that are not measured, and the command for measuring them."""
    unknown = [
        figure.name
        for figure in COSTS
        if figure.name in names and figure.runtime and not any(figure.read(row.trial) for row in rows)
    ]
    if rows and unknown:
        stdout.print(
            f"front: {', '.join(unknown)} of its students is not known. raykd plan FILE --all measures the costs with "
            "8 bits and in PyTorch, and raykd sweep FILE --resume shows them; a model without an export has only "
            "costs in PyTorch"
        )


def _print_choice(chosen: list[Trial], best: str | None, records: SweepRecords) -> None:
    """Print the chosen students, best first; with `best`, the figure to choose by, only the first."""
    figures: Directions = {**records.objectives, **({best: "min"} if best is not None else {})}
    for trial in chosen[:1] if best is not None else chosen:
        stdout.print(
            f"{trial.name}: {format_scores(trial)}, {', '.join(costs_in_words(trial, cost_columns(figures)))}"
        )
        runs = records.folder.address.rsplit("/sweeps/", 1)[0] + "/runs/"
        stdout.print("  " + ", ".join(runs + run_id for run_id in trial.run_ids))
