"""Comparisons for the terminal, and as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import comb
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from raykd.figures.table import DEV
from raykd.metrics.significance import MOST_SEEDS, POWER
from raykd.report.compare import HINT, Comparison, Side, Verdict
from raykd.report.readable_numbers import NONE, gain, percent, spread

STYLES = {"better": "green", "worse": "red"}
Row = Sequence[str]


def compare_table(comparisons: Sequence[Comparison], *, baseline: str, languages: bool = False) -> Group:
    """Tables for the terminal: the comparisons, with `languages` each language's means, and what verdicts mean."""
    tables = [_rich(_headings(comparisons, baseline), _rows(comparisons), comparisons)]
    if languages:
        tables.append(_rich(*_by_language(comparisons), comparisons))
    title = Text(headline(comparisons, baseline=baseline), style="bold")
    return Group(title, *tables, *(Text(line, style="dim") for line in legend(comparisons)))


def compare_markdown(comparisons: Sequence[Comparison], *, baseline: str, languages: bool = False) -> str:
    """The same as Markdown."""
    blocks = [
        f"**{headline(comparisons, baseline=baseline)}**",
        _markdown(_headings(comparisons, baseline), _rows(comparisons)),
    ]
    if languages:
        blocks.append(_markdown(*_by_language(comparisons)))
    return "\n\n".join([*blocks, "\n".join(f"* {line}" for line in legend(comparisons))]).rstrip()


def compare_csv(comparisons: Sequence[Comparison]) -> str:
    """One row for each comparison, scores as fractions; each language's means are at the end."""
    rows = [_flat(comparison) for comparison in comparisons]
    sink = io.StringIO()
    writer = csv.DictWriter(
        sink, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue().rstrip()


def compare_json(comparisons: Sequence[Comparison], *, left_out: Sequence[str] = ()) -> str:
    """All that is known, each seed's score included; scores are fractions."""
    plain = {"comparisons": [_plain(each) for each in comparisons], "left_out": list(left_out)}
    return json.dumps(plain, indent=1, ensure_ascii=False)


def headline(comparisons: Sequence[Comparison], *, baseline: str) -> str:
    """What was compared, and how."""
    first = comparisons[0]
    sweeps = ", ".join(dict.fromkeys(comparison.sweep for comparison in comparisons))
    tests = sum(comparison.tested for comparison in comparisons)
    many = f"{tests} comparison{'s' * (tests != 1)}"
    return (
        f"{sweeps}: {_score_label(first.setting)} against {_baseline_name(baseline)}. Almost Stochastic Dominance in "
        f"{many} at α = {first.alpha:.2g} each, claimed where ε_min < {first.threshold:g}"
    )


def legend(comparisons: Iterable[Comparison]) -> list[str]:
    """What the verdicts of these comparisons mean, where they need an explanation."""
    comparisons = list(comparisons)
    met = {comparison.verdict for comparison in comparisons}
    meanings: dict[Verdict, str] = {
        "cannot tell": "cannot tell, ~n: these seeds do not decide; about n a side would be needed, to decide in "
        f"{100 * POWER:.0f} % of repetitions if these means and spreads are the true ones and scores are normal "
        f"(>{MOST_SEEDS}: more than {MOST_SEEDS})",
        "too few seeds": f"too few seeds: nothing can be concluded from fewer than two; {HINT}",
        "no baseline": "no baseline: a sweep with baseline: gold trains it for students of the front and for each "
        "objective's best setting",
    }
    seeds = ["seeds are the students': teachers and corpus are the same for all"] if met & {*STYLES} else []
    return [*seeds, *_by_chance(comparisons), *(meanings[verdict] for verdict in meanings if verdict in met)]


def _by_chance(comparisons: Iterable[Comparison]) -> list[str]:
    """A warning where the seeds are so few that chance alone would separate them more often than α."""
    for each in comparisons:
        if each.verdict in STYLES and each.baseline is not None:
            one, other = len(each.setting.by_seed), len(each.baseline.by_seed)
            times = comb(one + other, one)
            # Either of the two may be the higher one.
            if times * each.alpha < 2:
                return [
                    f"few seeds: of equal settings one's {one} all lie above the other's {other}, or below, twice in "
                    f"{times} times by chance: more than {each.alpha:.2g}, and the bound cannot see it"
                ]
    return []


def _headings(comparisons: Sequence[Comparison], baseline: str) -> Row:
    score = _score_label(comparisons[0].setting)
    targets = ["target"] if _shows_targets(comparisons) else []
    return ["#", "setting", "seeds", score, _baseline_name(baseline), "diff", *targets, "ε_min", "verdict"]


def _rows(comparisons: Sequence[Comparison]) -> list[Row]:
    shown = _shows_targets(comparisons)
    return [
        [
            _number(comparison, comparisons),
            _setting(comparison),
            _seeds(comparison),
            _mean(comparison.setting),
            _mean(comparison.baseline),
            gain(comparison.difference),
            *([_target(comparison)] if shown else []),
            NONE if comparison.epsilon is None else f"{comparison.epsilon:.2f}",
            _verdict(comparison),
        ]
        for comparison in comparisons
    ]


def _by_language(comparisons: Sequence[Comparison]) -> tuple[Row, Sequence[Row]]:
    """Headings and rows of each language's mean, with what it is above the baseline's."""
    languages = list(dict.fromkeys(name for each in comparisons for name in each.setting.by_language))
    targets = comparisons[0].setting.trial.scores.targets
    heads = [f"{name} (target)" if name in targets else name for name in languages]
    rows = [
        [_number(each, comparisons), _setting(each), *(_in_language(each, name) for name in languages)]
        for each in comparisons
    ]
    return ["#", "setting", *heads], rows


def _in_language(comparison: Comparison, language: str) -> str:
    own = comparison.setting.by_language.get(language)
    other = comparison.baseline and comparison.baseline.by_language.get(language)
    return percent(own) + (f" {gain(own - other)}" if own is not None and other is not None else "")


def _shows_targets(comparisons: Iterable[Comparison]) -> bool:
    """Whether target means are shown beside source means."""
    return any(each.setting.trial.scores.targets and each.setting.which == "test" for each in comparisons)


def _target(comparison: Comparison) -> str:
    """Mean over target languages, with what it is above the baseline's."""
    own, other = _targets(comparison.setting), comparison.baseline and _targets(comparison.baseline).mean
    gained = gain(own.mean - other) if own.mean is not None and other is not None else ""
    return f"{_mean(own)} {gained}".rstrip()


def _number(comparison: Comparison, among: Sequence[Comparison]) -> str:
    """The trial's number, with its sweep where there are several."""
    number = f"{comparison.setting.trial.number:02d}"
    return number if len({each.sweep for each in among}) == 1 else f"{comparison.sweep}:{number}"


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
    return f"cannot tell, {f'>{MOST_SEEDS}' if comparison.needed is None else f'~{comparison.needed}'}"


def _targets(side: Side) -> Side:
    return replace(side, which="target")


def _score_label(side: Side) -> str:
    if side.metric:
        return side.figure.heading
    return f"{'target test' if side.which == 'target' else side.which} {side.trial.score_label}"


def _baseline_name(baseline: str) -> str:
    return {"gold": "gold only"}.get(baseline, f"#{int(baseline):02d}" if baseline.isdecimal() else baseline)


def _rich(headings: Row, rows: Sequence[Row], comparisons: Sequence[Comparison]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # On 80 columns these two are broken, at a blank.
    widths = {"setting": 16, "verdict": max(len(each.verdict) for each in comparisons) + 1}
    for heading in headings:
        text = _is_text(heading)
        table.add_column(
            heading, justify="left" if text else "right", no_wrap=not text, min_width=widths.get(heading)
        )
    for row, comparison in zip(rows, comparisons, strict=True):
        style = STYLES.get(comparison.verdict, "")
        table.add_row(*(Text(cell, style=style if cell == comparison.verdict else "") for cell in row))
    return table


def _markdown(headings: Row, rows: Iterable[Row]) -> str:
    rules = ["---" if _is_text(heading) else "---:" for heading in headings]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (headings, rules, *rows)
    )


def _is_text(heading: str) -> bool:
    return heading in ("setting", "verdict")


def _plain(comparison: Comparison) -> dict[str, Any]:
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
        "seeds_needed": comparison.needed,
    }


