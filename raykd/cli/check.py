"""`raykd check`: validate a sweep file and show what it resolves to."""

from __future__ import annotations

import json
from dataclasses import replace

from pydantic import TypeAdapter
from rich.syntax import Syntax

from raykd.cli.console import stdout
from raykd.cli.options import Overrides, Small, SweepPath, Variants, again, document
from raykd.corpora import CorpusConfig
from raykd.corpora.glance import glance
from raykd.errors import SpecError
from raykd.redact import redacted
from raykd.spec import Document, covering, grid_size
from raykd.sweep.spec import check_sweep, plain_sweep

CORPUS: TypeAdapter[CorpusConfig] = TypeAdapter(CorpusConfig)


def check(file: SweepPath, set_: Overrides = None, variant: Variants = None, small: Small = False) -> None:
    """Validate FILE, every alternative and, where none is named, every variant, look at its corpus, show the first."""
    loaded = document(file, set_, variant, small)
    check_sweep(loaded)
    if not variant and not small:
        # A fault in a variant is reported now, not when the variant is used. What --set says is of this one: a
        # variant may have another corpus.
        for name in loaded.variants:
            _check_variant(document(file, None, [name]), name)
    resolved = plain_sweep(covering(loaded.tree)[0].tree).model_dump(mode="json")
    shown = redacted(json.dumps(resolved, indent=2, ensure_ascii=False))
    stdout.print(Syntax(shown, "json", background_color="default"))
    size = grid_size(loaded.tree)
    files = _look_at_files(loaded)
    if files:
        stdout.print(f"corpus: the first sentences of {files} files can be read", highlight=False)
    settings = "infinitely many" if size is None else size
    stdout.print(
        f"check: {file} is valid, {settings} settings. Next: raykd plan {again(file, variant, small, set_)}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _look_at_files(loaded: Document) -> int:
    """Read the beginnings of all files of every alternative of the corpus; how many there are."""
    alternatives = dict.fromkeys(json.dumps(plain.tree) for plain in covering(loaded.tree["corpus"]))
    return sum(glance(CORPUS.validate_json(text)) for text in alternatives)


def _check_variant(loaded: Document, name: str) -> None:
    try:
        check_sweep(loaded)
    except SpecError as error:
        faults = (replace(fault, message=f"{fault.message} (in variant {name})") for fault in error.faults)
        raise SpecError(tuple(faults)) from None
