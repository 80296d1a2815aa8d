"""`raykd check`: validate a sweep file and show what it resolves to."""

from __future__ import annotations

import json

from rich.syntax import Syntax

from raykd.cli.console import stdout
from raykd.cli.options import Overrides, Small, SweepPath, Variants, again, document
from raykd.redact import redacted
from raykd.spec import covering, grid_size
from raykd.sweep.spec import check_sweep, plain_sweep


def check(file: SweepPath, set_: Overrides = None, variant: Variants = None, small: Small = False) -> None:
    """Validate FILE with all its alternatives, and show the first one with every default."""
    loaded = document(file, set_, variant, small)
    check_sweep(loaded)
    # A fault in a variant is reported now, not when the variant is used.
    for name in loaded.variants:
        check_sweep(document(file, set_, [*(variant or ()), name], small))
    resolved = plain_sweep(covering(loaded.tree)[0].tree).model_dump(mode="json")
    shown = redacted(json.dumps(resolved, indent=2, ensure_ascii=False))
    stdout.print(Syntax(shown, "json", background_color="default"))
    size = grid_size(loaded.tree)
    settings = "infinitely many" if size is None else size
    stdout.print(
        f"check: {file} is valid, {settings} settings. Next: raykd plan {again(file, variant, small, set_)}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
