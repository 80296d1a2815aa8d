"""`raykd list`: what is in a store."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich import box
from rich.table import Table

from raykd.cli.console import stderr, stdout
from raykd.errors import StoreError
from raykd.pluralise import pluralise
from raykd.report.readable_numbers import NONE, percent, size
from raykd.storage.store import Storage
from raykd.sweep.inventory import SweepSummary, sweep_summaries, count_parts

if TYPE_CHECKING:
    from raykd.sweep.part_list import Row

DEFAULT = ".raykd"
Kind = Literal[
    "runs", "teachers", "transfer", "corpora", "vocabularies", "embeddings", "encoded", "encoders", "costs"
]
StorePath = Annotated[
    str, typer.Argument(metavar="[STORE]", help="A store: a folder, s3:// or gs://.", show_default=False)
]


def list(
    store: StorePath = DEFAULT,
    kind: Annotated[
        Kind | None,
        typer.Option(help="Show the parts of a kind instead, with what they are and which sweeps use them."),
    ] = None,
) -> None:
    """Show the sweeps in STORE (default: .raykd), or with --kind its runs, teachers, transfer sets, …"""
    storage = opened(store)
    if kind is not None:
        with stderr.status("reading …"):
            from raykd.sweep.part_list import rows  # torch takes seconds to import

            parts = rows(storage, kind, storage.files())
        _print_parts(kind, parts)
        return
    with stderr.status("reading …"):
        files = storage.files()
        found, kinds = sweep_summaries(storage, files), count_parts(files)
    _print_sweeps(found)
    kept = ", ".join(f"{name} {count:,} ({size(number)})" for name, (count, number) in kinds.items())
    stdout.print(f"list: {storage.address}: {kept or 'nothing'}")
    shown = next((each.name for each in found if each.trials), None)
    stdout.print(f"Next: raykd front {shown}{_at(store)}" if shown else "Next: raykd sweep FILE")


def opened(store: str) -> Storage:
    """The store, which must be there. Raises StoreError where there is no such folder."""
    storage = Storage(store)
    if storage.is_local and not Path(storage.uri).is_dir():
        hint = "give the folder that `store` names in the sweep file"
        raise StoreError(storage.address, "there is no such folder", hint)
    return storage


def when(modified_ns: int | None) -> str:
    """The day of a change, in this machine's time zone."""
    if modified_ns is None:
        return NONE
    return f"{datetime.fromtimestamp(modified_ns / 1e9, UTC).astimezone():%Y-%m-%d}"


def _at(store: str) -> str:
    return "" if store == DEFAULT else f" --store {shlex.quote(store)}"


def _print_sweeps(found: Sequence[SweepSummary]) -> None:
    table = _table("sweep", "state", "complete>", "failed>", "running>", "best>", "changed", "size>")
    for each in found:
        counts = [str(each.trials.get(state, 0)) for state in ("COMPLETE", "FAILED", "RUNNING")]
        table.add_row(
            each.name, each.state, *counts, percent(each.best), when(each.modified_ns), size(each.bytes)
        )
    if found:
        stdout.print(table)
    for each in found:
        # Not a column: most sweeps stop none, and the table has to fit a narrow terminal.
        if stopped := each.trials.get("PRUNED", 0):
            stdout.print(f"{each.name}: {pluralise(stopped, 'trial')} stopped early")
        if each.note:
            stdout.print(f"{each.name}: {each.note}")


def _print_parts(kind: str, found: Sequence[Row]) -> None:
    table = _table("part", "what", "changed", "size>", "sweeps")
    for each in found:
        sweeps = ", ".join(each.sweeps) or ("–" if kind == "costs" else "none")
        table.add_row(each.part.name, each.about, when(each.part.modified_ns), size(each.part.bytes), sweeps)
    stdout.print(table)
    total = size(sum(each.part.bytes for each in found))
    stdout.print(f"list: {len(found)} {kind}, {total}. Next: raykd clean shows what no sweep uses")


def _table(*titles: str) -> Table:
    """Columns; those whose title ends in > are of numbers."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in titles:
        name = title.removesuffix(">")
        folded = name in ("sweep", "what", "sweeps")
        table.add_column(
            name, justify="right" if name != title else "left", overflow="fold", no_wrap=not folded,
            min_width=12 if folded else None,
        )  # fmt: skip
    return table
