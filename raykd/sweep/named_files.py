"""Files and folders named in a sweep file: checkpoints, tokenizers, word vectors, starting runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from raykd.errors import Fault, MissingError, SpecError, StoreError
from raykd.layers.hf_config import HFConfig
from raykd.recipes.run import find_starting_run
from raykd.spec import Document, covering_trees
from raykd.storage.store import Storage
from raykd.sweep.spec import SweepFile, plain_sweep
from raykd.sweep.sweep_faults import leaves
from raykd.teachers import AskedAnnotator


def check_named_files(document: Document) -> list[str]:
    """Check the files named in all alternatives of the sweep, without loading them.

    Args:
        document: The sweep file.

    Returns:
        Notes on missing files; another sweep may have to write them first.

    Raises:
        SpecError: An existing file is of another kind, such as a folder without a checkpoint, or a checkpoint does not
            show the attention scores that an objective compares; with all such faults.
    """
    notes: dict[str, None] = {}
    faults: list[Fault] = []
    for recipe in (plain_sweep(plain.tree) for plain in covering_trees(document.tree)):
        seeds = [
            recipe.with_seed_offset(offset).scoped_student for offset in range(recipe.search.runs_per_setting)
        ]
        compares_attention = any(stage.objective.attention_layers for stage in recipe.all_stages)
        for part in _parts((recipe.teachers, *seeds)):
            try:
                part.refuse_unreadable(recipe.corpus.languages)
                if isinstance(part, AskedAnnotator):
                    part.find_source(source_folders(document))
                if isinstance(part, HFConfig) and part in (recipe.teachers, *seeds) and compares_attention:
                    part.refuse_hidden_attention()
            except MissingError as error:
                notes |= dict.fromkeys(f"{fault.path}: {error}" for fault in _faults_at(document, error))
            except StoreError as error:
                faults += _faults_at(document, error)
        notes |= dict.fromkeys(_missing_start(recipe))
    if faults:
        raise SpecError(document.ordered(faults))
    return list(notes)


def source_folders(document: Document) -> list[Path]:
    """Return the folders in which Python files of a sweep file are looked for: its own, and the present one.

    Args:
        document: The sweep file.
    """
    return list(dict.fromkeys([Path(document.file).absolute().parent, Path.cwd()]))


@contextmanager
def file_errors_as_faults(document: Document) -> Iterator[None]:
    """Turn an error about a file named in the sweep file into a fault at the file's key.

    Args:
        document: The sweep file.

    Raises:
        SpecError: In place of the StoreError of a missing or damaged file.
    """
    try:
        yield
    except StoreError as error:
        faults = [] if error.transient else _faults_at(document, error)
        if not faults:
            raise
        raise SpecError(document.ordered(faults)) from error


def _parts(config: Any) -> Iterator[Any]:
    """Yield the configurations within `config`, and `config` itself, that name files."""
    if isinstance(config, tuple):
        for item in config:
            yield from _parts(item)
    if isinstance(config, BaseModel):
        if hasattr(config, "refuse_unreadable"):
            yield config
        for name in type(config).model_fields:
            yield from _parts(getattr(config, name))


def _missing_start(recipe: SweepFile) -> Iterator[str]:
    if recipe.start_from is not None and find_starting_run(recipe.start_from, Storage(recipe.store)) is None:
        yield f"start_from: {recipe.start_from} is no finished run of the store, and no folder of one"


def _faults_at(document: Document, error: StoreError) -> list[Fault]:
    """Return a fault at every key with the file named by `error`."""
    paths = [path for path, value in leaves(document.tree) if _is_spelling_of(value, error.name)]
    message = f"{error.name} {error.problem}; {error.hint}"
    return [document.fault(path, message) for path in paths]


def _is_spelling_of(value: Any, file: str) -> bool:
    """True if a value of a sweep file names the file: as it is, by its absolute path, or for one language or seed."""
    if not isinstance(value, str) or not value:
        return False
    spellings = {value} if "://" in value else {value, str(Path(value)), str(Path(value).absolute())}
    return any(
        re.fullmatch(re.sub(r"\\\{(lang|seed)\\\}", ".+", re.escape(spelling)), file)
        for spelling in spellings
    )
