"""Forecast of the efficiency of several workers, for each student of a sweep, before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

from raykd.cluster.data_parallel import (
    Gradients,
    Network,
    Step,
    all_reduce_s,
    strong_efficiency,
    strong_tokens,
)
from raykd.figures.table import TRAINING_SPEED
from raykd.precompute.latency import BATCH, PIECES
from raykd.precompute.model_cost import shape_key
from raykd.recipes.run import Run
from raykd.sweep.forecast import STEP_S
from raykd.sweep.sweep import Sweep
from raykd.training.model_folder import build_model
from raykd.training.stages import select_trainable

UPDATE_S = 4.5e-9
"""Seconds of Adam for one parameter in each step, for any batch and on every worker (benchmarks/ddp_simulation.py)."""
EFFICIENT = 0.85
"""Below this efficiency workers are better used for other runs."""


@dataclass(frozen=True)
class WorkerEfficiency:
    """The forecast of one student's training steps by several workers."""

    run: Run
    workers: int
    tokens: int
    """Tokens of a batch, over all workers."""
    efficiency: float
    efficient_tokens: float
    """The smallest batch with an efficiency of `EFFICIENT`, in tokens."""


def worker_efficiencies(sweep: Sweep, network: Network) -> list[WorkerEfficiency]:
    """Return the efficiency of each student and batch trained by several workers, the lowest first.

    Speeds are those of one processor thread, so students with GPUs are left out.

    Args:
        sweep: The sweep, with measured costs.
        network: The connection between two workers.
    """
    resources = sweep.file.resources.for_role("students")
    if resources.workers == 1 or resources.gpus_per_worker:
        return []
    trees = [tree for alternatives in sweep.settings.covering.values() for tree in alternatives]
    runs = [run for tree in trees for run in sweep.settings.of(tree).seeds[0]]
    shapes: dict[str, tuple[Run, Step, float]] = {}
    efficiencies: dict[tuple[str, int], WorkerEfficiency] = {}
    for run in runs:
        key = shape_key(sweep.storage, run)
        if key not in shapes:
            gradients = _gradients(sweep, run)
            step = _step(sweep.cost(run).figures[TRAINING_SPEED.name], UPDATE_S * gradients.bytes / 4)
            shapes[key] = run, step, all_reduce_s(gradients, resources.workers, network)
        for tokens in ({**run.training, **stage["training"]}["batch_tokens"] for stage in run.stages):
            efficiencies[key, tokens] = _efficiency(*shapes[key], resources.workers, tokens)
    return sorted(efficiencies.values(), key=lambda student: student.efficiency)


def _step(speed: float, update_s: float) -> Step:
    """The step of a model with a measured speed in tokens per second."""
    timed_s = BATCH * PIECES / speed
    update_s = min(update_s, timed_s / 2)  # another processor may be faster than the one of `UPDATE_S`
    return Step(STEP_S + update_s, (timed_s - update_s) / (BATCH * PIECES))


def _gradients(sweep: Sweep, run: Run) -> Gradients:
    """Gradients of all trainable parameters."""
    trained = select_trainable(build_model(sweep.storage, run), None)
    return Gradients.of(sum(parameter.numel() * parameter.element_size() for parameter in trained))


def _efficiency(run: Run, step: Step, sent_s: float, workers: int, tokens: int) -> WorkerEfficiency:
    efficiency = strong_efficiency(step, tokens, workers, sent_s)
    return WorkerEfficiency(run, workers, tokens, efficiency, strong_tokens(step, workers, sent_s, EFFICIENT))
