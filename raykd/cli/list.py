"""`raykd list`: list the contents of a store."""

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
from raykd.sweep.inventory import SweepSummary, count_parts, sweep_summaries

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
        typer.Option(
            help="List the parts of this kind instead, with a description and the sweeps that use them."
        ),
    ] = None,
) -> None:
    """List the sweeps in STORE (default: .raykd), or with --kind its runs, teachers, transfer sets or other parts."""
    storage = open_store(store)
    if kind is not None:
        with stderr.status("reading …"):
            from raykd.sweep.part_list import rows  # torch takes seconds to import

            parts = rows(storage, kind, storage.files())
        _print_parts(kind, parts)
        return
    with stderr.status("reading …"):
        files = storage.files()
        sweeps, kinds = sweep_summaries(storage, files), count_parts(files)
    _print_sweeps(sweeps)
    totals_by_kind = ", ".join(
        f"{name} {count:,} ({size(bytes_)})" for name, (count, bytes_) in kinds.items()
    )
    stdout.print(f"list: {storage.address}: {totals_by_kind or 'nothing'}")
    first_with_trials = next((sweep.name for sweep in sweeps if sweep.trials), None)
    stdout.print(
        f"Next: raykd front {first_with_trials}{_at(store)}"
        if first_with_trials
        else "Next: raykd sweep FILE"
    )


def open_store(store: str) -> Storage:
    """Return the store at an address. Raises StoreError if the folder does not exist."""
    storage = Storage(store)
    if storage.is_local and not Path(storage.uri).is_dir():
        hint = "give the folder that `store` names in the sweep file"
        raise StoreError(storage.address, "there is no such folder", hint)
    return storage


def local_date(modified_ns: int | None) -> str:
    """Return the day of a change in the local time zone; a dash if the time is unknown."""
    if modified_ns is None:
        return NONE
    return f"{datetime.fromtimestamp(modified_ns / 1e9, UTC).astimezone():%Y-%m-%d}"


def _at(store: str) -> str:
    return "" if store == DEFAULT else f" --store {shlex.quote(store)}"


def _print_sweeps(sweeps: Sequence[SweepSummary]) -> None:
    table = _table("sweep", "state", "complete>", "failed>", "running>", "best>", "changed", "size>")
    for sweep in sweeps:
        counts = [str(sweep.trials.get(state, 0)) for state in ("COMPLETE", "FAILED", "RUNNING")]
        table.add_row(
            sweep.name,
            sweep.state,
            *counts,
            percent(sweep.best),
            local_date(sweep.modified_ns),
            size(sweep.bytes),
        )
    if sweeps:
        stdout.print(table)
    for sweep in sweeps:
        # No column for stopped trials: most sweeps have none, and the table has to fit a narrow terminal.
        if stopped := sweep.trials.get("PRUNED", 0):
            stdout.print(f"{sweep.name}: {pluralise(stopped, 'trial')} stopped early")
        if sweep.note:
            stdout.print(f"{sweep.name}: {sweep.note}")


def _print_parts(kind: str, rows: Sequence[Row]) -> None:
    table = _table("part", "what", "changed", "size>", "sweeps")
    for row in rows:
        sweeps = ", ".join(row.sweeps) or ("–" if kind == "costs" else "none")
        table.add_row(
            row.part.name, row.about, local_date(row.part.modified_ns), size(row.part.bytes), sweeps
        )
    stdout.print(table)
    total = size(sum(row.part.bytes for row in rows))
    stdout.print(f"list: {len(rows)} {kind}, {total}. Next: raykd clean shows what no sweep uses")


def _table(*titles: str) -> Table:
    """A table with the columns `titles`; numbers stand below titles that end in `>`."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in titles:
        name = title.removesuffix(">")
        folded = name in ("sweep", "what", "sweeps")
        table.add_column(
            name, justify="right" if name != title else "left", overflow="fold", no_wrap=not folded,
            min_width=12 if folded else None,
        )  # fmt: skip
    return table
