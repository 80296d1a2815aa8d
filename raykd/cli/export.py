"""`raykd export`: a trained model as files that are served without raykd."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.predict import RUN
from raykd.cli.records import records_of
from raykd.deploy.export import FILES, ONNX, ONNX_INT8, Agreement, Export, export_run
from raykd.errors import Fault, SpecError, StoreError
from raykd.figures.front import pareto_front
from raykd.figures.trial import Trial
from raykd.pluralise import pluralise
from raykd.progress import listen_to_progress
from raykd.recipes.card_config import CardConfig
from raykd.recipes.run import Run
from raykd.report.card import model_card, trial_card
from raykd.report.findings import judge
from raykd.report.readable_numbers import percent, share, size
from raykd.storage.layout import MODEL, WEIGHTS
from raykd.storage.store import Storage
from raykd.sweep.records import SweepRecords
from raykd.sweep.trial_models import TrialModel, seeds_of
from raykd.tasks.masked_lm import MASKED_LM
from raykd.training.transformers_checkpoint import CHECKPOINT_FILES, export_checkpoint

KINDS = {"run": "runs", "teacher": "teachers"}


@dataclass(frozen=True)
class _Source:
    """One model to export."""

    folder: Storage
    """Of its run."""
    store: Storage | None
    """That has the run's corpus; None: not known."""
    card: Callable[[Export], str]
    name: str = ""
    """Below which folder it is written, where several are."""


def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP#TRIAL|SWEEP|RUN", show_default=False,
            help="A trial of a sweep, for example quickstart#7, or quickstart#ship for the one of the verdict and "
            "quickstart#best for the best on dev; a sweep, with --all; the id of a run (run-…, teacher-…); or a run's "
            "folder.",
        ),
    ],
    to: Annotated[str, typer.Argument(metavar="DIR", help="Where to write, a folder or URI.", show_default=False)],
    all_: Annotated[
        bool, typer.Option("--all", help="Every student on the front of SWEEP, each in a folder of its own.")
    ] = False,
    store: Annotated[
        str | None, typer.Option(help="Store of the sweep or run. Default: .raykd, or the store that a folder is in.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of a trial with several seeds, which one: 0, 1, … Default: 0.")
    ] = None,
    license_: Annotated[
        str | None,
        typer.Option(
            "--license", help="Of the model, for its card. Default: card.license of the sweep file.", show_default=False
        ),
    ] = None,
    data_license: Annotated[
        str | None, typer.Option(help="Of the corpus, for the card. Default: card.data_license.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        bool,
        typer.Option(
            "--checkpoint",
            help="Of fine-tuned checkpoints: write a checkpoint of Transformers instead, for example to teach other "
            "sweeps (teachers.path). Pretrained encoders are written so anyway.",
        ),
    ] = False,
    split: Annotated[
        Literal["signs", "whitespace"] | None,
        typer.Option(
            help="How the exported model splits texts into words: signs, at white space and at signs, or whitespace, "
            "at white space alone (for texts with a space between all words). Default: signs; whitespace of a task "
            "that labels whole texts.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of an export in DIR.")] = False,
) -> None:  # fmt: skip
    """Write models as ONNX (float32 and 8-bit, decoding included), safetensors, vocabulary, labels and model card."""
    target = Storage(to)
    given = {"license": license_, "data_license": data_license}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in (name for name, value in options.items() if not value.strip()):
        message = "is empty; name a licence as Hugging Face does (cc-by-4.0), or omit it"
        raise SpecError((Fault(f"--{name.replace('_', '-')}", None, "", message),))
    if all_ or _is_sweep(what, store):
        sources = _of_sweep(what, store, seed, options, every=all_)
    elif seed is not None:
        raise SpecError((Fault("--seed", None, "", "only a trial (SWEEP#TRIAL) has seeds; omit --seed"),))
    else:
        sources = [_of_run(what, store, CardConfig(**options))]
    targets = [target.child(source.name) if source.name else target for source in sources]
    if not overwrite:
        _refuse_files(targets)
    for source, own in zip(sources, targets, strict=True):
        run = source.folder.find_json(MODEL, Run.from_plain)
        if checkpoint or (run is not None and run.task == MASKED_LM.name):
            for name, bytes_ in export_checkpoint(source.folder, own).items():
                stdout.print(f"{own.address}/{name}: {size(bytes_)}")
        else:
            _print(_exported(source, own, split))
    count = pluralise(len(sources), "model")
    if all(target.exists(CHECKPOINT_FILES[0]) for target in targets):
        stdout.print(
            f"export: {count} in {target.address}. Next: from_pretrained of Transformers, or path: of a teacher"
        )
        return
    stdout.print(
        f"export: {count} in {target.address}. Next: raykd predict {shlex.quote(targets[0].address)} FILE "
        "(or three lines of Python: docs/EXPORT.md)"
    )


