"""`raykd doctor`: find damage in a store."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from raykd.cli.console import stdout
from raykd.cli.list import open_store
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
        bool, typer.Option("--repair", help="Remove damaged parts; raykd sweep --resume computes them again.")
    ] = False,
) -> None:
    """Check everything in a store and report damage; with --repair, remove the damaged parts."""
    storage = open_store(store)
    with stdout.status("reading …") as status:
        report = examine_store(storage, on_part=lambda name: status.update(f"reading {escape(name)}"))
    _print(report)
    if repair_:
        damaged = [name for damage in report.damages for name in damage.remove]
        refuse_if_running(storage, note=stdout.print, damaged=damaged)
    if repair_ and (report.damages or report.temporary_files):
        repair_store(storage, report)
        if report.damages:
            stdout.print("doctor: damaged parts removed. Next: raykd sweep FILE --resume computes them again")
        else:
            stdout.print("doctor: temporary files removed")
    elif report.damages or report.temporary_files:
        stdout.print(f"Next: raykd doctor {store} --repair")
    if report.damages and not repair_:
        raise typer.Exit(StoreError.exit_code)


def _print(report: Examination) -> None:
    table = Table(box=None)
    for title, justify in (("", "left"), ("files", "right"), ("bytes", "right"), ("damaged", "right")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for kind, files in report.files.items():
        damaged = sum(damage.name.startswith(f"{kind}/") for damage in report.damages)
        table.add_row(kind, f"{files:,}", size(report.bytes[kind]), str(damaged or "–"))
    stdout.print(table)
    for damage in report.damages:
        stdout.print(f"{damage.name}: {damage.problem}; once it is removed, {damage.consequence}")
    for foreign_part in report.other_version:
        stdout.print(f"{foreign_part.name}: {foreign_part.problem}; it stays")
    if report.temporary_files:
        size_of_remains = size(sum(report.temporary_files.values()))
        stdout.print(f"{len(report.temporary_files)} temporary files of killed processes: {size_of_remains}")
    foreign = (
        f"; {len(report.other_version)} of another version, which stay: {OTHER_VERSION}"
        if report.other_version
        else ""
    )
    stdout.print(f"doctor: {len(report.damages)} damaged of {sum(report.files.values()):,} files{foreign}")
