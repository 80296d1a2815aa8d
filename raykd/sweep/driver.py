"""The driver: one sweep from its file to its front, phase by phase; each phase is a module of `phases/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from raykd.cluster.growth import wait_for_slots
from raykd.cluster.jobs import Scheduler
from raykd.cluster.placement import concurrency, group_of, keeps_slots
from raykd.cluster.tune_pool import work
from raykd.figures.trial import Teacher, Trial
from raykd.recipes.resources import RunRole
from raykd.sweep.budget import Budget
from raykd.sweep.phases.baseline import Baseline
from raykd.sweep.phases.confirm import Confirm
from raykd.sweep.phases.costs import Costs, check_measurable
from raykd.sweep.phases.features import Features
from raykd.sweep.phases.interface import Phase, PhaseContext
from raykd.sweep.phases.precompute import Precompute
from raykd.sweep.phases.search import Search
from raykd.sweep.phases.teachers import Teachers
from raykd.sweep.scheduler import InTurn
from raykd.tracking.sweep_pages import SweepPages


def run_sweep(context: PhaseContext, pages: SweepPages) -> tuple[list[Trial], list[Teacher]]:
    """Run the whole sweep but for the report, which the command adds.

    Args:
        context: The sweep, the cluster and the listener.
        pages: Pages of the tracking server.

    Returns:
        All trials and the teachers' rows.

    Raises:
        PlacementError: No node can measure what the sweep file asks for; raised before anything starts.
        RunError: A teacher could not be trained, or none learnt anything.
        StoreError: The store fails.
    """
    sweep, cluster = context.sweep, context.cluster
    check_measurable(sweep, cluster)
    resources = sweep.file.resources
    budget = Budget(
        sweep.file.budget, gpus=group_of(resources.for_role("students")).total.get("GPU", 0.0),
        at_once=context.placements.students, ended=[record.trial.number for record in sweep.earlier()],
    )  # fmt: skip
    run_phases(context, [Features(context)])
    teachers, confirm, baseline = Teachers(context, budget.charge), Confirm(context), Baseline(context)
    search = Search(context, pages, budget, (confirm, baseline))
    phases = [teachers, Precompute(context), Costs(context), search, confirm, baseline]
    if teachers.planned() and keeps_slots(resources, cluster):
        # The teachers' slots are kept for the trials, and sleep in between: starting new ones takes longer.
        context.cluster = replace(cluster, slots_asleep=True)
        _run_in_slots(context, phases, "students")
    else:
        run_phases(context, phases)
    return sweep.records.trials(), sweep.records.teachers()


def transfer_phases(context: PhaseContext) -> tuple[Features, Teachers, Precompute]:
    """Return the phases up to the transfer sets.

    Args:
        context: The sweep, the cluster and the listener.
    """
    return Features(context), Teachers(context), Precompute(context)


def run_phases(context: PhaseContext, phases: Iterable[Phase]) -> None:
    """Run phases in order; consecutive phases with runs of one role share its slots.

    Args:
        context: The sweep, the cluster and the listener.
        phases: The phases, in order.

    Raises:
        PlacementError: One run, or the requested number of runs, does not fit into the cluster.
        RaykdError: A phase fails.
    """
    for role, role_phases in groupby(phases, key=_role):
        if role is not None:
            _run_in_slots(context, list(role_phases), role)
            continue
        for _ in _schedulers(context, role_phases):
            raise AssertionError("a phase without a role has no runs")


def _role(phase: Phase) -> RunRole | None:
    return phase.role


def _run_in_slots(context: PhaseContext, phases: list[Phase], role: RunRole) -> None:
    context.at_once = _concurrent_runs(context, role, max(phase.planned() for phase in phases))
    sweep = context.sweep
    work(
        InTurn(_schedulers(context, phases)), store_uri=sweep.storage.uri,
        resources=sweep.file.resources.for_role(role), concurrent=context.at_once, nodes=sweep.nodes,
    )  # fmt: skip


def _schedulers(context: PhaseContext, phases: Iterable[Phase]) -> Iterator[Scheduler]:
    for phase in phases:
        if not phase.is_skipped():
            yield from phase.run()
            if summary := phase.summary():
                context.listener.end(phase.name, summary)
            context.publish()


def _concurrent_runs(context: PhaseContext, role: RunRole, runs: int) -> int:
    """Return how many of so many runs fit at once; if the cluster grows, wait for its nodes first."""
    resources, cluster = context.sweep.file.resources, context.cluster
    limit, role_resources = concurrency(resources, cluster, role), resources.for_role(role)
    if not runs or not cluster.grows:
        return limit
    exactly, minutes = role_resources.concurrency is not None, role_resources.wait_minutes
    return wait_for_slots(
        role,
        group_of(role_resources),
        min(limit, runs),
        cluster,
        context.listener,
        minutes=minutes,
        exactly=exactly,
    )