def _exported(source: _Source, target: Storage, split: str | None) -> Export:
    """Write one model, and show meanwhile what is done."""
    name = f"{target.address}: "
    with stderr.status(f"{name}exporting …") as status:

        def show(done: float | None, doing: str) -> None:
            status.update(f"{name}{doing}{'' if done is None else f', {share(done)}'}")

        with listen_to_progress(show):
            return export_run(source.folder, target, store=source.store, card=source.card, split=split)


def _refuse_files(targets: list[Storage]) -> None:
    """Raises StoreError where one of the files to write is there already; what else lies there is not looked at."""
    for target in targets:
        if there := next((name for name in (*FILES, *CHECKPOINT_FILES) if target.exists(name)), None):
            hint = "give another folder, or --overwrite"
            raise StoreError(target.address, f"holds {there} already", hint)


def _is_sweep(what: str, store: str | None) -> bool:
    """Whether a name that is no run's, and no folder, is a sweep's or a trial's."""
    if RUN.fullmatch(what) or Storage(what).exists(MODEL):
        return False
    if "#" in what.rpartition("/")[2]:
        return True
    with suppress(StoreError):
        records_of(what, store, None, False)
        return True
    return False


def _trial_of(what: str) -> tuple[str, str]:
    """`SWEEP#TRIAL` as its two names; folders above a file may have the sign too."""
    folder, slash, name = what.rpartition("/")
    sweep, sign, number = name.rpartition("#")
    return (f"{folder}{slash}{sweep}", number) if sign else (what, "")


def _of_sweep(
    what: str, store: str | None, seed: int | None, options: dict[str, str], *, every: bool
) -> list[_Source]:
    """The models of one trial, or of the whole front, each trial in a folder of its own."""
    sweep, number = _trial_of(what)
    if every and number:
        raise SpecError(
            (Fault("--all", None, "", f"the whole front is asked for, and trial {number}; omit one"),)
        )
    records = records_of(sweep, store, None, False)
    trials = records.trials()
    front = pareto_front(trials, records.objectives)
    if every:
        if not front:
            raise StoreError(
                f"sweep {sweep!r}", "has no student on its front", "go on with it: raykd sweep --resume"
            )
        chosen = {folder_name(trial): trial for trial in front}
    elif number:
        chosen = {"": _trial(records, trials, number)}
    else:
        named = ", ".join(f"{sweep}#{trial.number}" for trial in front)
        hint = f"its front has {named or 'no student'}" + ("; or give --all" if front else "")
        raise StoreError(f"sweep {sweep!r}", "has many trials, and none is named", hint)
    stated = records.card.model_copy(update=options)
    teachers = records.teachers()
    return [
        _Source(
            records.storage.child(*model.run.folder),
            records.storage,
            trial_card(trial, trials, teachers, sweep=records.name, stated=stated),
            "/".join(part for part in (folder, model.folder) if part),
        )
        for folder, trial in chosen.items()
        for model in _seed(seeds_of(records, trial), trial, seed)
    ]


