"""Options shared by several commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from raykd.errors import SpecError, StoreError
from raykd.redact import expand_variables
from raykd.spec import SMALL, Document, load


def sweep_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the sweeps of a local store, for completion in a shell."""
    sweeps = Path(ctx.params.get("store") or ".raykd", "sweeps")
    names = sorted(path.name for path in sweeps.iterdir()) if sweeps.is_dir() else []
    return [name for name in names if name.startswith(incomplete)]


SweepPath = Annotated[Path, typer.Argument(metavar="FILE", help="The sweep file.", show_default=False)]
SweepName = Annotated[
    str, typer.Argument(help="Name of a sweep, or its file.", show_default=False, autocompletion=sweep_names)
]
SweepStore = Annotated[str | None, typer.Option(help="Store of the sweep, if you give its name.")]
ExportDir = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder written by raykd export.", show_default=False)
]
Int8 = Annotated[bool, typer.Option("--int8", help="Use the model with 8-bit weights.")]
Threads = Annotated[int, typer.Option(min=1, help="Number of processor threads.")]
Away = Annotated[
    Literal["student", "error"],
    typer.Option(
        "--away",
        help="For a cascade whose teacher is away or fails: give the student's answer, marked (student), or stop with "
        "an error (error).",
    ),
]
RunCode = Annotated[
    bool,
    typer.Option(
        "--run-code",
        help="For a cascade whose teacher is an annotator: open it, which runs a Python file of DIR. Only if you trust "
        "DIR; without it that teacher is away.",
    ),
]
Split = Annotated[
    Literal["signs", "whitespace"] | None,
    typer.Option(
        "--split",
        help="Split texts into words at white space and punctuation (signs), or only at white space (whitespace), for "
        "texts with a space between all words. Default: the setting of the export.",
        show_default=False,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a value of FILE: --set corpus.root=/data. May be repeated.",
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="NAME", help="Apply a variant of FILE. May be repeated."),
]
Small = Annotated[bool, typer.Option("--small", help="Short for --variant small: takes minutes, not hours.")]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster to join. Default: $RAY_ADDRESS; without it, Ray starts on this machine."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Print lines as in a log, also on a terminal.")]


def load_document(
    path: Path, variants: list[str] | None, small: bool = False, overrides: list[str] | None = None
) -> Document:
    """Load a sweep file, and apply variants and overrides.

    Args:
        path: The sweep file.
        variants: Variants of the file.
        small: True adds the variant `small`.
        overrides: Overrides of the file, `key=value`.

    Raises:
        SpecError: The file cannot be read, or it has relative paths in a Ray job, whose files are lost at its end.
    """
    loaded = load(path, overrides or (), variants=_names(variants, small))
    if "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:  # set by Ray for a job's command
        _refuse_relative(loaded)
    return loaded


def refuse_existing(out: Path | None, overwrite: bool) -> None:
    """Raise StoreError if a file to write exists already, or its folder does not exist."""
    if out is not None and out.exists() and not overwrite:
        raise StoreError(str(out), "exists already", "give another name with --out, or add --overwrite")
    if out is not None and not out.absolute().parent.is_dir():
        raise StoreError(
            str(out), "its folder does not exist", "make the folder, or give another name with --out"
        )


def file_arguments(
    file: str | Path, variants: list[str] | None, small: bool, overrides: list[str] | None = None
) -> str:
    """Return file, variants and overrides as arguments for the next command."""
    options = [
        f"--{SMALL}" if name == SMALL else f"--variant {shlex.quote(name)}"
        for name in _names(variants, small)
    ]
    options += [f"--set {shlex.quote(override)}" for override in overrides or ()]
    return " ".join([shlex.quote(str(file)), *options])


def where_argument(teachers: Sequence[object], score_name: str) -> str:
    """Return the option `--where` for students close to the teacher's score; empty without a teacher."""
    return f"--where '{score_name} >= 0.95 * teacher' " if teachers else ""


def store_argument(store: str | None) -> str:
    """Return the store as an argument for the next command; empty if none was given."""
    return f" --store {shlex.quote(store)}" if store else ""


def _names(variants: list[str] | None, small: bool) -> list[str]:
    return list(dict.fromkeys([*(variants or ()), *([SMALL] if small else ())]))


def _refuse_relative(loaded: Document) -> None:
    # A job works in a temporary copy of the directory, which is deleted with everything written to it.
    # The import stands here as MLflow takes seconds, and few commands run in a job.
    from raykd.tracking.server import is_relative

    stated = loaded.tree.get("tracking")
    tracking: dict[str, Any] = stated if isinstance(stated, dict) else {}
    uri = tracking.get("uri", "sqlite:///mlflow.db")
    # With a database, MLflow's client writes the files itself.
    files = tracking.get("artifacts", "mlruns" if str(uri).startswith("postgresql") else "/")
    places: tuple[tuple[str, Any, Callable[[str], bool], str], ...] = (
        ("store", loaded.tree.get("store", ".raykd"),
         lambda store: _is_below_working_directory(expand_variables(store)), "/shared/raykd"),
        ("tracking.uri", uri, lambda uri: is_relative(expand_variables(uri)), "http://mlflow:5000"),
        ("tracking.artifacts", files, _is_below_working_directory, "s3://bucket/mlflow"),
    )  # fmt: skip
    faults = [
        loaded.fault(
            tuple(path.split(".")),
            f"{value!r} is relative, and the working directory of a job is deleted at its end; "
            f"give an absolute path or URI, for example --set {path}={example}",
        )
        for path, value, lost, example in places
        if isinstance(value, str) and lost(value)
    ]  # fmt: skip
    if faults:
        raise SpecError(tuple(faults))


def _is_below_working_directory(place: str) -> bool:
    return not urlsplit(place).scheme and not place.startswith("/")
