"""`raykd clean`: remove what no sweep of a store uses, or one sweep with what only it used."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from raykd.cli.console import stderr, stdout
from raykd.cli.list import DEFAULT, StorePath, opened
from raykd.errors import Fault, SpecError
from raykd.report.readable_numbers import size

if TYPE_CHECKING:
    from raykd.sweep.removal import Removal

AGE = re.compile(r"(\d+)(h|d|w)")
HOURS = {"h": 1, "d": 24, "w": 168}
SHOWN = 40
"""Most parts that are listed by name."""


def clean(
    store: StorePath = DEFAULT,
    sweep: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove this sweep, and what no other sweep uses of it."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Only parts that did not change for so long: 12h, 30d, 8w."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove what no sweep in STORE (default: .raykd) uses, what distill and precompute made included, after asking."""
    storage, before = opened(store), _changed_before(older_than, sweep)
    with stderr.status("reading …") as status:
        from raykd.sweep.removal import nothing_runs, plan_removal, remove  # torch takes seconds to import

        with nothing_runs(storage, sweep, note=stdout.print):
            planned = plan_removal(storage, sweep, changed_before_ns=before)
            status.stop()
            if not planned.parts and not planned.records:
                stdout.print(
                    "clean: every part is used by a sweep"
                    if before is None
                    else "clean: no unused part is as old"
                )
                return
            _show(planned)
            total = size(planned.bytes)
            if not yes and not typer.confirm(f"Remove this ({total})?"):
                stdout.print("clean: nothing is removed")
                return
            remove(storage, planned, note=stdout.print)
    stdout.print(f"clean: {total} freed. Next: raykd list{'' if store == DEFAULT else f' {store}'}")


def _changed_before(age: str | None, sweep: str | None) -> int | None:
    """The time before which a part is old enough, in ns."""
    if age is None:
        return None
    if sweep is not None:
        raise SpecError((Fault("--older-than", None, age, "it is of unused parts; omit it, or --sweep"),))
    found = AGE.fullmatch(age)
    if found is None:
        raise SpecError((Fault("--older-than", None, age, "write hours, days or weeks: 12h, 30d, 8w"),))
    return time.time_ns() - int(found[1]) * HOURS[found[2]] * 3600 * 10**9


def _show(planned: Removal) -> None:
    """Every part with its bytes; where there are many, the largest, and the rest by kind."""
    if planned.records:
        number = sum(stamp.bytes for stamp in planned.records.values())
        stdout.print(f"sweeps/{planned.sweep}: {size(number)}")
    largest = sorted(planned.parts, key=lambda part: -part.bytes)[:SHOWN]
    for part in largest:
        stdout.print(f"{part.kind}/{part.name}: {size(part.bytes)}")
    if others := [part for part in planned.parts if part not in largest]:
        kinds = Counter(part.kind for part in others)
        counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        stdout.print(f"… and {counted}: {size(sum(part.bytes for part in others))}")
    for name in planned.kept:
        stdout.print(f"{name} stays: raykd did not write it")
    if planned.sweep is None and any(part.kind == "runs" for part in planned.parts):
        stdout.print(
            "Runs of raykd distill belong to no sweep, and are among these; raykd list --kind runs shows what they are"
        )
