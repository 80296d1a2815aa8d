"""`raykd precompute`: the first two phases of a sweep, teachers and transfer sets."""

from __future__ import annotations

from raykd.cli.cluster import at_work
from raykd.cli.console import stdout
from raykd.cli.options import Address, Overrides, Plain, Small, SweepPath, Variants, again, document
from raykd.sweep.driver import run_phases, transfer_phases
from raykd.sweep.lease import hold_working_lease
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.sweep import Sweep


def precompute(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
    plain: Plain = False,
) -> None:
    """Train the teachers and compute the transfer sets that are missing, and stop there."""
    sweep = Sweep(document(file, set_, variant, small))
    with (
        hold_working_lease(sweep.storage, "precompute"),
        at_work(sweep, address, plain=plain) as (cluster, listener),
    ):
        context = PhaseContext(sweep, cluster, listener)
        phases = transfer_phases(context)
        run_phases(context, phases)
    summary = "no objective reads a teacher"
    if (done := phases[-1].computed) is not None:
        summary = f"{done.shards} shards, {done.bytes / 2**20:.1f} MiB, largest rounding error {done.largest_error:.1e}"
    stdout.print(f"precompute: {summary}. Next: raykd sweep {again(file, variant, small, set_)}")
