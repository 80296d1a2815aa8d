"""`raykd sweep`: the whole of it, from the file to the front."""

from __future__ import annotations

from typing import Annotated

import typer

from raykd.cli.console import listener, stdout
from raykd.cli.options import Address, Overrides, SweepPath, document
from raykd.report import front_table, write_report
from raykd.runs.cluster import connected
from raykd.sweep.driver import Sweep, run_sweep
from raykd.sweep.track import tracked


def sweep(
    file: SweepPath,
    set_: Overrides = None,
    address: Address = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep that was started before; start it if it was not.")
    ] = False,
) -> None:
    """Train teachers, compute what they know once, search students, and end with their front."""
    loaded = document(file, set_)
    with listener() as heard:
        planned = Sweep(loaded)
        with tracked(planned, heard, file) as tracker, connected(address) as cluster:
            trials, teachers = run_sweep(planned, cluster, tracker=tracker, listener=heard, resume=resume)
            report = write_report(planned.records, trials, teachers, planned.file)
            tracker.finish(report, trials)
    stdout.print(front_table(trials, teachers, planned.file))
    stdout.print(
        f"sweep: {len(trials)} trials; the front is in {report.html}\n"
        f"Next: mlflow ui --backend-store-uri {planned.file.tracking.uri}   (experiment {planned.file.name!r}), "
        f"or raykd front {planned.file.name} --where 'f1 >= 0.95 * teacher' --best latency_ms",
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip
