"""`raykd sweep`: run all phases, from the sweep file to the front."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from raykd.cli.cluster import cluster_session
from raykd.cli.console import stdout
from raykd.cli.front import show_front
from raykd.cli.options import (
    Address,
    Overrides,
    Plain,
    Small,
    SweepPath,
    Variants,
    file_arguments,
    load_document,
    where_argument,
)
from raykd.cli.pages import update_page
from raykd.cli.report_phase import Report
from raykd.errors import RaykdError, UnlearntError
from raykd.figures.front import pareto_front
from raykd.figures.table import main_latency
from raykd.figures.trial import Teacher, Trial
from raykd.pluralise import pluralise
from raykd.redact import redact
from raykd.report.card import trial_card
from raykd.report.findings import Judgement, judge
from raykd.report.terminal_table import front_markdown
from raykd.sweep.driver import run_phases, run_sweep
from raykd.sweep.forecast import forecast_sweep
from raykd.sweep.lease import hold_lease
from raykd.sweep.limits import needs_plan_first, refuse_short_budget, refuse_unmeetable_constraints
from raykd.sweep.phases.costs import measure_costs
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.progress_monitor import status_kept
from raykd.sweep.sweep import Sweep
from raykd.sweep.track import publish_end, published
from raykd.tracking.publisher import Publisher
from raykd.tracking.registry import SHIP
from raykd.tracking.server import check_server as check_tracking

SOME_FAILED, NO_FRONT = 8, 9
"""Exit codes of a sweep with failed trials, and of one without any student on its front."""


def sweep(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue a sweep started before; start it if there is none."),
    ] = False,
    plain: Plain = False,
) -> None:
    """Train teachers, compute their signals once, search students, and show the Pareto front."""
    planned = Sweep(load_document(file, variant, small, set_))
    objectives = planned.file.objectives
    command = _resume(file, variant, small, set_, address)
    # All checks come before anything is computed, stored or logged, the quick ones first.
    planned.refuse(resume=resume)
    check_tracking(planned.file.tracking.uri)
    try:
        trials, teachers, judged, publisher = _run_all_phases(planned, address, resume=resume, plain=plain)
    except RaykdError as error:
        if planned.records.lease is not None:
            further = ["teachers_must_learn=false"] if isinstance(error, UnlearntError) else []
            error.resume_command = _resume(file, variant, small, [*(set_ or ()), *further], address)
        raise
    show_front(trials, teachers, judged, sweep=planned.file.name, objectives=objectives)
    stdout.print(
        f"sweep: {pluralise(len(trials), 'trial')}. The front is in {planned.records.folder.address}/front.html\n"
        f"Next: raykd front {file_arguments(file, variant, small, set_)} "
        f"{where_argument(teachers, planned.file.task_entry.score_name)}--best {main_latency(objectives).name}, or\n"
        f"      {_mlflow_hint(planned.file.tracking.uri, publisher)}"
    )
    # raykd does not remove the alias: a service may load `models:/NAME@ship`, and only a person should change that.
    if judged.verdict.ship is None and (earlier := publisher.shipped_version()):
        stdout.print(
            f"MLflow: the alias {SHIP} of {planned.file.name} still names {earlier} of an earlier verdict, and this "
            "verdict ships no student; to ship none, remove the alias in the registry"
        )
    failed = [trial.name for trial in trials if trial.state == "FAILED"]
    front = pareto_front(trials, objectives)
    if failed:
        outcome = "The front has gaps" if front else "There is no front"
        stdout.print(
            f"{outcome}: {pluralise(len(failed), 'trial')} failed ({', '.join(failed[:3])}"
            f"{', …' if failed[3:] else ''}). {command} tries them again"
        )
    if not front:
        raise typer.Exit(NO_FRONT)
    if failed:
        raise typer.Exit(SOME_FAILED)


def _resume(
    file: Path, variants: list[str] | None, small: bool, overrides: list[str] | None, address: str | None
) -> str:
    """Return the command for continuing the sweep."""
    address_option = f" --address {address}" if address else ""
    return f"raykd sweep {file_arguments(file, variants, small, overrides)}{address_option} --resume"


def _run_all_phases(
    planned: Sweep, address: str | None, *, resume: bool, plain: bool
) -> tuple[list[Trial], list[Teacher], Judgement, Publisher]:
    """Run all phases, and write their report to the store and to MLflow; the publisher is closed."""
    objectives = planned.file.objectives
    with cluster_session(planned, address, plain=plain) as (cluster, listener):
        context = PhaseContext(planned, cluster, listener)
        if needs_plan_first(planned):
            measure_costs(planned, cluster, listener)
            refuse_unmeetable_constraints(planned)
            refuse_short_budget(planned, forecast_sweep(planned, context.placements.students))
        with (
            hold_lease(planned.records.folder, note=listener.note) as lease,
            tempfile.TemporaryDirectory(prefix="raykd-") as scratch,
        ):
            planned.begin(lease, resume=resume)
            with status_kept(listener, planned.records), published(planned, lease, listener) as publisher:
                listener.untracked = lambda: publisher.waiting
                context.publish = publisher.wake
                with update_page(listener, planned.records):
                    trials, teachers = run_sweep(context, publisher.pages)
                report = Report(context)
                run_phases(context, [report])
                labels = planned.records.dev_labels()
                judged = judge(trials, teachers, objectives=objectives, dev_labels=labels)
                table = front_markdown(
                    trials, teachers, sweep=planned.file.name, objectives=objectives, dev_labels=labels
                )
                decided, file = judged.verdict, planned.file
                card = partial(
                    trial_card, trials=trials, teachers=teachers, sweep=file.name, stated=file.card
                )
                publish_end(
                    planned, publisher, trials, report.files, table, Path(scratch), listener=listener, card=card,
                    ship=decided.ship, verdict=decided.text,
                )  # fmt: skip
    return trials, teachers, judged, publisher


def _mlflow_hint(uri: str, publisher: Publisher) -> str:
    """Return the command or address for looking at the sweep in MLflow; `uri` is the address in the sweep file."""
    # `uri`, as the publisher's URI has expanded variables, which may hold passwords.
    if publisher.uri.startswith(("http://", "https://")):
        return f"open {publisher.link}"
    return f"mlflow ui --backend-store-uri {redact(uri)}   and open {publisher.link}"
