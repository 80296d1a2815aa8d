"""Comparisons for the terminal, and as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import comb
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from raykd.figures.table import DEV
from raykd.metrics.significance import MOST_SEEDS, POWER
from raykd.pluralise import pluralise
from raykd.report.compare import HINT, Comparison, Side, Verdict
from raykd.report.markdown import markdown_table
from raykd.report.readable_numbers import NONE, gain, percent, spread

STYLES = {"better": "green", "worse": "red"}
"""Decided verdict → colour."""
TEXT = ("setting", "verdict")
"""Columns aligned left."""
SIDE_COLUMNS = ("number", "name", "seeds", "mean", "sd", "target")
"""Columns of the CSV for each side."""
PAIR_COLUMNS = (
    "difference",
    "alpha",
    "threshold",
    "epsilon_min",
    "epsilon_min_reverse",
    "verdict",
    "seeds_needed",
)
"""Columns of the CSV for the comparison of both sides."""
Columns = dict[str, Callable[[Comparison], str]]
"""Headings → functions that write the cells below them."""


def compare_table(comparisons: Sequence[Comparison], *, baseline: str, languages: bool = False) -> Group:
    """Return the tables for the terminal: the comparisons, and an explanation of the verdicts.

    Args:
        comparisons: At least one comparison.
        baseline: The baseline as the user named it.
        languages: Add a table of each language's means.
    """
    tables = [_rich(columns, comparisons) for columns in _tables(comparisons, baseline, languages)]
    title = Text(headline(comparisons, baseline=baseline), style="bold")
    return Group(title, *tables, *(Text(line, style="dim") for line in legend(comparisons)))


def compare_markdown(comparisons: Sequence[Comparison], *, baseline: str, languages: bool = False) -> str:
    """Return the tables of `compare_table` as Markdown.

    Args:
        comparisons: At least one comparison.
        baseline: The baseline as the user named it.
        languages: Add a table of each language's means.
    """
    blocks = [f"**{headline(comparisons, baseline=baseline)}**"]
    for columns in _tables(comparisons, baseline, languages):
        rows = ([cell(comparison) for cell in columns.values()] for comparison in comparisons)
        left_aligned = [place for place, heading in enumerate(columns) if heading in TEXT]
        blocks.append("\n".join(markdown_table(list(columns), rows, left_aligned=left_aligned)))
    return "\n\n".join([*blocks, "\n".join(f"* {line}" for line in legend(comparisons))]).rstrip()


def compare_csv(comparisons: Sequence[Comparison]) -> str:
    """Return one CSV row per comparison. Scores are fractions; the means of languages come last.

    Args:
        comparisons: The comparisons.
    """
    rows = [_flat(comparison) for comparison in comparisons]
    sink = io.StringIO()
    writer = csv.DictWriter(
        sink, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue().rstrip()


def compare_json(comparisons: Sequence[Comparison], *, left_out: Sequence[str] = ()) -> str:
    """Return the comparisons as JSON, with the score of each seed. Scores are fractions.

    Args:
        comparisons: The comparisons.
        left_out: Lines on trials that were not compared.
    """
    plain = {"comparisons": [_plain(comparison) for comparison in comparisons], "left_out": list(left_out)}
    return json.dumps(plain, indent=1, ensure_ascii=False)


def headline(comparisons: Sequence[Comparison], *, baseline: str) -> str:
    """Return one sentence on the sweeps, the score, the baseline and the test."""
    first = comparisons[0]
    sweeps = ", ".join(dict.fromkeys(comparison.sweep for comparison in comparisons))
    tests = sum(comparison.tested for comparison in comparisons)
    return (
        f"{sweeps}: {_score_label(first.setting)} against {_baseline_name(baseline)}. Almost Stochastic Dominance in "
        f"{pluralise(tests, 'comparison')} at α = {first.alpha:.2g} each, claimed where ε_min < {first.threshold:g}"
    )


def legend(comparisons: Iterable[Comparison]) -> list[str]:
    """Return explanations of those verdicts that need one."""
    comparisons = list(comparisons)
    verdicts = {comparison.verdict for comparison in comparisons}
    meanings: dict[Verdict, str] = {
        "cannot tell": "cannot tell, ~n: these seeds do not decide; about n a side would be needed, to decide in "
        f"{100 * POWER:.0f} % of repetitions if these means and spreads are the true ones and scores are "
        f"normally distributed (>{MOST_SEEDS}: more than {MOST_SEEDS})",
        "too few seeds": f"too few seeds: nothing can be concluded from fewer than two; {HINT}",
        "no baseline": "no baseline: a sweep with baseline: gold trains it for students of the front and for each "
        "objective's best setting",
    }
    seeds = (
        ["seeds are the students': teachers and corpus are the same for all"] if verdicts & {*STYLES} else []
    )
    explained = [meanings[verdict] for verdict in meanings if verdict in verdicts]
    return [*seeds, *_warnings_of_few_seeds(comparisons), *explained]


def _warnings_of_few_seeds(comparisons: Iterable[Comparison]) -> list[str]:
    """A warning if chance alone would separate so few seeds more often than α; otherwise empty."""
    for comparison in comparisons:
        if comparison.verdict in STYLES and comparison.baseline is not None:
            setting_seeds, baseline_seeds = len(comparison.setting.by_seed), len(comparison.baseline.by_seed)
            orders = comb(setting_seeds + baseline_seeds, setting_seeds)
            # Two of the orders separate the sides completely: either one may be the higher.
            if 2 / orders > comparison.alpha:
                return [
                    f"few seeds: of two equal settings, the {setting_seeds} seeds of one all lie above or all below "
                    f"the {baseline_seeds} of the other by chance twice in {orders} times; that is more than "
                    f"{comparison.alpha:.2g}, and the bound does not account for it"
                ]
    return []


def _tables(comparisons: Sequence[Comparison], baseline: str, languages: bool) -> list[Columns]:
    """The table of the comparisons and, with `languages`, the table of means by language beside the baseline's."""
    columns: Columns = {
        "#": partial(_number, among=comparisons),
        "setting": _setting,
        "seeds": _seeds,
        _score_label(comparisons[0].setting): lambda comparison: _mean(comparison.setting),
        _baseline_name(baseline): lambda comparison: _mean(comparison.baseline),
        "diff": lambda comparison: gain(comparison.difference),
        **({"target": _target} if _shows_targets(comparisons) else {}),
        "ε_min": lambda comparison: NONE if comparison.epsilon is None else f"{comparison.epsilon:.2f}",
        "verdict": _verdict,
    }
    if not languages:
        return [columns]
    names = dict.fromkeys(name for comparison in comparisons for name in comparison.setting.by_language)
    targets = comparisons[0].setting.trial.scores.targets
    by_language = {
        f"{name} (target)" if name in targets else name: partial(_in_language, language=name)
        for name in names
    }
    return [columns, {"#": columns["#"], "setting": _setting, **by_language}]


