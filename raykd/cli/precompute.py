"""`raykd precompute`: teachers and transfer sets of a sweep, and nothing else."""

from __future__ import annotations

from raykd.cli.cluster import at_work
from raykd.cli.console import stdout
from raykd.cli.options import Address, Overrides, Small, SweepPath, Variants, again, document
from raykd.runs.cluster import concurrency
from raykd.runs.transfer import compute_transfer
from raykd.sweep.driver import Sweep, train_teachers


def precompute(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
) -> None:
    """Train the teachers that are missing and compute what they know, once."""
    sweep = Sweep(document(file, set_, variant, small))
    with at_work(sweep, address) as (cluster, heard):
        train_teachers(sweep, concurrency(sweep.file.resources, cluster), heard)
        done = compute_transfer(sweep.transfer(), sweep.file.resources, cluster, heard)
    told = "no objective reads a teacher"
    if done is not None:
        told = f"{done.shards} shards, {done.bytes / 2**20:.1f} MiB, largest float16 error {done.largest_error:.1e}"
    stdout.print(
        f"precompute: {told}. Next: raykd sweep {again(file, variant, small)}",
        highlight=False,
        soft_wrap=True,
    )
