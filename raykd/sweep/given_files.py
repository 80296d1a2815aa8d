"""Files and folders that a sweep file gives its models: checkpoints, tokenizers, word vectors, a run to start from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from raykd.errors import Fault, MissingError, SpecError, StoreError
from raykd.recipes.run import find_starting_run
from raykd.spec import Document, covering_trees
from raykd.storage.store import Storage
from raykd.sweep.spec import SweepFile, plain_sweep
from raykd.sweep.sweep_faults import leaves


def look_at_given_files(document: Document) -> list[str]:
    """Look at what every alternative of the sweep gives its models, without loading it.

    Returns:
        Notes on what is not there: another sweep may have to write it first.

    Raises:
        SpecError: what is there is something else, such as a folder without a checkpoint; all faults together.
    """
    notes: dict[str, None] = {}
    faults: list[Fault] = []
    for recipe in (plain_sweep(plain.tree) for plain in covering_trees(document.tree)):
        seeds = [
            recipe.with_seed_offset(offset).scoped_student for offset in range(recipe.search.runs_per_setting)
        ]
        for part in _parts((recipe.teachers, *seeds)):
            try:
                part.refuse_unreadable(recipe.corpus.languages)
            except MissingError as error:
                notes |= dict.fromkeys(f"{fault.path}: {error}" for fault in _faults_at(document, error))
            except StoreError as error:
                faults += _faults_at(document, error)
        notes |= dict.fromkeys(_without_start(recipe))
    if faults:
        raise SpecError(document.ordered(faults))
    return list(notes)


@contextmanager
def placed(document: Document) -> Iterator[None]:
    """Turn a missing or damaged file that the sweep file names into a fault at the key that names it.

    Raises:
        SpecError: in the place of such a StoreError.
    """
    try:
        yield
    except StoreError as error:
        faults = [] if error.transient else _faults_at(document, error)
        if not faults:
            raise
        raise SpecError(document.ordered(faults)) from error


def _parts(config: Any) -> Iterator[Any]:
    """The configurations within `config`, itself among them, that name files of their own."""
    if isinstance(config, tuple):
        for each in config:
            yield from _parts(each)
    if isinstance(config, BaseModel):
        if hasattr(config, "refuse_unreadable"):
            yield config
        for name in type(config).model_fields:
            yield from _parts(getattr(config, name))


def _without_start(recipe: SweepFile) -> Iterator[str]:
    if recipe.start_from is not None and find_starting_run(recipe.start_from, Storage(recipe.store)) is None:
        yield f"start_from: {recipe.start_from} is no finished run of the store, and no folder of one"


def _faults_at(document: Document, error: StoreError) -> list[Fault]:
    """The fault at each key whose value is the file that `error` names."""
    paths = [path for path, value in leaves(document.tree) if _names(value, error.name)]
    message = f"{error.name} {error.problem}; {error.hint}"
    return [document.fault(path, message) for path in paths]


def _names(value: Any, file: str) -> bool:
    """Whether a value of a sweep file names this file: as it is, by its absolute path, or for one language or seed."""
    if not isinstance(value, str) or not value:
        return False
    spellings = {value} if "://" in value else {value, str(Path(value)), str(Path(value).absolute())}
    return any(
        re.fullmatch(re.sub(r"\\\{(lang|seed)\\\}", ".+", re.escape(each)), file) for each in spellings
    )
