"""Synthetic runs with epochs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from raykd.figures.results import RunResult, Scores
from raykd.recipes.run import Run
from tests.scores import score

GROUPS = ("head", "projection", "encoder", "embeddings")
MIX = {"kind": "mix", "parts": [{"objective": {"kind": kind}} for kind in ("representation", "logits")]}
SIZES = {"representation": (0.9, 0.3), "logits": (60.0, 4.0), "gold": (3.0, 0.4)}
"""Objective → its loss before and after training."""


def run_of(*kinds: str | dict[str, Any], seed: int = 0) -> Run:
    """A run with a stage for each of `kinds`: the kind of its objective, or the objective."""
    objectives = [{"kind": kind} if isinstance(kind, str) else kind for kind in kinds]
    return Run(
        role="student", task="ner", corpus_id="corpus-0", vocabulary_id="vocabulary-0", model={},
        stages=tuple({"objective": objective} for objective in objectives), training={"seed": seed},
    )  # fmt: skip


def epoch(number: int, stage: int, dev: float, loss: float, **more: Any) -> dict[str, Any]:
    """One epoch of a history; `more`: step, layers, held_out_loss."""
    return {"epoch": number, "stage": stage, "dev": dev, "loss": loss, "losses": {}, **more}


def trained(
    run: Run, *, epochs: int, steps: int = 1, languages: Sequence[str] = ("en",), best: float = 0.86
) -> tuple[Run, RunResult]:
    """Return a trained run: `steps` steps of `epochs` epochs in all stages.

    All stages but the last are selected by loss.
    """
    history = list(_history(run, epochs, steps, best))
    scores = Scores({"dev": {"source": score(best, languages=dict.fromkeys(languages, best))}})
    return run, RunResult(run.id, scores, len(history) - 1, tuple(history), 1.0, 1, 1, 1)


def _history(run: Run, epochs: int, steps: int, best: float) -> Iterator[dict[str, Any]]:
    draw, number, whole = random.Random(run.training["seed"]), 0, len(run.stages) * steps * epochs
    for stage, kind in enumerate(run.stage_names):
        high, low = SIZES.get(kind, (5.0, 1.0))
        for step in range(steps):
            for place in range(epochs):
                progress = (step + 1 - math.exp(-4 * place / epochs)) / steps
                loss = low + (high - low) * (1 - progress) ** 2
                reached = 1 - math.exp(-5 * (number + 1) / whole)
                held_out = {"held_out_loss": loss * 1.05 + draw.gauss(0, 0.01 * loss)}
                yield epoch(
                    number, stage, best * reached + draw.gauss(0, 0.004), loss,
                    step=step, layers="all" if steps == 1 else list(GROUPS[: step + 1]),
                    **(held_out if stage + 1 < len(run.stages) else {}),
                )  # fmt: skip
                number += 1
