"""What verbs that compute begin with: the corpora are read and their warnings shown, a cluster is joined or started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raykd.cli.console import Drawn, Lines
from raykd.cli.console import listener as make_listener
from raykd.runs.cluster import connected
from raykd.sweep.driver import Sweep


@contextmanager
def at_work(sweep: Sweep, address: str | None) -> Iterator[tuple[dict[str, float], Drawn | Lines]]:
    """Yields what the cluster has, and the listener. The corpora are read first: starting Ray takes seconds."""
    reports = [each.preparation.corpus.report for each in sweep.preparations.values()]
    warnings = dict.fromkeys(warning for report in reports for warning in report.warnings())
    with make_listener() as listener, connected(address) as cluster:
        for warning in warnings:
            listener.warn(warning)
        yield cluster, listener
