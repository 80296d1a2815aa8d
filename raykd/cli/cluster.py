"""What verbs that compute begin with: the corpora are read and their warnings shown, a cluster is joined or started."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from raykd.cli.console import Lines, draws, marked, stderr, stdout, warn
from raykd.cli.live import Drawn
from raykd.cluster.connection import connected, own_machine
from raykd.cluster.listener import unit_here
from raykd.cluster.progress_channel import received
from raykd.cluster.topology import Topology
from raykd.errors import RunError
from raykd.pluralise import pluralise
from raykd.sweep.named_files import file_errors_as_faults
from raykd.sweep.progress_monitor import Monitor
from raykd.sweep.prometheus_metrics import SweepMetrics
from raykd.sweep.slow_precision import slow_precision
from raykd.sweep.sweep import Sweep

RESTARTS = "RAYKD_RESTARTS"
"""How often this command has started again because Ray died; in the environment, which it passes on to itself."""
MOST_RESTARTS = 2


@contextmanager
def at_work(
    sweep: Sweep, address: str | None, *, plain: bool = False, idle: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Topology, Monitor]]:
    """Yields what the cluster has, and the monitor. The corpora are read first: starting Ray takes seconds.

    Args:
        plain: lines, also on a terminal.
        idle: asked once the corpora are read, where the sweep takes nothing but CPUs of this machine: whether nothing
            is to be computed, so that Ray need not be started.
    """
    with file_errors_as_faults(sweep.document), _monitor(plain=plain) as monitor, monitor.moving():
        monitor.begin("start", 2)
        with unit_here(monitor, "start", "corpora"):
            reports = [each.preparation.corpus.report for each in sweep.preparations.values()]
        tags = "tags" in sweep.file.task_entry.form.columns
        warnings = dict.fromkeys(each for report in reports for each in report.warnings(tags=tags))
        warnings |= dict.fromkeys(slow_precision(sweep.document))
        machine = own_machine(sweep.file.resources, address)
        if machine is not None and idle():
            _started(monitor, "corpora read", warnings)
            yield machine, monitor
            return
        monitor.advance("start", detail="connecting to Ray")
        growth = sweep.file.resources.autoscale
        with (
            connected(address, autoscale=growth, died=start_again) as cluster,
            received(monitor.within),
            monitor.watched(),
        ):
            _started(monitor, f"corpora read, {pluralise(len(cluster.nodes), 'node')} of Ray", warnings)
            if not cluster.dashboard:
                monitor.warn("Ray's dashboard does not run: no run can have several workers")
            monitor.watchers.append(SweepMetrics(sweep.file.name))
            sweep.nodes.warn = monitor.warn
            if len(cluster.nodes) > 1:
                sweep.nodes.ask()
            yield sweep.nodes.usable(cluster), monitor


def _started(monitor: Monitor, detail: str, warnings: Iterable[str]) -> None:
    monitor.end("start", detail)
    for warning in warnings:
        monitor.warn(warning)


@contextmanager
def _monitor(*, plain: bool) -> Iterator[Monitor]:
    monitor = Monitor(Lines())
    if not draws(plain=plain):
        yield monitor
        return
    with Drawn(monitor.status) as monitor.view:
        yield monitor


def start_again(problem: str) -> None:
    """Replace this process by the same command: what is computed is in the store. After the second time, end it.

    Nothing of this process is closed: with Ray gone, what would close it may wait for ever. The next driver finds a
    store as after `kill -9`, which is always whole.
    """
    command = again(sys.argv)
    stdout.show_cursor()  # a drawing hides it
    restarts = int(os.environ.get(RESTARTS, "0"))
    if restarts >= MOST_RESTARTS:
        stderr.print(marked("error", problem))
        kept = f"What is computed is kept. Go on with: raykd {shlex.join(command[1:])}"
        stderr.print(kept)
        sys.stdout.flush()
        os._exit(RunError.exit_code)
    warn(f"{problem}; starting again", stderr)
    sys.stdout.flush()
    os.environ[RESTARTS] = str(restarts + 1)
    os.execv(sys.executable, again(sys.orig_argv))


def again(arguments: list[str]) -> list[str]:
    """The same command line; a sweep that goes on has `--resume`."""
    goes_on = "sweep" in arguments and "--resume" not in arguments
    return [*arguments, "--resume"] if goes_on else list(arguments)
