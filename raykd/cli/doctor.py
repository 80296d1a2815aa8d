"""`raykd doctor`: what is damaged in a store."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from raykd.cli.console import stdout
from raykd.cli.list import opened
from raykd.errors import StoreError
from raykd.report.readable_numbers import size
from raykd.storage.sealed_json import OTHER_VERSION
from raykd.sweep.doctor import Examination, examine_store, repair_store
from raykd.sweep.uses import refuse_if_running


def doctor(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="A store: a folder, s3:// or gs://.", show_default=False)
    ],
    repair_: Annotated[
        bool, typer.Option("--repair", help="Remove what is damaged; raykd sweep --resume computes it again.")
    ] = False,
) -> None:
    """Check all that a store holds, say what is damaged, and remove that on --repair."""
    storage = opened(store)
    with stdout.status("reading …") as status:
        found = examine_store(storage, on_part=lambda name: status.update(f"reading {escape(name)}"))
    _print(found)
    if repair_:
        damaged = [name for damage in found.damages for name in damage.remove]
        refuse_if_running(storage, note=stdout.print, damaged=damaged)
    if repair_ and (found.damages or found.temporary_files):
        repair_store(storage, found)
        stdout.print("doctor: removed; raykd sweep FILE --resume computes again what is missing")
    elif found.damages:
        stdout.print(f"Next: raykd doctor {store} --repair")
    if found.damages and not repair_:
        raise typer.Exit(StoreError.exit_code)


def _print(found: Examination) -> None:
    table = Table(box=None)
    for title, justify in (("", "left"), ("files", "right"), ("bytes", "right"), ("damaged", "right")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for kind, files in found.files.items():
        damaged = sum(damage.name.startswith(f"{kind}/") for damage in found.damages)
        table.add_row(kind, f"{files:,}", size(found.bytes[kind]), str(damaged or "–"))
    stdout.print(table)
    for damage in found.damages:
        stdout.print(f"{damage.name}: {damage.problem}; once it is removed, {damage.consequence}")
    for other in found.other_version:
        stdout.print(f"{other.name}: {other.problem}; it stays")
    if found.temporary_files:
        left = size(sum(found.temporary_files.values()))
        stdout.print(f"{len(found.temporary_files)} temporary files that a kill left: {left}")
    others = f"; {len(found.other_version)} of another version, which stay: {OTHER_VERSION}" if found.other_version else ""
    stdout.print(f"doctor: {len(found.damages)} damaged of {sum(found.files.values()):,} files{others}")
