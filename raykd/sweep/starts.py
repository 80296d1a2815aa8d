"""The settings that a search tries first: written in the sweep file, or those of an earlier sweep's front."""

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
    """What is tried first."""

    params: Sequence[PlainObject] = ()
    """Of each setting what it decides of the space; the sampler draws the rest."""
    misfits: Sequence[str] = ()
    """Of an earlier sweep's settings that this space does not have: the trial and why."""


def start_fault(setting: PlainObject, space: PlainObject) -> str | None:
    """What is wrong with one setting of `search.start_from`; None: nothing."""
    wanted = flatten_tree(setting)
    try:
        fit = fit_setting(space, wanted)
    except MisfitError as error:
        return str(error)
    if unknown := [key for key in wanted if key not in fit.used]:
        return f"{unknown[0]} is no setting of this file; write its dotted key path, such as student.hidden_dim: 64"
    if not fit.params:
        return "decides nothing that is searched; give a value to a setting that is"
    return None


def starts_of(given: str | Sequence[PlainObject], space: PlainObject, storage: Storage) -> Starts:
    """The settings that `given` names, as they fit `space`, the searchable sections of the sweep file.

    Of an earlier sweep only what this space searches counts: with another corpus or more epochs it is the start of
    this one.

    Raises:
        StoreError: the store does not have the sweep that is named.
    """
    if not isinstance(given, str):
        return Starts([fit_setting(space, flatten_tree(setting)).params for setting in given])
    records = SweepRecords(storage, given)
    if not records.exists():
        raise StoreError(
            f"sweep {given!r}",
            f"is not in the store {storage.address}",
            "name an earlier sweep in search.start_from",
        )
    front = {trial.number for trial in pareto_front(records.trials(), records.objectives)}
    found: list[PlainObject] = []
    misfits: list[str] = []
    for record in records.load():
        if record.trial.number in front:
            try:
                params = fit_setting(space, said_of_searched(record.resolved, space)).params
            except MisfitError as error:
                misfits.append(f"{record.trial.name}: {error}")
                continue
            if params and params not in found:
                found.append(params)
    return Starts(found, misfits)


def said_of_searched(resolved: PlainObject, space: PlainObject) -> PlainObject:
    """What a setting says of what the space searches; what the space fixes is the space's."""
    searched = searched_paths(space)
    return {
        key: value
        for key, value in flatten_tree(resolved).items()
        if any(key == path or key.startswith(f"{path}.") for path in searched)
    }
