"""What verbs that compute begin with: the corpora are read and their warnings shown, a cluster is joined or started."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from raykd.cli.console import Drawn, Lines, marked, stderr
from raykd.cli.console import listener as make_listener
from raykd.errors import RunError
from raykd.runs.cluster import connected
from raykd.runs.topology import Topology
from raykd.sweep.sweep import Sweep

RESTARTS = "RAYKD_RESTARTS"
"""How often this command has started again because Ray died; in the environment, which it passes on to itself."""
MOST_RESTARTS = 2


@contextmanager
def at_work(sweep: Sweep, address: str | None) -> Iterator[tuple[Topology, Drawn | Lines]]:
    """Yields what the cluster has, and the listener. The corpora are read first: starting Ray takes seconds."""
    reports = [each.preparation.corpus.report for each in sweep.preparations.values()]
    warnings = dict.fromkeys(warning for report in reports for warning in report.warnings())
    growth = sweep.file.resources.autoscale
    with (
        make_listener() as listener,
        connected(address, autoscale=growth, died=start_again) as cluster,
    ):
        for warning in warnings:
            listener.warn(warning)
        sweep.nodes.warn = listener.warn
        if len(cluster.nodes) > 1:
            sweep.nodes.ask()
        yield sweep.nodes.usable(cluster), listener


def start_again(problem: str) -> None:
    """Replace this process by the same command: what is computed is in the store. After the second time, end it.

    Nothing of this process is closed: with Ray gone, what would close it may wait for ever. The next driver finds a
    store as after `kill -9`, which is always whole.
    """
    command = again(sys.argv)
    restarts = int(os.environ.get(RESTARTS, "0"))
    if restarts >= MOST_RESTARTS:
        stderr.print(marked("error", problem), highlight=False, soft_wrap=True)
        kept = f"What is computed is kept. Go on with: raykd {shlex.join(command[1:])}"
        stderr.print(kept, highlight=False, soft_wrap=True)
        sys.stdout.flush()
        os._exit(RunError.exit_code)
    stderr.print(marked("warning", f"{problem}; starting again"), highlight=False, soft_wrap=True)
    sys.stdout.flush()
    os.environ[RESTARTS] = str(restarts + 1)
    os.execv(sys.executable, again(sys.orig_argv))


def again(arguments: list[str]) -> list[str]:
    """The same command line; a sweep that goes on has `--resume`."""
    goes_on = "sweep" in arguments and "--resume" not in arguments
    return [*arguments, "--resume"] if goes_on else list(arguments)
