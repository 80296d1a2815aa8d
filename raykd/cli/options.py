"""Options that several verbs share."""

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
    """The sweeps of the store that was given, for completion in a shell; of a store on this machine alone."""
    sweeps = Path(ctx.params.get("store") or ".raykd", "sweeps")
    names = sorted(path.name for path in sweeps.iterdir()) if sweeps.is_dir() else []
    return [name for name in names if name.startswith(incomplete)]


SweepPath = Annotated[Path, typer.Argument(metavar="FILE", help="The sweep file.", show_default=False)]
SweepName = Annotated[
    str, typer.Argument(help="A sweep's name, or its file.", show_default=False, autocompletion=sweep_names)
]
SweepStore = Annotated[str | None, typer.Option(help="Store of the sweep, if its name is given.")]
ExportDir = Annotated[
    Path, typer.Argument(metavar="DIR", help="What raykd export wrote.", show_default=False)
]
Int8 = Annotated[bool, typer.Option("--int8", help="Use the file of 8 bits.")]
Threads = Annotated[int, typer.Option(min=1, help="Of the processor.")]
Split = Annotated[
    Literal["signs", "whitespace"] | None,
    typer.Option(
        "--split",
        help="How texts are split into words: signs, at white space and at signs, or whitespace, at white space alone "
        "(for texts with a space between all words). Default: as the export says.",
        show_default=False,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, for example --set corpus.root=/data."),
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="NAME", help="Apply one of FILE's variants; may be repeated."),
]
Small = Annotated[bool, typer.Option("--small", help="Short for --variant small: minutes, not hours.")]
Address = Annotated[
    str | None,
    typer.Option(help="Ray cluster to join. Default: $RAY_ADDRESS, else Ray is started on this machine."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Print lines, as in a log, instead of drawing.")]


def document(
    path: Path, overrides: list[str] | None, variants: list[str] | None = None, small: bool = False
) -> Document:
    """Load a sweep file with its variants and overrides.

    Raises:
        SpecError: if it cannot be read, or has relative paths in a Ray job, which are lost when the job ends.
    """
    loaded = load(path, overrides or (), variants=_names(variants, small))
    if "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:  # set by Ray for a job's command
        _refuse_relative(loaded)
    return loaded


def refuse_existing(out: Path | None, overwrite: bool) -> None:
    """Raises StoreError where a file to write is there already, or its folder is not."""
    if out is not None and out.exists() and not overwrite:
        raise StoreError(str(out), "exists already", "give another name with --out, or add --overwrite")
    if out is not None and not out.absolute().parent.is_dir():
        raise StoreError(
            str(out), "its folder does not exist", "make the folder, or give another name with --out"
        )


def again(
    file: str | Path, variants: list[str] | None, small: bool, overrides: list[str] | None = None
) -> str:
    """The file with its variants and overrides, as arguments of the next command."""
    options = [
        f"--{SMALL}" if name == SMALL else f"--variant {shlex.quote(name)}"
        for name in _names(variants, small)
    ]
    options += [f"--set {shlex.quote(override)}" for override in overrides or ()]
    return " ".join([shlex.quote(str(file)), *options])


def as_good_as(teachers: Sequence[object], score_name: str) -> str:
    """The option that asks for the score of the teachers, where there are any."""
    return f"--where '{score_name} >= 0.95 * teacher' " if teachers else ""


def at(store: str | None) -> str:
    """The store that was given, as an argument of the next command."""
    return f" --store {shlex.quote(store)}" if store else ""


def _names(variants: list[str] | None, small: bool) -> list[str]:
    return list(dict.fromkeys([*(variants or ()), *([SMALL] if small else ())]))


def _refuse_relative(loaded: Document) -> None:
    # A job works in a temporary copy of the directory: what is written there is lost with the job.
    # MLflow takes seconds to import, and few commands run in a job.
    from raykd.tracking.server import is_relative

    stated = loaded.tree.get("tracking")
    tracking: dict[str, Any] = stated if isinstance(stated, dict) else {}
    uri = tracking.get("uri", "sqlite:///mlflow.db")
    # MLflow's client writes the files itself where it writes into a database itself.
    files = tracking.get("artifacts", "mlruns" if str(uri).startswith("postgresql") else "/")
    places: tuple[tuple[str, Any, Callable[[str], bool], str], ...] = (
        ("store", loaded.tree.get("store", ".raykd"), lambda store: _below_here(expand_variables(store)), "/shared/raykd"),
        ("tracking.uri", uri, lambda uri: is_relative(expand_variables(uri)), "http://mlflow:5000"),
        ("tracking.artifacts", files, _below_here, "s3://bucket/mlflow"),
    )  # fmt: skip
    faults = [
        loaded.fault(
            tuple(path.split(".")),
            f"{value!r} is relative, and a job's working directory is a throw-away copy; "
            f"give an absolute path or URI, for example --set {path}={example}",
        )
        for path, value, lost, example in places
        if isinstance(value, str) and lost(value)
    ]  # fmt: skip
    if faults:
        raise SpecError(tuple(faults))


def _below_here(place: str) -> bool:
    return not urlsplit(place).scheme and not place.startswith("/")
