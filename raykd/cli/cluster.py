"""How a verb gets to work: the corpus read and its oddities told, a cluster joined or started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raykd.cli.console import Drawn, Lines, listener
from raykd.runs.cluster import connected
from raykd.sweep.driver import Sweep


@contextmanager
def at_work(sweep: Sweep, address: str | None) -> Iterator[tuple[dict[str, float], Drawn | Lines]]:
    """Yields what the cluster has and who listens. The corpus is read first: Ray takes seconds to start."""
    warnings = sweep.preparation.corpus.report.warnings()
    with listener() as heard, connected(address) as cluster:
        for warning in warnings:
            heard.warn(warning)
        yield cluster, heard