def _trial(records: SweepRecords, trials: list[Trial], number: str) -> Trial:
    """A complete trial by its number, `best` for the best of the front on dev, `ship` for the one of the verdict."""
    sweep, front = records.name, pareto_front(trials, records.objectives)
    if number == "best" and front:
        return max(front, key=lambda trial: trial.scores.mean("dev") or 0.0)
    if number == "ship" and front:
        labels = records.dev_labels()
        verdict = judge(trials, records.teachers(), objectives=records.objectives, dev_labels=labels).verdict
        if verdict.ship is None:
            raise StoreError(f"sweep {sweep!r}", verdict.text, f"or name a trial: {sweep}#best, {sweep}#0, …")
        return verdict.ship
    # Trials are shown as #05.
    plain = number.lstrip("0") or "0"
    trial = next((trial for trial in trials if str(trial.number) == plain), None)
    if trial is None or trial.state != "COMPLETE":
        problem = f"has no trial {number!r}" if trial is None else f"trial {number} is {trial.state}"
        complete = ", ".join(str(trial.number) for trial in trials if trial.state == "COMPLETE")
        raise StoreError(f"sweep {sweep!r}", problem, f"complete trials are {complete or 'none'}")
    return trial


def _seed(seeds: list[list[TrialModel]], trial: Trial, seed: int | None) -> list[TrialModel]:
    """The models of the seed that is asked for."""
    if seed is not None and seed >= len(seeds):
        message = f"trial {trial.number} has {len(seeds)} seeds; choose from 0 to {len(seeds) - 1}"
        raise SpecError((Fault("--seed", None, str(seed), message),))
    if len(seeds) > 1 and seed is None:
        stdout.print(
            f"trial {trial.number} has {len(seeds)} seeds: seed 0 is exported (--seed chooses another)"
        )
    return seeds[seed or 0]


def folder_name(trial: Trial) -> str:
    """A trial's short name as a folder: `07-top_wk-k3-T2-E32-H64-crf`."""
    return re.sub(r"[^\w.]+", "-", trial.name.replace("=", ""), flags=re.ASCII).strip("-.")


def _of_run(what: str, store: str | None, stated: CardConfig) -> _Source:
    """The folder of a run by its id, or the folder that is given; the store it is in."""
    card = partial(model_card, stated=stated)
    if found := RUN.fullmatch(what):
        at = Storage(store or ".raykd")
        return _Source(at.child(KINDS[found.group(1)], what), at, card)
    folder = Storage(what)
    above = folder.address.rpartition("/")[0]
    inside = above.rpartition("/")[2] in KINDS.values()
    return _Source(folder, Storage(store or above.rpartition("/")[0]) if store or inside else None, card)


def _print(exported: Export) -> None:
    """The files of one model, and how far they agree with it."""
    agreement = exported.agreement
    stdout.print(f"{exported.run.id} in {exported.address}")
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
        warn(
            "the files were not compared with the model: the sentences of its run are not here; give --store"
        )
    else:
        stdout.print(
            f"compared on {pluralise(agreement.sentences, 'sentence')} of {agreement.part}, "
            f"{pluralise(agreement.labels, 'label')}"
        )
    if (trees := exported.trees) is not None:
        read = f"; parts of speech: {trees.pos_origin or f'column {trees.pos.upper()}'}" if trees.pos else ""
        stdout.print(f"trees: heads are labels ({trees.encoding}){read}")
    if agreement is not None and agreement.too_long:
        warn(
            f"{agreement.too_long} sentences were left out: they have more pieces than the graph reads at once "
            f"(piece_limit in export.json)"
        )
    if (problem := exported.splitting.problem) is not None:
        advice = "give words where you have them (label.label)"
        if (other := exported.splitting.proposal) is not None:
            share = exported.splitting.share(other)
            advice += f", or for texts that are written as the corpus --split {other} ({share})"
        warn(f"{problem}; {advice}")


def _differing(agreement: Agreement, name: str) -> str:
    """How many labels of a file differ, and their share; nothing for the model itself."""
    if name not in agreement.differing:
        return ""
    number = agreement.differing[name]
    return f"{number:,} ({100 * number / agreement.labels:.2f} %)" if number else "0"
