"""`raykd corpus`: make, look at and check corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from raykd.cli.console import stderr, stdout
from raykd.cli.options import Overrides, SweepPath, document
from raykd.corpora import Corpus, describe, make_files, read_corpus
from raykd.errors import StoreError
from raykd.spec import covering
from raykd.sweep.driver import plain_sweep
from raykd.sweep.spec import check_sweep

app = typer.Typer(no_args_is_help=True, help="Make, look at and check corpora.")
