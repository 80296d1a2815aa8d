"""The phase `latency`: the shapes to measure, the teachers to compare with, and the grid for comparing costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from raykd.cluster.listener import Listener
from raykd.cluster.topology import Topology
from raykd.errors import RunError
from raykd.figures.cost_grid import Grid, compute_cost_grid
from raykd.figures.results import Cost
from raykd.figures.table import EXPORTED, GPU_RUNTIMES, Runtime, extra_runtimes
from raykd.pluralise import pluralise
from raykd.precompute.latency import hardware
from raykd.precompute.measurement import check_gpu, measure_shapes
from raykd.precompute.model_cost import GPU, find_cost, shape_key
from raykd.recipes.run import Run
from raykd.sweep.outcome import with_cost, with_teacher_ratios
from raykd.sweep.phases.interface import Phase
from raykd.sweep.settings import Setting, joined_cost
from raykd.sweep.sweep import Sweep
from raykd.sweep.sweep_faults import constrained_figures
from raykd.training.model_folder import is_annotator

if TYPE_CHECKING:
    from raykd.sweep.bookkeeping import Recorder


class Costs(Phase):
    """Measures costs; a sweep with limits has measured them before its phases begin."""

    name = "latency"

    @override
    def is_skipped(self) -> bool:
        return self.sweep.timed_on is not None

    @override
    def run(self) -> tuple[()]:
        measure_costs(self.sweep, self.context.cluster, self.listener)
        return ()


def measure_costs(
    sweep: Sweep, cluster: Topology, listener: Listener, runtimes: Sequence[Runtime] = ()
) -> None:
    """Measure the costs of all student shapes, teachers and members of ensembles while nothing else runs.

    Args:
        sweep: The sweep.
        cluster: Nodes of the cluster.
        listener: Shows the progress.
        runtimes: Further runtimes, besides the export in float32 and those requested by the sweep file.

    Raises:
        PlacementError: no node meets `resources.latency`.
        RunError: a searched figure is not known for some shape.
    """
    shapes = sweep.shapes()
    runs = _timed_runs(sweep, shapes)
    sweep.timed_on = measure_shapes(
        sweep.storage.uri, runs, resources=sweep.file.resources, cluster=cluster, listener=listener,
        nodes=sweep.nodes, runtimes=_runtimes(sweep, runtimes),
    )  # fmt: skip
    machine = sweep.timed_on["processor"]
    if GPU in sweep.timed_on:
        machine += f" and {sweep.timed_on[GPU]['name']}"
    listener.end("latency", f"{pluralise(len(runs), 'shape')}, on {machine}")
    refuse_unknown(sweep, shapes)


def check_measurable(sweep: Sweep, cluster: Topology) -> None:
    """Raise PlacementError if a figure requested by the sweep file cannot be measured on any node."""
    check_gpu(_runtimes(sweep, ()), sweep.file.resources, cluster)


def known_costs(sweep: Sweep, runtimes: Sequence[Runtime] = ()) -> bool:
    """Take the costs from the store, if `measure_costs` has measured all of them here, without load.

    Args:
        sweep: The sweep.
        runtimes: Further runtimes, as for `measure_costs`.

    Returns:
        False if a cost is missing, or was measured elsewhere or under load.

    Raises:
        RunError: as `measure_costs`.
    """
    shapes, machine, needed = sweep.shapes(), hardware(), _runtimes(sweep, runtimes)
    if set(needed) & set(GPU_RUNTIMES):
        return False  # the GPU for timing is known only after the cluster is joined
    costs = (find_cost(sweep.storage, run, machine, needed) for run in _timed_runs(sweep, shapes))
    if not all(cost is not None and not cost.loaded for cost in costs):
        return False
    sweep.timed_on = machine
    refuse_unknown(sweep, shapes)
    return True


def _timed_runs(sweep: Sweep, shapes: Sequence[Run]) -> list[Run]:
    """Return one run per timed shape: of students, teachers and members of ensembles."""
    teachers = [run for _, run in [*sweep.teachers, *sweep.members] if not is_annotator(run)]
    runs = [*shapes, *teachers]
    return list({shape_key(sweep.storage, run): run for run in runs}.values())


def _runtimes(sweep: Sweep, requested: Sequence[Runtime]) -> list[Runtime]:
    return list(dict.fromkeys([*requested, *extra_runtimes(_searched_figures(sweep))]))


def cost_of(sweep: Sweep, setting: Setting) -> Cost:
    """Return the cost of a setting's student, absolute and relative to its teachers."""
    teachers = [sweep.cost(teacher.run) for teacher in setting.prepared.preparation.teachers]
    return with_teacher_ratios(setting.cost(sweep.storage, sweep.timed_on), teachers)


def cost_of_runs(sweep: Sweep, runs: Sequence[Run]) -> Cost:
    """Return the cost of a student, with the ratios to the sweep's first alternative of teachers.

    Args:
        sweep: The sweep.
        runs: Runs of the student.
    """
    student = joined_cost([sweep.cost(run) for run in runs])
    groups = sweep.teacher_groups
    return with_teacher_ratios(
        student, [sweep.cost(teacher.run) for teacher in groups[0][1]] if groups else []
    )


def _searched_figures(sweep: Sweep) -> set[str]:
    """Return the names of the figures searched for or constrained by the sweep."""
    return {*sweep.file.objectives, *constrained_figures(sweep.file)}


def refuse_unknown(sweep: Sweep, shapes: Sequence[Run]) -> None:
    """Raise RunError if a figure of the export is searched for or constrained, and a model has no export."""
    required = _searched_figures(sweep)
    figures = [figure for figure in EXPORTED if figure.name in required]
    compared = [run for _, run in sweep.teachers] if any(figure.against for figure in figures) else []
    for run in [*shapes, *compared] if figures else []:
        if reason := sweep.cost(run).no_export:
            names = ", ".join(figure.name for figure in figures)
            raise RunError(
                f"search: {names} is not known, since the {run.role} {run.model['kind']} has no export ({reason}); "
                "search latency_ms_torch, bytes_torch or parameters"
            )


def keep_grid(sweep: Sweep) -> Grid:
    """Return the sweep's grid for comparing costs, made from the spreads of its shapes.

    A resumed sweep keeps its first grid.
    """
    grid = sweep.records.grid()
    if grid is None:
        grid = compute_cost_grid(sweep.cost(run) for run in sweep.shapes())
        sweep.records.save_grid(grid)
    return grid


def renew_costs(sweep: Sweep, recorder: Recorder) -> None:
    """Update the costs in trials of an earlier driver: all trials of a shape cost the same."""
    for record in sweep.records.load():
        setting = sweep.settings.of(record.resolved)
        trial = with_cost(record.trial, recorder.cost_of(setting), recorder.grid)
        if trial != record.trial:
            judged = trial if trial.role == "baseline" else recorder.constraints.with_violations(trial)
            sweep.records.save(replace(record, trial=judged))
