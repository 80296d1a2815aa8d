"""Steps examined for waits, and the waits of each step of a training loop."""

from __future__ import annotations

from collections import Counter

from raykd.training.training_loop import Distiller

SHORT = {"epochs": 1, "anneal_horizon": 1}
OBJECTIVES = {
    "gold": {"kind": "gold"},
    "top_1": {"kind": "top_1"},
    "top_k": {"kind": "top_k", "k": 3},
    "top_wk": {"kind": "top_wk", "k": 3},
    "structural": {"kind": "structural"},
    "posterior": {"kind": "posterior"},
    "structural at 2": {"kind": "structural", "temperature": 2, "temperature_mode": "global"},
    "logits": {"kind": "logits"},
}


def waits_of_steps(loop: Distiller, waits: Counter[tuple[str, str]]) -> list[Counter[tuple[str, str]]]:
    """Train on the loop's device; return the waits of each step.

    Args:
        loop: before its first step.
        waits: counts the waits of this process, by place and reason, while it runs.
    """
    loop.model.to(loop.worker.device)
    steps = list[Counter[tuple[str, str]]]()
    step = loop._train_batch

    def counted(*arguments):
        before = waits.copy()
        sums = step(*arguments)
        steps.append(waits - before)
        return sums

    loop._train_batch = counted
    loop.train(lambda _: None)
    return steps
