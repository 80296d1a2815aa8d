"""`raykd check`: validate a sweep file and show what it resolves to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.syntax import Syntax
from ruamel.yaml import YAML, CommentedMap

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.options import Overrides, Small, SweepPath, Variants, file_arguments, load_document
from raykd.corpora import CorpusConfig
from raykd.corpora.preview import preview
from raykd.deploy.pos_models import open_pos_model
from raykd.errors import Fault, SpecError
from raykd.identity import PlainObject
from raykd.pluralise import pluralise
from raykd.redact import redact
from raykd.spec import SMALL, Document, covering_trees, grid_size
from raykd.sweep.named_files import check_named_files
from raykd.sweep.slow_precision import slow_precision
from raykd.sweep.small_variant import larger_settings
from raykd.sweep.spec import plain_sweep
from raykd.sweep.sweep_faults import check_sweep

WIDTH = 100
"""Columns of the resolved file, the same in a terminal and in a file."""
CORPUS: TypeAdapter[CorpusConfig] = TypeAdapter(CorpusConfig)


def check(file: SweepPath, set_: Overrides = None, variant: Variants = None, small: Small = False) -> None:
    """Validate FILE with all its alternatives and variants, read samples of its corpus, and show the first setting."""
    loaded = load_document(file, variant, small, set_)
    check_sweep(loaded)
    misfits = [] if variant or small else _check_variants(file, loaded)
    size = grid_size(loaded.tree)
    settings = "infinitely many settings" if size is None else pluralise(size, "setting")
    heading = f"check: {settings}; the first one, with defaults, without null and empty values:"
    stdout.print(heading)
    resolved = as_yaml(plain_sweep(covering_trees(loaded.tree)[0].tree).model_dump(mode="json"))
    stdout.print(Syntax(redact(resolved), "yaml", background_color="default"), soft_wrap=True)
    files, notes = _look_at_files(loaded)
    notes += [
        *check_named_files(loaded),
        *slow_precision(loaded),
        *_larger_settings_note(loaded, file, set_, variant, small),
    ]
    for note in (*misfits, *notes):
        warn(note, stderr)
    if files:
        stdout.print(f"corpus: the first sentences of {pluralise(files, 'file')} can be read")
    stdout.print(
        f"check: {file} is valid, {settings}. Next: raykd plan {file_arguments(file, variant, small, set_)}"
    )


def as_yaml(resolved: PlainObject) -> str:
    """Return a resolved sweep file as YAML for people: the name first, each section on as few lines as possible."""
    sections = CommentedMap({"name": resolved["name"], **_filled(resolved)})
    for section in sections.values():
        if isinstance(section, CommentedMap):
            section.fa.set_flow_style()
    yaml, text = YAML(), StringIO()
    yaml.width = WIDTH
    yaml.dump(sections, text)
    return text.getvalue().rstrip()


def _filled(value: Any) -> Any:
    """Return the value without null and empty keys."""
    if not isinstance(value, Mapping):
        return value
    filled = {key: _filled(item) for key, item in value.items()}
    non_empty = [(key, pair) for key, pair in filled.items() if pair not in (None, [], {})]
    # The kind comes first: the other values belong to it.
    return CommentedMap(sorted(non_empty, key=lambda pair: pair[0] not in ("kind", "source")))


def _look_at_files(loaded: Document) -> tuple[int, list[str]]:
    """Read the beginning of all corpus files; return their number, and notes on them."""
    alternatives = dict.fromkeys(json.dumps(plain.tree) for plain in covering_trees(loaded.tree["corpus"]))
    looks = [preview(CORPUS.validate_json(text), open_pos_model) for text in alternatives]
    return sum(look.files for look in looks), list(
        dict.fromkeys(note for look in looks for note in look.notes)
    )


def _larger_settings_note(
    loaded: Document, file: Path, set_: list[str] | None, variants: list[str] | None, small: bool
) -> list[str]:
    """A warning about settings not shrunk by the variant `small`; none with other variants."""
    if set_ or variants or small or SMALL not in loaded.variants:
        return []
    try:
        larger = larger_settings(loaded, load_document(file, [SMALL]))
    except SpecError:  # an inherited variant that does not fit has its own warning
        return []
    return [f"variants.{SMALL} is larger than the file: {'; '.join(larger)}"] if larger else []


def _check_variants(file: Path, loaded: Document) -> list[str]:
    """Validate the variants of a sweep file, without `--set`: a variant may have another corpus.

    Returns:
        A warning for each inherited variant that does not fit. It is no error: the file may have changed the sections
        that the variant was written for, and need not use it.

    Raises:
        SpecError: The file's own variants have faults.
    """
    faults: list[Fault] = []
    warnings = []
    for name in loaded.variants:
        try:
            check_sweep(load_document(file, [name]))
        except SpecError as error:
            if loaded.inherits(name):
                warnings.append(_misfit_note(name, error.faults, file))
            else:
                faults += (
                    replace(fault, message=f"{fault.message} (in variant {name})") for fault in error.faults
                )
    if faults:
        raise SpecError(loaded.ordered(faults))
    return warnings


def _misfit_note(variant: str, faults: Sequence[Fault], file: Path) -> str:
    more = f"; {pluralise(len(faults) - 1, 'other fault')}" if len(faults) > 1 else ""
    command = f"raykd check {file_arguments(file, [variant], False)}"
    return (
        f"the inherited variant {variant} does not fit this file and cannot be used: {faults[0]}"
        f"{more}; {command} shows all faults. To use it, write what it lacks below variants.{variant}"
    )
