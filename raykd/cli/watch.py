"""`raykd watch`: show the progress of a sweep, from any terminal or machine."""

from __future__ import annotations

import time

from raykd.cli.console import can_draw, stdout
from raykd.cli.live import StatusView, drawing, status_lines
from raykd.cli.options import (
    Overrides,
    Plain,
    Small,
    SweepName,
    SweepStore,
    Variants,
    file_arguments,
    store_argument,
)
from raykd.cli.records import find_records
from raykd.errors import StoreError
from raykd.sweep.lease import lease_holder
from raykd.sweep.records import SweepRecords
from raykd.sweep.status import Status

REFRESH_S = 5.0
"""Seconds between two readings of the store."""


def watch(
    sweep: SweepName,
    store: SweepStore = None,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    plain: Plain = False,
) -> None:
    """Show the progress of SWEEP from its store until it ends; once if there is no terminal, or with --plain."""
    records = find_records(sweep, store, variant, small, set_, command="raykd watch ")
    status = _read(records)
    if can_draw(plain=plain):
        with drawing(StatusView(lambda: status)):
            while not status.end and _has_driver(records):
                time.sleep(REFRESH_S)
                status = _read(records)
    else:
        for text in status_lines(status):
            stdout.print(text)
    stdout.print(
        f"watch: {_state(records, status)}. "
        f"Next: raykd front {file_arguments(sweep, variant, small, set_)}{store_argument(store)}"
    )


def _read(records: SweepRecords) -> Status:
    """Return the status in the store; raise StoreError if no driver has written one yet."""
    status = records.status()
    if status is None:
        hint = "wait some seconds after the start of raykd sweep, or show the ended trials with raykd front"
        raise StoreError(f"sweep {records.name!r}", "has no progress in the store yet", hint)
    return status


def _has_driver(records: SweepRecords) -> bool:
    holder = lease_holder(records.folder)
    return holder is not None and holder.lives


def _state(records: SweepRecords, status: Status) -> str:
    """The state of the sweep in words."""
    if status.end:
        return f"{records.name}: {status.end} ({status.written})"
    holder = lease_holder(records.folder)
    if holder is None or not holder.lives:
        driver = f" ({holder.process})" if holder else ""
        return (
            f"{records.name}: its driver{driver} died, last seen {status.written}; "
            "continue with raykd sweep FILE --resume"
        )
    return f"{records.name}: {holder.process} works on it, last seen {status.written}"
