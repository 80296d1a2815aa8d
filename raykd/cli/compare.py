"""`raykd compare`: whether the settings of finished sweeps beat a baseline, over their seeds."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from raykd.cli.console import stderr, stdout
from raykd.cli.options import Small, Variants, again, at, sweep_names
from raykd.cli.records import records_of
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
            help="Sweeps' names, or their files.",
            show_default=False,
            autocompletion=sweep_names,
        ),
    ],
    baseline: Annotated[
        str,
        typer.Option(
            help="gold (the same student on gold labels alone), an objective (its best on dev), a trial's number, "
            "or SWEEP:number."
        ),
    ] = GOLD,
    score: Annotated[
        Literal["test", "dev", "target"],
        typer.Option(help="Which score is compared; target: on test, over languages without labels."),
    ] = "test",
    metric: Annotated[
        str,
        typer.Option(
            help="A metric beside the task's score (slot_f1, uas).", show_default="the score itself"
        ),
    ] = "",
    by: Annotated[
        Literal["setting", "objective"],
        typer.Option(help="Every setting, or each objective's best on dev."),
    ] = "setting",
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="Nominal level of all comparisons together.")
    ] = 0.05,
    threshold: Annotated[
        float,
        typer.Option(min=0.0, max=0.5, help="ε_min below which dominance is claimed; Dror et al. take 0.5."),
    ] = THRESHOLD,
    bonferroni: Annotated[
        bool, typer.Option("--bonferroni/--no-bonferroni", help="Share alpha out among comparisons, or not.")
    ] = True,
    languages: Annotated[bool, typer.Option("--languages", help="Show each language's mean.")] = False,
    form: Annotated[Format, typer.Option("--format", help="How to print.")] = "table",
    store: Annotated[str | None, typer.Option(help="Store of the sweeps, if names are given.")] = None,
    variant: Variants = None,
    small: Small = False,
) -> None:
    """Compare settings of finished sweeps over their seeds, by Almost Stochastic Dominance."""
    records = [records_of(sweep, store, variant, small) for sweep in sweeps]
    trials = {each.name: each.trials() for each in records}
    corpora = [record.resolved.get("corpus") for each in records for record in each.load()[:1]]
    if any(corpus != corpora[0] for corpus in corpora):
        stderr.print("warning: the sweeps differ in their corpus: their scores may be of different sentences")
    comparisons = compared(
        trials, baseline=baseline, score=score, metric=metric, by=by, alpha=alpha,
        threshold=threshold, bonferroni=bonferroni,
    )  # fmt: skip
    skipped = reasons_not_compared(trials)
    if form == "table":
        stdout.print(compare_table(comparisons, baseline=baseline, languages=languages))
    else:
        stdout.print(_text(form, comparisons, baseline, languages, skipped))
    # Data for other programs stands alone on standard output.
    console = stdout if form == "table" else stderr
    for line in skipped:
        console.print(f"left out: {line}")
    console.print(
        f"compare: {_summary(comparisons)}. Next: {_next(comparisons, sweeps, list(trials), variant, small, store)}",
    )


def _text(
    form: Format, comparisons: Sequence[Comparison], baseline: str, languages: bool, skipped: Sequence[str]
) -> str:
    if form == "markdown":
        return compare_markdown(comparisons, baseline=baseline, languages=languages)
    return compare_csv(comparisons) if form == "csv" else compare_json(comparisons, left_out=skipped)


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
    """More seeds for the first sweep where they would decide (runs in the store are found), otherwise its front."""
    one, name = again(sweeps[0], variant, small), names[0]
    own = [each for each in comparisons if each.sweep == name]
    needed = max((each.needed for each in own if each.needed), default=None)
    if any(each.verdict == "too few seeds" for each in own):
        needed = max(FEWEST, needed or 0)
    if needed is None or Path(sweeps[0]).suffix not in (".yaml", ".yml"):
        return f"raykd front {one}{at(store)}"
    elsewhere = f" --set {shlex.quote(f'store={store}')}" if store else ""
    return f"raykd sweep {one} --set search.runs_per_setting={needed} --set name={name}-{needed}-seeds{elsewhere}"
