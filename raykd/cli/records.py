"""Finding the records of the sweep given to a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from raykd.cli.options import file_arguments, load_document, store_argument
from raykd.errors import Fault, SpecError, StoreError
from raykd.spec.messages import nearest_words
from raykd.storage.store import Storage
from raykd.sweep.records import NAME, SweepRecords, sweeps_in


def find_records(
    sweep: str,
    store: str | None,
    variants: list[str] | None,
    small: bool,
    overrides: list[str] | None = None,
    *,
    command: str = "",
) -> SweepRecords:
    """Return the records of a sweep, given by name or by file.

    Args:
        sweep: Name or sweep file.
        store: Store; None: that of the file, or .raykd.
        variants: Variants of the file.
        small: Whether the variant `small` is added.
        overrides: Overrides of the file.
        command: Beginning of the command to suggest if the store has the sweep under another name.

    Raises:
        SpecError: A name has variants or overrides.
        StoreError: The store does not have the sweep.
    """
    name, uri, alternatives = sweep, store or ".raykd", ()
    if Path(sweep).suffix not in (".yaml", ".yml"):
        if variants or small:
            full_name = "-".join([sweep, *(variants or ()), *(["small"] if small else ())])
            message = f"only a file has variants, but {sweep} is a name; write {full_name}"
            raise SpecError((Fault("--small" if small else "--variant", None, "", message),))
        if overrides:
            message = f"only a file has keys to override, but {sweep} is a name; omit --set, or give the file"
            raise SpecError((Fault("--set", None, "", message),))
    else:
        loaded = load_document(Path(sweep), variants, small, overrides)
        name, uri = str(loaded.tree.get("name")), store or str(loaded.tree.get("store", ".raykd"))
        # A file without its variant is another sweep than with it.
        alternatives = ([],) if variants or small else tuple([variant] for variant in loaded.variants)
    if re.fullmatch(NAME, name) and (records := SweepRecords(Storage(uri), name)).exists():
        return records
    hint = "run raykd sweep first, or give --store"
    if instead := _nearest_sweep(sweep, name, Storage(uri), alternatives, overrides):
        hint = f"it has {instead[0]}: write {command}{instead[1]}{store_argument(store)}"
    raise StoreError(f"sweep {name!r}", f"is not in the store {uri}", hint)


def _nearest_sweep(
    argument: str, name: str, storage: Storage, alternatives: Iterable[list[str]], overrides: list[str] | None
) -> tuple[str, str] | None:
    """The name of a similar sweep in the store, and the arguments that name it."""
    for variants in alternatives:
        with suppress(SpecError):  # this variant may lack an overridden key or a strategy
            candidate = str(load_document(Path(argument), variants, overrides=overrides).tree.get("name"))
            if re.fullmatch(NAME, candidate) and SweepRecords(storage, candidate).exists():
                return candidate, file_arguments(argument, variants, False, overrides)
    names = [records.name for records in sweeps_in(storage)]
    near = [
        name_in_store for name_in_store in names if name_in_store.startswith(f"{name}-")
    ] or nearest_words(name, names)
    return (near[0], shlex.quote(near[0])) if near else None
