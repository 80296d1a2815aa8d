"""The start of computing commands: read the corpora, show their warnings, and join or start a Ray cluster."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from raykd.cli.console import LogView, can_draw, stderr, stdout, tagged_message, warn
from raykd.cli.live import LiveView
from raykd.cluster.connection import connected, own_machine
from raykd.cluster.listener import unit_here
from raykd.cluster.progress_channel import received
from raykd.cluster.topology import Topology
from raykd.errors import RunError
from raykd.pluralise import pluralise
from raykd.sweep.lease import hold_working_lease
from raykd.sweep.named_files import file_errors_as_faults
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.phases.questions import ask_annotators, refuse_unaskable, source_warnings
from raykd.sweep.progress_monitor import Monitor
from raykd.sweep.prometheus_metrics import SweepMetrics
from raykd.sweep.slow_precision import slow_precision
from raykd.sweep.sweep import Sweep
from raykd.training.answer_survey import survey_messages

RESTARTS = "RAYKD_RESTARTS"
"""Environment variable that counts the restarts of this command after a death of Ray."""
MOST_RESTARTS = 2


@contextmanager
def cluster_session(
    sweep: Sweep,
    address: str | None,
    *,
    plain: bool = False,
    idle: Callable[[], bool] = lambda: False,
    ask: bool = True,
) -> Iterator[tuple[Topology, Monitor]]:
    """Yield the cluster and the progress monitor. The corpora are read before Ray starts.

    Args:
        sweep: The sweep to compute.
        address: Ray cluster to join; None: $RAY_ADDRESS, or a cluster started on this machine.
        plain: Print lines even on a terminal.
        idle: Returns True if nothing is to be computed, so that Ray need not start. It is called after the corpora are
            read, and only if the sweep needs nothing but CPUs of this machine.
        ask: Ask annotators about the texts without an answer.
    """
    with file_errors_as_faults(sweep.document), _monitor(plain=plain) as monitor, monitor.refresh_view():
        monitor.begin("start", 2)
        with unit_here(monitor, "start", "corpora"):
            reports = [preparation.preparation.corpus.report for preparation in sweep.preparations.values()]
        tags = "tags" in sweep.file.task_entry.form.columns
        warnings = dict.fromkeys(warning for report in reports for warning in report.warnings(tags=tags))
        warnings |= dict.fromkeys([*source_warnings(sweep), *slow_precision(sweep.document)])
        machine = own_machine(sweep.file.resources, address)
        if machine is not None and idle():
            _started(monitor, "corpora read", [*warnings, *_answer_warnings(sweep)])
            yield machine, monitor
            return
        if ask:
            refuse_unaskable(sweep)
        monitor.advance("start", detail="connecting to Ray")
        growth = sweep.file.resources.autoscale
        with (
            connected(address, autoscale=growth, died=restart) as cluster,
            received(monitor.part_progress),
            monitor.call_watchers(),
        ):
            _started(monitor, f"corpora read, {pluralise(len(cluster.nodes), 'node')} of Ray", warnings)
            if not cluster.dashboard:
                monitor.warn(
                    "Ray's dashboard does not run, so no run can have several workers; start Ray with it"
                )
            monitor.watchers.append(SweepMetrics(sweep.file.name))
            sweep.nodes.warn = monitor.warn
            if len(cluster.nodes) > 1:
                sweep.nodes.ask()
            usable = sweep.nodes.usable(cluster)
            if ask:
                ask_annotators(sweep, usable, monitor)
            for warning in _answer_warnings(sweep):
                monitor.warn(warning)
            yield usable, monitor


@contextmanager
def phase_session(sweep: Sweep, verb: str, address: str | None, *, plain: bool) -> Iterator[PhaseContext]:
    """Yield the context for phases that record no trials, in a `cluster_session` with a lease of the store.

    Args:
        sweep: The sweep to compute.
        verb: The command, as in `raykd verb`, for the lease of the store.
        address: Ray cluster to join; see `cluster_session`.
        plain: Print lines even on a terminal.
    """
    with (
        hold_working_lease(sweep.storage, verb),
        cluster_session(sweep, address, plain=plain) as (cluster, listener),
    ):
        yield PhaseContext(sweep, cluster, listener)


def _answer_warnings(sweep: Sweep) -> Iterable[str]:
    """Sentences on the answers of annotators that cannot be used."""
    all_surveys = [preparation.preparation.surveys for preparation in sweep.preparations.values()]
    return dict.fromkeys(message for surveys in all_surveys for message in survey_messages(surveys))


def _started(monitor: Monitor, detail: str, warnings: Iterable[str]) -> None:
    monitor.end("start", detail)
    for warning in warnings:
        monitor.warn(warning)


@contextmanager
def _monitor(*, plain: bool) -> Iterator[Monitor]:
    monitor = Monitor(LogView())
    if not can_draw(plain=plain):
        yield monitor
        return
    with LiveView(monitor.status) as monitor.view:
        yield monitor


def restart(problem: str) -> None:
    """Start the command again in place of the process; after two restarts, end with an error.

    Finished work is in the store. Nothing of the present process is closed: with Ray dead, closing may wait for
    ever. The next driver finds the store as after `kill -9`, which leaves it whole.
    """
    command = resumed_command(sys.argv)
    stdout.show_cursor()  # hidden by the live drawing
    restarts = int(os.environ.get(RESTARTS, "0"))
    if restarts >= MOST_RESTARTS:
        stderr.print(tagged_message("error", problem))
        stderr.print(f"Finished work is kept. Continue with: raykd {shlex.join(command[1:])}")
        sys.stdout.flush()
        os._exit(RunError.exit_code)
    warn(f"{problem}; starting again", stderr)
    sys.stdout.flush()
    os.environ[RESTARTS] = str(restarts + 1)
    os.execv(sys.executable, resumed_command(sys.orig_argv))


def resumed_command(arguments: list[str]) -> list[str]:
    """Return the same command line, with `--resume` for a sweep."""
    lacks_resume = "sweep" in arguments and "--resume" not in arguments
    return [*arguments, "--resume"] if lacks_resume else list(arguments)
