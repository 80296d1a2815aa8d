"""The first settings of a search: written in the sweep file, or taken from an earlier sweep's front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raykd.errors import StoreError
from raykd.figures.front import pareto_front
from raykd.identity import PlainObject
from raykd.spec import MisfitError, fit_setting, flatten_tree, searched_paths
from raykd.storage.store import Storage
from raykd.sweep.records import SweepRecords


@dataclass(frozen=True)
class Starts:
    """The first settings of a search."""

    params: Sequence[PlainObject] = ()
    """Values of each setting for searched keys; the sampler draws the rest."""
    misfits: Sequence[str] = ()
    """Trials of an earlier sweep with settings outside the present space, each with the reason."""


def start_fault(setting: PlainObject, space: PlainObject) -> str | None:
    """Return the fault of one setting of `search.start_from`, or None."""
    values = flatten_tree(setting)
    try:
        fit = fit_setting(space, values)
    except MisfitError as error:
        return str(error)
    if unknown := [key for key in values if key not in fit.used]:
        return f"{unknown[0]} is no setting of this file; write its dotted key path, such as student.hidden_dim: 64"
    if not fit.params:
        return "has no value for a searched setting; give a value to one that is searched"
    return None


def starts_of(source: str | Sequence[PlainObject], space: PlainObject, storage: Storage) -> Starts:
    """Return the first settings, fitted to a search space.

    Settings of an earlier sweep count only in the values that this space searches: an earlier search with another
    corpus or fewer epochs can start this one.

    Args:
        source: Name of an earlier sweep in the store, or settings by dotted key path.
        space: The searchable sections of the sweep file.
        storage: The store.

    Raises:
        StoreError: the store does not have the named sweep.
    """
    if not isinstance(source, str):
        return Starts([fit_setting(space, flatten_tree(setting)).params for setting in source])
    records = SweepRecords(storage, source)
    if not records.exists():
        raise StoreError(
            f"sweep {source!r}",
            f"is not in the store {storage.address}",
            "name an earlier sweep in search.start_from",
        )
    front = {trial.number for trial in pareto_front(records.trials(), records.objectives)}
    settings: list[PlainObject] = []
    misfits: list[str] = []
    for record in records.load():
        if record.trial.number in front:
            try:
                params = fit_setting(space, values_of_searched_keys(record.resolved, space)).params
            except MisfitError as error:
                misfits.append(f"{record.trial.name}: {error}")
                continue
            if params and params not in settings:
                settings.append(params)
    return Starts(settings, misfits)


def values_of_searched_keys(resolved: PlainObject, space: PlainObject) -> PlainObject:
    """Values of a setting for the searched keys of a space; fixed keys keep the values of the space."""
    searched = searched_paths(space)
    return {
        key: value
        for key, value in flatten_tree(resolved).items()
        if any(key == path or key.startswith(f"{path}.") for path in searched)
    }
