"""The trials that did not come to their end: after which epoch, with which score, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any

from raykd.counted import counted
from raykd.figures.trial import Trial, score_label_of
from raykd.report.form import NONE, percent

Epochs = Mapping[int, Mapping[str, Sequence[Mapping[str, Any]]]]
"""Trial → run → the metrics of its epochs."""
WORDS = {"PRUNED": "stopped early", "FAILED": "failed"}
MOST_OPEN = 12
"""A longer table is folded."""


@dataclass(frozen=True)
class Stopped:
    """A trial that was stopped early, or failed."""

    trial: Trial
    why: str
    epoch: int | None = None
    """The last one that ended, counted from 1; None where that is not known."""
    dev: float | None = None
    """The score after it, which is not that of a finished student; the mean over its runs."""


def stopped_of(trials: Iterable[Trial], epochs: Epochs) -> list[Stopped]:
    """The trials of the search that were stopped early or failed, by their numbers."""
    ended = [trial for trial in trials if trial.state in WORDS]
    return [_stopped(trial, epochs.get(trial.number, {})) for trial in sorted(ended, key=lambda t: t.number)]


def _stopped(trial: Trial, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Stopped:
    last = [own[-1] for own in runs.values() if own]
    # What `cluster/jobs.py` writes before the reason of the rule: "stopped after epoch 3: …".
    reason = trial.message.partition(": ")[2] if trial.state == "PRUNED" else trial.message
    return Stopped(
        trial,
        reason or trial.message,
        max((epoch["epoch"] + 1 for epoch in last), default=None),
        fmean(epoch["dev"] for epoch in last) if last else None,
    )


def stopped_table(stopped: Sequence[Stopped]) -> str:
    """As HTML; empty where there are none."""
    if not stopped:
        return ""
    label = escape(score_label_of([each.trial for each in stopped]))
    # Why comes before what can be looked up: on a phone the end is beyond the edge.
    head = ("#", "after epoch", f"dev {label} then", "why", "learnt by", "student")
    css = ("", "", "", "text why", "text", "text")
    headings = "".join(f"<th class='{c}'>{h}</th>" for h, c in zip(head, css, strict=True))
    rows = "".join(f"<tr>{''.join(map(_cell, css, _cells(each)))}</tr>" for each in stopped)
    counts = [sum(each.trial.state == state for each in stopped) for state in WORDS]
    parts = zip(WORDS.values(), counts, strict=True)
    words = ", ".join(f"{counted(number, 'trial')} {word}" for word, number in parts if number)
    return (
        f"<details class='file stopped'{' open' * (len(stopped) <= MOST_OPEN)}><summary>{words}</summary>"
        "<div class='wide' role='region' aria-label='Table of trials that did not end' tabindex='0'><table><thead><tr>"
        f"{headings}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _cells(each: Stopped) -> tuple[str, ...]:
    trial = each.trial
    epoch = NONE if each.epoch is None else str(each.epoch)
    why = each.why if trial.state == "PRUNED" else f"{WORDS[trial.state]}: {each.why}"
    return f"{trial.number:02d}", epoch, percent(each.dev), why, trial.method, trial.shape


def _cell(css: str, text: str) -> str:
    return f"<td class='{css}'>{escape(text)}</td>"
