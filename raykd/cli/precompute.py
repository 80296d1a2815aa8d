"""`raykd precompute`: run only the first two phases of a sweep, teachers and transfer sets."""

from __future__ import annotations

from raykd.cli.cluster import phase_session
from raykd.cli.console import stdout
from raykd.cli.options import (
    Address,
    Overrides,
    Plain,
    Small,
    SweepPath,
    Variants,
    file_arguments,
    load_document,
)
from raykd.sweep.driver import run_phases, transfer_phases
from raykd.sweep.sweep import Sweep


def precompute(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
    plain: Plain = False,
) -> None:
    """Train the teachers and compute the missing transfer sets of FILE; no students."""
    sweep = Sweep(load_document(file, variant, small, set_))
    with phase_session(sweep, "precompute", address, plain=plain) as context:
        phases = transfer_phases(context)
        run_phases(context, phases)
    summary = "no objective reads a teacher"
    if (computed := phases[-1].computed) is not None:
        summary = f"{computed.shards} shards, {computed.bytes / 2**20:.1f} MiB, "
        summary += f"largest rounding error {computed.largest_error:.1e}"
    stdout.print(f"precompute: {summary}. Next: raykd sweep {file_arguments(file, variant, small, set_)}")
