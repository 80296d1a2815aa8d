"""`raykd export`: a trained model as files that are served without raykd."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from raykd.cli.console import marked, stdout
from raykd.cli.front import records_of
from raykd.errors import Fault, SpecError, StoreError
from raykd.report.form import percent, size
from raykd.runs.export import FILES, ONNX, ONNX_INT8, Agreement, Exported, export_run
from raykd.runs.models import WEIGHTS
from raykd.storage import Storage

RUN = re.compile(r"(run|teacher)-[0-9a-f]{16}")
KINDS = {"run": "runs", "teacher": "teachers"}


@dataclass(frozen=True)
class _Source:
    """One model to export."""

    folder: Storage
    """Of its run."""
    store: Storage | None
    """That has the run's corpus; None: not known."""
    name: str = ""
    """Below which folder it is written, where several are."""


def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP#TRIAL|RUN", show_default=False,
            help="A trial of a sweep, for example quickstart#7; the id of a run (run-…, teacher-…); or a run's folder.",
        ),
    ],
    to: Annotated[str, typer.Argument(metavar="DIR", help="Where to write, a folder or URI.", show_default=False)],
    store: Annotated[
        str | None, typer.Option(help="Store of the sweep or run. Default: .raykd, or the store that a folder is in.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of a trial with several seeds, which one: 0, 1, … Default: 0.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of an export in DIR.")] = False,
) -> None:  # fmt: skip
    """Write a model as ONNX (float32 and 8-bit, decoding included), safetensors, vocabulary and labels."""
    target = Storage(to)
    _refuse_files(target, overwrite)
    if "#" in what:
        sources = _of_trial(what, store, seed)
    elif seed is not None:
        raise SpecError((Fault("--seed", None, "", "only a trial (SWEEP#TRIAL) has seeds; omit --seed"),))
    else:
        sources = [_of_run(what, store)]
    targets = [target.child(source.name) if source.name else target for source in sources]
    for source, own in zip(sources, targets, strict=True):
        _print(export_run(source.folder, own, store=source.store))
    count = "1 model" if len(sources) == 1 else f"{len(sources)} models, one for each language,"
    _line(
        f"export: {count} in {target.address}. Next: raykd predict {targets[0].address} FILE "
        "(or three lines of Python: docs/EXPORT.md)"
    )


def _refuse_files(target: Storage, overwrite: bool) -> None:
    there = [name for name in target.names() if name.rpartition("/")[2] in FILES]
    if there and not overwrite:
        hint = "give another folder, or --overwrite"
        raise StoreError(target.address, f"holds {there[0]} already", hint)


def _of_trial(what: str, store: str | None, seed: int | None) -> list[_Source]:
    """The models of one seed of a trial: one, or one for each language."""
    sweep, _, number = what.rpartition("#")
    records = records_of(sweep, store, None, False)
    trials = records.trials()
    trial = next((trial for trial in trials if str(trial.number) == number), None)
    if trial is None or trial.state != "COMPLETE":
        problem = f"has no trial {number!r}" if trial is None else f"trial {number} is {trial.state}"
        complete = ", ".join(str(trial.number) for trial in trials if trial.state == "COMPLETE")
        raise StoreError(f"sweep {sweep!r}", problem, f"complete trials are {complete or 'none'}")
    runs = records.runs(trial)
    seeds = list(dict.fromkeys(run.training["seed"] for run, _ in runs))
    if seed is not None and seed >= len(seeds):
        message = f"trial {number} has {len(seeds)} seeds; choose from 0 to {len(seeds) - 1}"
        raise SpecError((Fault("--seed", None, str(seed), message),))
    if len(seeds) > 1 and seed is None:
        _line(f"trial {number} has {len(seeds)} seeds: seed 0 is exported (--seed chooses another)")
    own = [(run, result) for run, result in runs if run.training["seed"] == seeds[seed or 0]]
    names = ["+".join(result.scores.by_language("dev")) for _, result in own] if len(own) > 1 else [""]
    folders = [records.storage.child(*run.folder) for run, _ in own]
    return [_Source(folder, records.storage, name) for folder, name in zip(folders, names, strict=True)]


def _of_run(what: str, store: str | None) -> _Source:
    """The folder of a run by its id, or the folder that is given; the store it is in."""
    if found := RUN.fullmatch(what):
        at = Storage(store or ".raykd")
        return _Source(at.child(KINDS[found.group(1)], what), at)
    folder = Storage(what)
    above = folder.address.rpartition("/")[0]
    inside = above.rpartition("/")[2] in KINDS.values()
    return _Source(folder, Storage(store or above.rpartition("/")[0]) if store or inside else None)


def _print(exported: Exported) -> None:
    """The files of one model, and how far they agree with it."""
    agreement = exported.agreement
    _line(f"{exported.run_id} in {exported.address}")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("file", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    if agreement is not None:
        table.add_column("labels that differ", justify="right")
        table.add_column(agreement.score_label, justify="right")
    for name in (WEIGHTS, ONNX, ONNX_INT8):
        cells = [] if agreement is None else [_differing(agreement, name), percent(agreement.scores[name])]
        table.add_row(name, size(exported.sizes[name]), *cells)
    stdout.print(table)
    if agreement is None:
        _warn(
            "the files were not compared with the model: the sentences of its run are not here; give --store"
        )
    else:
        _line(
            f"compared on {agreement.sentences:,} sentences of {agreement.part}, {agreement.labels:,} labels"
        )
    if agreement is not None and agreement.too_long:
        _warn(
            f"{agreement.too_long} sentences were left out: they have more pieces than the graph reads at once "
            f"(piece_limit in export.json)"
        )


def _differing(agreement: Agreement, name: str) -> str:
    """How many labels of a file differ, and their share; nothing for the model itself."""
    if name not in agreement.differing:
        return ""
    number = agreement.differing[name]
    return f"{number:,} ({100 * number / agreement.labels:.2f} %)" if number else "0"


def _line(text: str) -> None:
    stdout.print(text, highlight=False, soft_wrap=True)


def _warn(text: str) -> None:
    stdout.print(marked("warning", text), highlight=False, soft_wrap=True)
