"""The records of the sweep that a verb is given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from raykd.cli.options import again, at, document
from raykd.errors import Fault, SpecError, StoreError
from raykd.spec.messages import nearest_words
from raykd.storage.store import Storage
from raykd.sweep.records import NAME, SweepRecords, sweeps_in


def records_of(
    sweep: str,
    store: str | None,
    variants: list[str] | None,
    small: bool,
    overrides: list[str] | None = None,
    *,
    command: str = "",
) -> SweepRecords:
    """The records of a sweep that is named, or given as its file with its variants and overrides. `command` stands
    before what to write instead, where the store has another form of the sweep.

    Raises:
        SpecError: variants or overrides are given for a name.
        StoreError: the store does not have it.
    """
    name, uri, others = sweep, store or ".raykd", ()
    if Path(sweep).suffix not in (".yaml", ".yml"):
        if variants or small:
            wanted = "-".join([sweep, *(variants or ()), *(["small"] if small else ())])
            message = f"only a file has variants, and {sweep} is a name; write {wanted}"
            raise SpecError((Fault("--small" if small else "--variant", None, "", message),))
        if overrides:
            message = f"only a file has keys to override, and {sweep} is a name; omit --set, or give the file"
            raise SpecError((Fault("--set", None, "", message),))
    else:
        loaded = document(Path(sweep), overrides, variants, small)
        name, uri = str(loaded.tree.get("name")), store or str(loaded.tree.get("store", ".raykd"))
        # A file without its variant is another sweep, and the other way round.
        others = tuple([each] for each in loaded.variants) if not (variants or small) else ([],)
    if re.fullmatch(NAME, name) and (records := SweepRecords(Storage(uri), name)).exists():
        return records
    hint = "run raykd sweep first, or give --store"
    if instead := _instead(sweep, name, Storage(uri), others, overrides):
        hint = f"it has {instead[0]}: write {command}{instead[1]}{at(store)}"
    raise StoreError(f"sweep {name!r}", f"is not in the store {uri}", hint)


def _instead(
    given: str, name: str, storage: Storage, others: Iterable[list[str]], overrides: list[str] | None
) -> tuple[str, str] | None:
    """The name of a sweep that the store has in the place of `name`, and how it is given. `others`: variants with
    which the given file may have been run.
    """
    for variants in others:
        with suppress(SpecError):  # an override, or a strategy, that this variant does not have
            other = str(document(Path(given), overrides, variants).tree.get("name"))
            if re.fullmatch(NAME, other) and SweepRecords(storage, other).exists():
                return other, again(given, variants, False, overrides)
    names = [each.name for each in sweeps_in(storage)]
    near = [each for each in names if each.startswith(f"{name}-")] or nearest_words(name, names)
    return (near[0], shlex.quote(near[0])) if near else None
