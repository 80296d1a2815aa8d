"""`raykd doctor`: what is damaged in a store, and what no sweep needs any more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from raykd.cli.console import stdout
from raykd.errors import StoreError
from raykd.report import form
from raykd.storage import Storage
from raykd.sweep.doctor import Examined, examine, refuse_if_running, repair, unused


def doctor(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="A store: a folder, s3:// or gs://.", show_default=False)
    ],
    repair_: Annotated[
        bool, typer.Option("--repair", help="Remove what is damaged; raykd sweep --resume computes it again.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove what no sweep refers to, after asking: also runs of raykd distill."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Check all that a store holds, say what is damaged, remove it on --repair, free space on --prune."""
    storage = Storage(store)
    if storage.is_local and not Path(storage.uri).is_dir():
        raise StoreError(
            storage.address, "there is no such folder", "give the folder that `store` names in the sweep file"
        )
    with stdout.status("reading …") as status:
        found = examine(storage, each=lambda name: status.update(f"reading {escape(name)}"))
    _print(found)
    if repair_ or prune:
        refuse_if_running(storage, note=_line)
    if repair_ and (found.damages or found.left):
        repair(storage, found)
        _line("doctor: removed; raykd sweep FILE --resume computes again what is missing")
    elif found.damages:
        _line(f"Next: raykd doctor {store} --repair")
    if prune and found.damages and not repair_:
        _line("prune: nothing is removed while something is damaged; add --repair")
    elif prune:
        _prune(storage, yes)
    if found.damages and not repair_:
        raise typer.Exit(StoreError.exit_code)


def _print(found: Examined) -> None:
    table = Table(box=None)
    for title, justify in (("", "left"), ("files", "right"), ("bytes", "right"), ("damaged", "right")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for kind, files in found.files.items():
        damaged = sum(damage.name.startswith(f"{kind}/") for damage in found.damages)
        table.add_row(kind, f"{files:,}", form.size(found.bytes[kind]), str(damaged or "–"))
    stdout.print(table)
    for damage in found.damages:
        _line(f"{damage.name}: {damage.problem}; once it is removed, {damage.again}")
    if found.left:
        left = form.size(sum(found.left.values()))
        _line(f"{len(found.left)} temporary files that a kill left: {left}")
    _line(f"doctor: {len(found.damages)} damaged of {sum(found.files.values()):,} files")


def _prune(storage: Storage, yes: bool) -> None:
    free = unused(storage)
    if not free:
        _line("prune: every file is referred to by a sweep")
        return
    parts = sorted({"/".join(name.split("/")[:2]) for name in free})
    for part in parts:
        own = sum(size for name, size in free.items() if name == part or name.startswith(f"{part}/"))
        _line(f"{part}: {form.size(own)}")
    asked = f"Remove these {len(parts)} parts that no sweep refers to ({form.size(sum(free.values()))})?"
    if not yes and not typer.confirm(asked):
        _line("prune: nothing is removed")
        return
    for name in free:
        storage.remove(name)
    _line(f"prune: {form.size(sum(free.values()))} freed")


def _line(text: str) -> None:
    stdout.print(text, highlight=False, soft_wrap=True)
