"""The course of a run: what each epoch gave, and where its stages and their steps begin and are at their best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from raykd.figures.results import RunResult
from raykd.recipes.run import Run


@dataclass(frozen=True)
class Step:
    """A part of a stage in which the same layers train; a stage without unfreezing is one step."""

    stage: int
    """From 0."""
    layers: str
    """The layer groups that train: `head`, and in the steps after it what is added, `+ encoder`; empty: all."""
    first: int
    """Its first epoch; epochs count from 0 over all stages."""
    best: int
    """The epoch whose weights the next step starts from."""
    by_loss: bool
    """Whether it is the best by its loss on held-out text; else by the dev score."""


@dataclass(frozen=True)
class Curve:
    """The epochs of one run."""

    name: str
    """What distinguishes it from the other runs of its trial: `seed 1`, `en`; empty where it is the only one."""
    stages: tuple[str, ...]
    """What each stage trains on."""
    steps: tuple[Step, ...]
    dev: tuple[float, ...]
    """The dev score after each epoch."""
    loss: tuple[float, ...]
    """The stage's training loss per sentence."""
    held_out: tuple[float | None, ...]
    """The stage's loss per sentence on held-out text; None where the stage has none."""


def curves_of(runs: Sequence[tuple[Run, RunResult]]) -> tuple[Curve, ...]:
    """The curves of a trial's runs, in their order; runs that trained nothing have none."""
    return tuple(
        _curve(name, run, result.epochs)
        for name, (run, result) in zip(_names(runs), runs, strict=True)
        if result.epochs
    )


def _names(runs: Sequence[tuple[Run, RunResult]]) -> Iterable[str]:
    seeds = list(dict.fromkeys(run.training["seed"] for run, _ in runs))
    by_language = len(runs) > len(seeds)
    for run, result in runs:
        seed = [f"seed {seeds.index(run.training['seed'])}"] if len(seeds) > 1 else []
        yield " ".join([*seed, *(result.scores.by_language("dev") if by_language else ())])


def _curve(name: str, run: Run, epochs: Sequence[Mapping[str, Any]]) -> Curve:
    # Histories that were stored before epochs said their step have one step a stage.
    parts = [list(own) for _, own in groupby(epochs, lambda epoch: (epoch["stage"], epoch.get("step", 0)))]
    return Curve(
        name=name,
        stages=run.stage_names,
        steps=tuple(_step(own, before) for own, before in zip(parts, [[], *parts], strict=False)),
        dev=tuple(epoch["dev"] for epoch in epochs),
        loss=tuple(epoch["loss"] for epoch in epochs),
        held_out=tuple(epoch.get("held_out_loss") for epoch in epochs),
    )


def _step(own: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> Step:
    by_loss = "held_out_loss" in own[0]
    best = max(own, key=lambda epoch: -epoch["held_out_loss"] if by_loss else epoch["dev"])
    return Step(own[0]["stage"], _layers(own[0], before), own[0]["epoch"], best["epoch"], by_loss)


def _layers(epoch: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> str:
    layers = epoch.get("layers", "all")
    if layers == "all":
        return ""
    known = before[0]["layers"] if before and before[0]["stage"] == epoch["stage"] else []
    added = [layer for layer in layers if layer not in known]
    return f"+ {', '.join(added)}" if known else ", ".join(layers)
