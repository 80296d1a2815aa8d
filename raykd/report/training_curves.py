"""Training of students, epoch by epoch, as numbers to draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from raykd.figures.results import RunResult
from raykd.identity import PlainObject
from raykd.recipes.run import Run

MOST_POINTS = 60_000
"""Largest number of points of all curves of a page. With more, only every second epoch, or fewer, is shown."""


@dataclass(frozen=True)
class Step:
    """A part of a stage with the same layers in training; a stage without unfreezing is one step."""

    stage: int
    """Number of the stage, from 0."""
    layers: str
    """Layer groups that train: `head`, and in later steps the added ones, `+ encoder`; empty: all."""
    first: int
    """First epoch of the step; epochs count from 0 over all stages."""
    best: int
    """Epoch whose weights the next step starts from."""
    by_loss: bool
    """True if the best epoch is chosen by the loss on held-out text, False if by the dev score."""


@dataclass(frozen=True)
class Curve:
    """The epochs of one run."""

    name: str
    """Name that distinguishes the run within its trial: `seed 1`, `en`; empty for a single run."""
    stages: tuple[str, ...]
    """Objective of each stage."""
    steps: tuple[Step, ...]
    """Steps of all stages, in order."""
    dev: tuple[float, ...]
    """Dev score after each epoch."""
    loss: tuple[float, ...]
    """The stage's training loss per sentence."""
    held_out: tuple[float | None, ...]
    """The stage's loss per sentence on held-out text; None if the stage has none."""


Curves = Mapping[int, Sequence[Curve]]
"""Trial → curves of its runs."""


def training_curves(runs: Sequence[tuple[Run, RunResult]]) -> tuple[Curve, ...]:
    """Return the curves of a trial's runs, in their order; runs without epochs have none.

    Args:
        runs: Runs of the trial with their results.
    """
    return tuple(
        _curve(name, run, result.epochs)
        for name, (run, result) in zip(_names(runs), runs, strict=True)
        if result.epochs
    )


def epoch_stride(curves: Curves) -> int:
    """Return the stride over epochs for about `MOST_POINTS` points in all curves together."""
    # The first curve has two losses beside its score.
    points = sum(
        len(curve.dev) * (3 if place == 0 else 1)
        for trial_curves in curves.values()
        for place, curve in enumerate(trial_curves)
    )
    return max(1, math.ceil(points / MOST_POINTS))


def drawn_curves(curves: Sequence[Curve], *, stride: int = 1) -> PlainObject:
    """Return the first curve with stages, steps and losses, and the dev scores of the others, as JSON-able data.

    One epoch in `stride` is shown, and also those that are best or at either end of a step.

    Args:
        curves: Curves of a trial.
        stride: See `epoch_stride`.

    Returns:
        `stages`, `steps`, `loss` and `held_out` of the first run; `runs`: name, number of epochs and dev scores in
        percent of each run, and in `at` the shown epochs if some are left out.
    """
    first, shown_epochs = curves[0], [_shown_epochs(curve, stride) for curve in curves]
    return {
        "stages": first.stages,
        "steps": [asdict(step) for step in first.steps],
        "runs": [
            {
                "name": curve.name,
                "epochs": len(curve.dev),
                "dev": [_short(100 * curve.dev[epoch]) for epoch in epochs],
                **({"at": epochs} if len(epochs) < len(curve.dev) else {}),
            }
            for curve, epochs in zip(curves, shown_epochs, strict=True)
        ],
        "loss": [_short(first.loss[epoch]) for epoch in shown_epochs[0]],
        "held_out": [
            None if (loss := first.held_out[epoch]) is None else _short(loss) for epoch in shown_epochs[0]
        ],
    }


def _names(runs: Sequence[tuple[Run, RunResult]]) -> Iterable[str]:
    seeds = list(dict.fromkeys(run.training["seed"] for run, _ in runs))
    by_language = len(runs) > len(seeds)
    for run, result in runs:
        seed = [f"seed {seeds.index(run.training['seed'])}"] if len(seeds) > 1 else []
        yield " ".join([*seed, *(result.scores.by_language("dev") if by_language else ())])


def _curve(name: str, run: Run, epochs: Sequence[PlainObject]) -> Curve:
    steps = [list(group) for _, group in groupby(epochs, lambda epoch: (epoch["stage"], epoch["step"]))]
    return Curve(
        name=name,
        stages=run.stage_names,
        steps=tuple(_step(step, before) for step, before in zip(steps, [[], *steps], strict=False)),
        dev=tuple(epoch["dev"] for epoch in epochs),
        loss=tuple(epoch["loss"] for epoch in epochs),
        held_out=tuple(epoch.get("held_out_loss") for epoch in epochs),
    )


def _step(epochs: Sequence[PlainObject], before: Sequence[PlainObject]) -> Step:
    first, by_loss = epochs[0], "held_out_loss" in epochs[0]
    best = max(epochs, key=lambda epoch: -epoch["held_out_loss"] if by_loss else epoch["dev"])
    return Step(first["stage"], _layers(first, before), first["epoch"], best["epoch"], by_loss)


def _layers(epoch: PlainObject, before: Sequence[PlainObject]) -> str:
    if epoch["layers"] == "all":
        return ""
    trained_before = before[0]["layers"] if before and before[0]["stage"] == epoch["stage"] else []
    added = ", ".join(layer for layer in epoch["layers"] if layer not in trained_before)
    return f"+ {added}" if trained_before else added


def _shown_epochs(curve: Curve, stride: int) -> list[int]:
    starts = [step.first for step in curve.steps]
    ends = [start - 1 for start in [*starts[1:], len(curve.dev)]]
    return sorted({*range(0, len(curve.dev), stride), *starts, *ends, *(step.best for step in curve.steps)})


def _short(value: float) -> float | int:
    """Four digits: more would only make the page larger."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short