def _in_language(comparison: Comparison, language: str) -> str:
    """Mean in one language, with the gain over the baseline's."""
    mean = comparison.setting.by_language.get(language)
    baseline_mean = comparison.baseline and comparison.baseline.by_language.get(language)
    return percent(mean) + (
        f" {gain(mean - baseline_mean)}" if mean is not None and baseline_mean is not None else ""
    )


def _shows_targets(comparisons: Iterable[Comparison]) -> bool:
    """True if target means are shown beside source means."""
    return any(
        comparison.setting.trial.scores.targets and comparison.setting.compared_score == "test"
        for comparison in comparisons
    )


def _target(comparison: Comparison) -> str:
    """Mean over target languages, with the gain over the baseline's."""
    side = _targets(comparison.setting)
    baseline_mean = comparison.baseline and _targets(comparison.baseline).mean
    gained = gain(side.mean - baseline_mean) if side.mean is not None and baseline_mean is not None else ""
    return f"{_mean(side)} {gained}".rstrip()


def _number(comparison: Comparison, among: Sequence[Comparison]) -> str:
    """The trial's number, with its sweep if there are several."""
    number = f"{comparison.setting.trial.number:02d}"
    return number if len({comparison.sweep for comparison in among}) == 1 else f"{comparison.sweep}:{number}"


