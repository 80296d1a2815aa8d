"""`raykd compare`: test whether the settings of finished sweeps beat a baseline, over their seeds."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from raykd.cli.console import stderr, stdout
from raykd.cli.options import Small, Variants, file_arguments, store_argument, sweep_names
from raykd.cli.records import find_records
from raykd.metrics.significance import THRESHOLD
from raykd.report.compare import FEWEST, GOLD, Comparison, reasons_not_compared
from raykd.report.compare import compare as compared
from raykd.report.comparison_tables import compare_csv, compare_json, compare_markdown, compare_table

Format = Literal["table", "markdown", "csv", "json"]


def compare(
    sweeps: Annotated[
        list[str],
        typer.Argument(
            metavar="SWEEP...",
            help="Names of sweeps, or their files.",
            show_default=False,
            autocompletion=sweep_names,
        ),
    ],
    baseline: Annotated[
        str,
        typer.Option(
            help="Compare with: gold (the same student on gold labels alone), an objective (its best setting on dev), "
            "the number of a trial, or SWEEP:number."
        ),
    ] = GOLD,
    score: Annotated[
        Literal["test", "dev", "target"],
        typer.Option(help="Score to compare; target is the test score over languages without labels."),
    ] = "test",
    metric: Annotated[
        str,
        typer.Option(
            help="Compare a metric beside the task's score (slot_f1, uas).", show_default="the score itself"
        ),
    ] = "",
    by: Annotated[
        Literal["setting", "objective"],
        typer.Option(help="Compare all settings, or the best setting of each objective on dev."),
    ] = "setting",
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="Level of significance, for all comparisons together.")
    ] = 0.05,
    threshold: Annotated[
        float,
        typer.Option(min=0.0, max=0.5, help="Claim dominance if ε_min is below this; Dror et al. use 0.5."),
    ] = THRESHOLD,
    bonferroni: Annotated[
        bool, typer.Option("--bonferroni/--no-bonferroni", help="Divide alpha by the number of comparisons.")
    ] = True,
    languages: Annotated[
        bool, typer.Option("--languages", help="Show the mean of each language too.")
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="Format of the output.")] = "table",
    store: Annotated[str | None, typer.Option(help="Store of the sweeps, if you give names.")] = None,
    variant: Variants = None,
    small: Small = False,
) -> None:
    """Compare settings of finished sweeps over their seeds, by Almost Stochastic Dominance."""
    sweep_records = [find_records(sweep, store, variant, small) for sweep in sweeps]
    trials = {records.name: records.trials() for records in sweep_records}
    # The first trial of a sweep stands for all.
    first_trials = [trial for records in sweep_records for trial in records.load()[:1]]
    corpora = [trial.resolved.get("corpus") for trial in first_trials]
    if any(corpus != corpora[0] for corpus in corpora):
        stderr.print(
            "warning: the sweeps have different corpora, so their scores may be of different sentences"
        )
    comparisons = compared(
        trials, baseline=baseline, score=score, metric=metric, by=by, alpha=alpha,
        threshold=threshold, bonferroni=bonferroni,
    )  # fmt: skip
    skipped = reasons_not_compared(trials)
    if format_ == "table":
        stdout.print(compare_table(comparisons, baseline=baseline, languages=languages))
    else:
        stdout.print(_text(format_, comparisons, baseline, languages, skipped))
    # Standard output holds nothing but the data, for other programs.
    console = stdout if format_ == "table" else stderr
    for line in skipped:
        console.print(f"left out: {line}")
    console.print(
        f"compare: {_summary(comparisons)}. Next: {_next(comparisons, sweeps, list(trials), variant, small, store)}",
    )


def _text(
    format_: Format, comparisons: Sequence[Comparison], baseline: str, languages: bool, skipped: Sequence[str]
) -> str:
    if format_ == "markdown":
        return compare_markdown(comparisons, baseline=baseline, languages=languages)
    return compare_csv(comparisons) if format_ == "csv" else compare_json(comparisons, left_out=skipped)


def _summary(comparisons: Sequence[Comparison]) -> str:
    counts = Counter(comparison.verdict for comparison in comparisons)
    return ", ".join(f"{number} {verdict}" for verdict, number in counts.items())


def _next(
    comparisons: Sequence[Comparison],
    sweeps: Sequence[str],
    names: Sequence[str],
    variant: list[str] | None,
    small: bool,
    store: str | None,
) -> str:
    """The next command: more seeds for the first sweep if they would decide, otherwise its front."""
    arguments, name = file_arguments(sweeps[0], variant, small), names[0]
    of_first_sweep = [comparison for comparison in comparisons if comparison.sweep == name]
    needed = max(
        (comparison.needed_seeds for comparison in of_first_sweep if comparison.needed_seeds), default=None
    )
    if any(comparison.verdict == "too few seeds" for comparison in of_first_sweep):
        needed = max(FEWEST, needed or 0)
    if needed is None or Path(sweeps[0]).suffix not in (".yaml", ".yml"):
        return f"raykd front {arguments}{store_argument(store)}"
    store_option = f" --set {shlex.quote(f'store={store}')}" if store else ""
    more_seeds = f"--set search.runs_per_setting={needed} --set name={name}-{needed}-seeds"
    return f"raykd sweep {arguments} {more_seeds}{store_option}"