def _plain_side(side: Side) -> dict[str, Any]:
    trial, target = side.trial, _targets(side)
    return {
        "number": trial.number, "name": trial.name, "role": trial.role, "mean": side.mean, "sd": side.sd,
        "by_seed": list(side.by_seed), "by_language": dict(side.by_language),
        DEV.called(trial.score_name): DEV.read(trial), "target": target.mean,
        "target_by_seed": list(target.by_seed),
    }  # fmt: skip


def _flat(comparison: Comparison) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    sides: tuple[tuple[str, Side | None], ...] = (
        ("", comparison.setting), ("baseline_", comparison.baseline)
    )  # fmt: skip
    read: dict[str, Callable[[Side], Any]] = {
        "number": lambda side: side.trial.number, "name": lambda side: side.trial.name,
        "seeds": lambda side: len(side.by_seed), "mean": lambda side: side.mean, "sd": lambda side: side.sd,
        "target": lambda side: _targets(side).mean,
    }  # fmt: skip
    for prefix, side in sides:
        figures |= {prefix + name: None if side is None else value(side) for name, value in read.items()}
    plain = _plain(comparison)
    of_both = (
        "difference",
        "alpha",
        "threshold",
        "epsilon_min",
        "epsilon_min_reverse",
        "verdict",
        "seeds_needed",
    )
    languages = {
        prefix + name: mean for prefix, side in sides if side for name, mean in side.by_language.items()
    }
    return {
        "sweep": comparison.sweep, "score": comparison.setting.name, **figures,
        **{name: plain[name] for name in of_both}, **languages,
    }  # fmt: skip


__all__ = ["compare_csv", "compare_json", "compare_markdown", "compare_table", "headline", "legend"]