def _setting(comparison: Comparison) -> str:
    trial = comparison.setting.trial
    return f"{trial.method} · {trial.shape}".strip(" ·")


def _seeds(comparison: Comparison) -> str:
    sides = [side for side in (comparison.setting, comparison.baseline) if side is not None]
    return "/".join(str(n) for n in dict.fromkeys(len(side.by_seed) for side in sides))


def _mean(side: Side | None) -> str:
    return NONE if side is None else percent(side.mean) + spread(side.sd)


def _verdict(comparison: Comparison) -> str:
    if comparison.verdict != "cannot tell":
        return comparison.verdict
    return f"cannot tell, {f'>{MOST_SEEDS}' if comparison.needed_seeds is None else f'~{comparison.needed_seeds}'}"


def _targets(side: Side) -> Side:
    """The same setting, compared by its test score on target languages."""
    return replace(side, compared_score="target")


def _score_label(side: Side) -> str:
    if side.metric:
        return side.figure.heading
    return f"{'target test' if side.compared_score == 'target' else side.compared_score} {side.trial.score_label}"


def _baseline_name(baseline: str) -> str:
    return {"gold": "gold only"}.get(baseline, f"#{int(baseline):02d}" if baseline.isdecimal() else baseline)


def _rich(columns: Columns, comparisons: Sequence[Comparison]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # On 80 columns only these two columns wrap, at a space.
    widths = {"setting": 16, "verdict": max(len(comparison.verdict) for comparison in comparisons) + 1}
    for heading in columns:
        text_column = heading in TEXT
        table.add_column(
            heading,
            justify="left" if text_column else "right",
            no_wrap=not text_column,
            min_width=widths.get(heading),
        )
    for comparison in comparisons:
        cells = [cell(comparison) for cell in columns.values()]
        style = STYLES.get(comparison.verdict, "")
        table.add_row(*(Text(cell, style=style if cell == comparison.verdict else "") for cell in cells))
    return table


def _plain(comparison: Comparison) -> dict[str, Any]:
    """The JSON-able form."""
    return {
        "sweep": comparison.sweep,
        "score": comparison.setting.name,
        "setting": _plain_side(comparison.setting),
        "baseline": None if comparison.baseline is None else _plain_side(comparison.baseline),
        "difference": comparison.difference,
        "alpha": comparison.alpha,
        "threshold": comparison.threshold,
        "epsilon_min": comparison.epsilon,
        "epsilon_min_reverse": comparison.epsilon_reverse,
        "verdict": comparison.verdict,
        "sentence": comparison.sentence,
        "seeds_needed": comparison.needed_seeds,
    }


def _plain_side(side: Side) -> dict[str, Any]:
    trial, target = side.trial, _targets(side)
    return {
        "number": trial.number, "name": trial.name, "role": trial.role, "mean": side.mean, "sd": side.sd,
        "by_seed": list(side.by_seed), "by_language": dict(side.by_language),
        DEV.full_name(trial.score_name): DEV.read(trial), "target": target.mean,
        "target_by_seed": list(target.by_seed),
    }  # fmt: skip


def _flat(comparison: Comparison) -> dict[str, Any]:
    """The row of the CSV: column → value."""
    plain = _plain(comparison)
    sides = {"": plain["setting"], "baseline_": plain["baseline"] or {"by_language": {}}}
    for side in sides.values():
        side["seeds"] = len(side["by_seed"]) if "by_seed" in side else None
    return {
        **{name: plain[name] for name in ("sweep", "score")},
        **{prefix + name: side.get(name) for prefix, side in sides.items() for name in SIDE_COLUMNS},
        **{name: plain[name] for name in PAIR_COLUMNS},
        **{
            prefix + name: mean
            for prefix, side in sides.items()
            for name, mean in side["by_language"].items()
        },
    }
