"""`raykd clean`: remove the parts of a store that no sweep uses, or one sweep with the parts that only it used."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from raykd.cli.console import stderr, stdout
from raykd.cli.list import DEFAULT, StorePath, open_store
from raykd.errors import Fault, SpecError
from raykd.report.readable_numbers import size

if TYPE_CHECKING:
    from raykd.sweep.removal import Removal

AGE = re.compile(r"(\d+)(h|d|w)")
HOURS = {"h": 1, "d": 24, "w": 168}
MOST_PARTS = 40
"""Largest number of parts listed by name."""


def clean(
    store: StorePath = DEFAULT,
    sweep: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove this sweep, with all parts that no other sweep uses."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Remove only parts unchanged for this long: 12h, 30d or 8w."),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Remove the answers of this annotator (answers-…); nothing else does."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
) -> None:
    """Remove parts of STORE (default: .raykd) that no sweep uses, also from distill and precompute; asks first."""
    if answers is not None and (sweep is not None or older_than is not None):
        raise SpecError(
            (Fault("--answers", None, answers, "it cannot be combined with other options; omit them"),)
        )
    storage, before = open_store(store), _changed_before(older_than, sweep)
    with stderr.status("reading …") as status:
        # torch takes seconds to import
        from raykd.sweep.removal import nothing_runs, plan_answers_removal, plan_removal, remove

        with nothing_runs(storage, sweep, note=stdout.print):
            if answers is not None:
                planned = plan_answers_removal(storage, answers, note=stdout.print)
            else:
                planned = plan_removal(storage, sweep, changed_before_ns=before)
            status.stop()
            if not planned.parts and not planned.records:
                stdout.print(
                    "clean: every part is used by a sweep"
                    if before is None
                    else "clean: no unused part is that old"
                )
                return
            _show(planned)
            total = size(planned.bytes)
            if not yes and not typer.confirm(f"Remove this ({total})?"):
                stdout.print("clean: nothing was removed")
                return
            remove(storage, planned, note=stdout.print)
    stdout.print(f"clean: {total} freed. Next: raykd list{'' if store == DEFAULT else f' {store}'}")


def _changed_before(age: str | None, sweep: str | None) -> int | None:
    """Return the time of `age` ago, in ns since 1970: parts changed since then stay. None without an age."""
    if age is None:
        return None
    if sweep is not None:
        raise SpecError((Fault("--older-than", None, age, "it cannot be combined with --sweep; omit one"),))
    match = AGE.fullmatch(age)
    if match is None:
        raise SpecError((Fault("--older-than", None, age, "write hours, days or weeks: 12h, 30d, 8w"),))
    return time.time_ns() - int(match[1]) * HOURS[match[2]] * 3600 * 10**9


def _show(planned: Removal) -> None:
    """Print the bytes of all parts; of many parts the largest one by one, and the rest by kind."""
    if planned.records:
        bytes_ = sum(stamp.bytes for stamp in planned.records.values())
        stdout.print(f"sweeps/{planned.sweep}: {size(bytes_)}")
    largest = sorted(planned.parts, key=lambda part: -part.bytes)[:MOST_PARTS]
    for part in largest:
        stdout.print(f"{part.kind}/{part.name}: {size(part.bytes)}")
    if rest := [part for part in planned.parts if part not in largest]:
        kinds = Counter(part.kind for part in rest)
        counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        stdout.print(f"… and {counted}: {size(sum(part.bytes for part in rest))}")
    for name in planned.foreign_files:
        stdout.print(f"{name} stays, as raykd did not write it")
    if planned.sweep is None and any(part.kind == "runs" for part in planned.parts):
        stdout.print(
            "Runs of raykd distill belong to no sweep and are among these; raykd list --kind runs describes them"
        )
