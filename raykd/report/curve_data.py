"""How students were trained, as numbers that the page draws: few bytes for each, so that every student can be shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raykd.report.curve_labels import NARROW, WIDE, labels_of
from raykd.report.curves import Curve, Step

MOST = 60_000
"""Points of all curves of a page. Where there are more, every second or third epoch is left out, or more."""

Curves = Mapping[int, Sequence[Curve]]
"""Trial → the curves of its runs."""


def every_nth(curves: Curves) -> int:
    """Of how many epochs one is shown, so that all curves together have at most about `MOST` points."""
    # The first has two losses beside its score.
    points = sum(
        len(curve.dev) * (3 if place == 0 else 1)
        for own in curves.values()
        for place, curve in enumerate(own)
    )
    return max(1, math.ceil(points / MOST))


def curve_data(curves: Sequence[Curve], *, every: int = 1) -> dict[str, Any]:
    """The first of `curves` with its losses, and the dev scores of the others.

    `runs`: each run's name, epochs and dev scores in percent, the first one first; `loss`, `held_out`: of the first;
    `scales`: of each of its stages [first epoch, end, lowest loss, highest loss]; `best`: of each step [epoch, what
    it is the best of, whether by its loss]; `labels`: in a wide plot and in a narrow one, as `labels_of`. Epochs count
    from 0 and are missing where all are shown; one in `every` is shown, and those that are best or at a stage's ends.
    """
    first = curves[0]
    shown = _shown(first, every)
    data: dict[str, Any] = {
        "runs": [
            _run(curve, shown if place == 0 else _shown(curve, every)) for place, curve in enumerate(curves)
        ],
        "loss": [_short(first.loss[epoch]) for epoch in shown],
        "scales": [[start, end, _short(low), _short(high)] for start, end, low, high in _scales(first)],
        "best": [[step.best, _place(first, step), step.by_loss] for step in first.steps],
    }
    if any(loss is not None for loss in first.held_out):
        data["held_out"] = [
            None if (loss := first.held_out[epoch]) is None else _short(loss) for epoch in shown
        ]
    if wide := labels_of(first, width=WIDE):
        data["labels"] = [wide, labels_of(first, width=NARROW)]
    return data


def _run(curve: Curve, shown: Sequence[int]) -> dict[str, Any]:
    whole = len(shown) == len(curve.dev)
    return {
        **({"name": curve.name} if curve.name else {}),
        "epochs": len(curve.dev),
        **({} if whole else {"at": list(shown)}),
        "dev": [_short(100 * curve.dev[epoch]) for epoch in shown],
    }


def _shown(curve: Curve, every: int) -> list[int]:
    ends = [place for start, end, _, _ in _scales(curve) for place in (start, end - 1)]
    return sorted({*range(0, len(curve.dev), every), *ends, *(step.best for step in curve.steps)})


def _scales(curve: Curve) -> Iterable[tuple[int, int, float, float]]:
    """Of each stage that has epochs, which they are and its lowest and highest loss: losses of different stages are of
    different sizes."""
    firsts = sorted({step.stage: step.first for step in reversed(curve.steps)}.values())
    for first, end in zip(firsts, [*firsts[1:], len(curve.dev)], strict=True):
        losses = [loss for loss in (*curve.loss[first:end], *curve.held_out[first:end]) if loss is not None]
        yield first, end, min(losses), max(losses)


def _place(curve: Curve, step: Step) -> str:
    """Of which stage and step, in words."""
    stage = f" of stage {step.stage + 1} {curve.stages[step.stage]}" if len(curve.stages) > 1 else ""
    return f"{stage}, {step.layers}" if step.layers else stage


def _short(value: float) -> float | int:
    """Four digits: more would only make the page larger."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short
