"""The phase `latency`: what is measured, against which teachers, and on which grid costs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from raykd.sweep.bookkeeping import Recorder


class Costs(Phase):
    """Measures costs. A sweep with limits has measured them before it began."""

    name = "latency"

    def is_skipped(self) -> bool:
        return self.sweep.timed_on is not None

    def run(self) -> tuple[()]:
        measure_costs(self.sweep, self.context.cluster, self.listener)
        return ()


def measure_costs(
    sweep: Sweep, cluster: Topology, listener: Listener, runtimes: Sequence[Runtime] = ()
) -> None:
    """Measure what every student shape, every teacher and every member of an ensemble costs while nothing else runs.

    Args:
        runtimes: in which forms they are timed beside the export in float32 and those that the sweep file asks for.

    Raises:
        PlacementError: there is no node of those that `resources.latency` asks for.
        RunError: a figure that is searched for is not known of some shape.
    """
    shapes = sweep.shapes()
    runs = _timed_runs(sweep, shapes)
    sweep.timed_on = measure_shapes(
        sweep.storage.uri, runs, resources=sweep.file.resources, cluster=cluster, listener=listener,
        nodes=sweep.nodes, runtimes=_runtimes(sweep, runtimes),
    )  # fmt: skip
    where = sweep.timed_on["processor"]
    if GPU in sweep.timed_on:
        where += f" and {sweep.timed_on[GPU]['name']}"
    listener.end("latency", f"{pluralise(len(runs), 'shape')}, on {where}")
    refuse_unknown(sweep, shapes)


def check_measurable(sweep: Sweep, cluster: Topology) -> None:
    """Raises PlacementError where the sweep file asks for what no node can measure."""
    check_gpu(_runtimes(sweep, ()), sweep.file.resources, cluster)


def known_costs(sweep: Sweep, runtimes: Sequence[Runtime] = ()) -> bool:
    """Take the costs that `measure_costs` would measure from the store; return False where one is missing, or was timed
    elsewhere or under load.

    Raises:
        RunError: as `measure_costs` does.
    """
    shapes, on, forms = sweep.shapes(), hardware(), _runtimes(sweep, runtimes)
    if set(forms) & set(GPU_RUNTIMES):
        return False  # which GPU they are timed on, the cluster decides
    costs = (find_cost(sweep.storage, run, on, forms) for run in _timed_runs(sweep, shapes))
    if not all(cost is not None and not cost.loaded for cost in costs):
        return False
    sweep.timed_on = on
    refuse_unknown(sweep, shapes)
    return True


def _timed_runs(sweep: Sweep, shapes: Sequence[Run]) -> list[Run]:
    """A run of each shape that is timed: of students, teachers and members of ensembles."""
    every = [*shapes, *(run for _, run in [*sweep.teachers, *sweep.members])]
    return list({shape_key(sweep.storage, run): run for run in every}.values())


def _runtimes(sweep: Sweep, asked: Sequence[Runtime]) -> list[Runtime]:
    return list(dict.fromkeys([*asked, *extra_runtimes(_wanted(sweep))]))


def cost_of(sweep: Sweep, setting: Setting) -> Cost:
    """What a setting's student costs, absolutely and against the teachers it learns from."""
    teachers = [sweep.cost(each.run) for each in setting.prepared.preparation.teachers]
    return with_teacher_ratios(setting.cost(sweep.storage, sweep.timed_on), teachers)


def cost_of_runs(sweep: Sweep, runs: Sequence[Run]) -> Cost:
    """Return the cost of the student of these runs, with the ratios to the sweep's first alternative of teachers."""
    student = joined_cost([sweep.cost(run) for run in runs])
    groups = sweep.teacher_groups
    return with_teacher_ratios(
        student, [sweep.cost(teacher.run) for teacher in groups[0][1]] if groups else []
    )


def _wanted(sweep: Sweep) -> set[str]:
    """The figures that the sweep searches for or constrains."""
    return {*sweep.file.objectives, *constrained_figures(sweep.file)}


def refuse_unknown(sweep: Sweep, shapes: Sequence[Run]) -> None:
    """RunError where a figure of the export is searched for or constrained, and a model has none."""
    wanted = _wanted(sweep)
    figures = [figure for figure in EXPORTED if figure.name in wanted]
    compared = [run for _, run in sweep.teachers] if any(figure.against for figure in figures) else []
    for run in [*shapes, *compared] if figures else []:
        if reason := sweep.cost(run).no_export:
            names = ", ".join(figure.name for figure in figures)
            raise RunError(
                f"search: {names} is not known, since the {run.role} {run.model['kind']} has no export ({reason}); "
                "search latency_ms_torch, bytes_torch or parameters"
            )


def keep_grid(sweep: Sweep) -> Grid:
    """Return the grid on which the sweep compares costs, from the spreads of its shapes; one that was resumed keeps
    that of its beginning.
    """
    grid = sweep.records.grid()
    if grid is None:
        grid = compute_cost_grid(sweep.cost(run) for run in sweep.shapes())
        sweep.records.save_grid(grid)
    return grid


def renew_costs(sweep: Sweep, recorder: Recorder) -> None:
    """Give the trials of an earlier driver the costs that their shapes have now: all trials of one shape cost the
    same.
    """
    for record in sweep.records.load():
        setting = sweep.settings.of(record.resolved)
        trial = with_cost(record.trial, recorder.cost_of(setting), recorder.grid)
        if trial != record.trial:
            judged = trial if trial.role == "baseline" else recorder.constraints.with_violations(trial)
            sweep.records.save(replace(record, trial=judged))
