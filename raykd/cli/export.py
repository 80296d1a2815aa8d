"""`raykd export`: write a trained model as files that are served without raykd."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import typer
from rich import box
from rich.table import Table

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.predict import RUN
from raykd.cli.records import find_records
from raykd.deploy.cascade import CascadeExport, Wish, export_cascade
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
from raykd.tasks import find_task
from raykd.tasks.masked_lm import MASKED_LM
from raykd.training.transformers_checkpoint import CHECKPOINT_FILES, export_checkpoint

KINDS = {"run": "runs", "teacher": "teachers"}
Written = TypeVar("Written")


@dataclass(frozen=True)
class _Source:
    """A model to export."""

    folder: Storage
    """Folder of the model's run."""
    store: Storage | None
    """Store with the run's corpus; None if unknown."""
    card: Callable[[Export], str]
    name: str = ""
    """Subfolder to write to, if several models are exported."""


def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP#TRIAL|SWEEP|RUN", show_default=False,
            help="The model: a trial of a sweep (quickstart#7), the one to ship (quickstart#ship), the best on dev "
            "(quickstart#best), a whole sweep with --all (quickstart), the id of a run (run-…, teacher-…), or the "
            "folder of a run.",
        ),
    ],
    to: Annotated[str, typer.Argument(metavar="DIR", help="Folder or URI to write to.", show_default=False)],
    all_: Annotated[
        bool, typer.Option("--all", help="Export all students on the front of SWEEP, each to its own folder.")
    ] = False,
    store: Annotated[
        str | None, typer.Option(help="Store of the sweep or run. Default: .raykd, or the store around a run's folder.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Number of the seed, for a trial with several: 0, 1, … Default: 0.")
    ] = None,
    license_: Annotated[
        str | None,
        typer.Option(
            "--license", help="Licence of the model, for its card. Default: card.license of the sweep file.",
            show_default=False,
        ),
    ] = None,
    data_license: Annotated[
        str | None,
        typer.Option(help="Licence of the corpus, for the card. Default: card.data_license.", show_default=False),
    ] = None,
    checkpoint: Annotated[
        bool,
        typer.Option(
            "--checkpoint",
            help="Write a fine-tuned model as a checkpoint of Transformers, for example as the "
            "teacher of another sweep "
            "(teachers.path). Pretrained encoders always have this form.",
        ),
    ] = False,
    split: Annotated[
        Literal["signs", "whitespace"] | None,
        typer.Option(
            help="Split texts into words at white space and punctuation (signs), or only at white "
            "space (whitespace), for "
            "texts with a space between all words. Default: signs, or whitespace for tasks that label whole texts.",
            show_default=False,
        ),
    ] = None,
    cascade: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, show_default=False,
            help="Write a cascade: the teacher labels the sentences of which the student is not sure, as few as keep "
            "this share of the teacher's score on dev (0.99).",
        ),
    ] = None,
    cascade_share: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, show_default=False,
            help="Write a cascade in which the teacher labels this share of the sentences of dev (0.2).",
        ),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", show_default=False,
            help="The teacher of a cascade: the id of a run, or its folder. Default: the one that the student learnt "
            "from.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of an export in DIR.")] = False,
) -> None:  # fmt: skip
    """Write models as ONNX (float32 and 8-bit, with decoding), safetensors, vocabulary, labels and model card."""
    target = Storage(to)
    licences = {"license": license_, "data_license": data_license}
    options: dict[str, Any] = {name: value for name, value in licences.items() if value is not None}
    for name in (name for name, value in options.items() if not value.strip()):
        message = "is empty; name a licence as Hugging Face does (cc-by-4.0), or omit it"
        raise SpecError((Fault(f"--{name.replace('_', '-')}", None, "", message),))
    if all_ or _names_sweep_or_trial(source, store):
        models = _sweep_sources(source, store, seed, options, whole_front=all_)
    elif seed is not None:
        raise SpecError(
            (Fault("--seed", None, "", "only a trial has several seeds; give SWEEP#TRIAL, or omit --seed"),)
        )
    else:
        models = [_run_source(source, store, CardConfig(**options))]
    wish = _wish(cascade, cascade_share, teacher, checkpoint=checkpoint)
    targets = [target.child(model.name) if model.name else target for model in models]
    if not overwrite:
        _refuse_files(targets)
    for model, folder in zip(models, targets, strict=True):
        run = model.folder.find_json(MODEL, Run.from_plain)
        if checkpoint or (run is not None and run.task == MASKED_LM.name):
            for name, bytes_ in export_checkpoint(model.folder, folder).items():
                stdout.print(f"{folder.address}/{name}: {size(bytes_)}")
        elif wish is not None:
            written = _with_progress(
                folder,
                lambda model=model, folder=folder: export_cascade(
                    model.folder, _teacher_of(model, teacher), folder, store=_store_of(model), wish=wish,
                    model_card=model.card, split=split,
                ),
            )  # fmt: skip
            print_cascade(written)
        else:
            _print(
                _with_progress(
                    folder,
                    lambda model=model, folder=folder: export_run(
                        model.folder, folder, store=model.store, model_card=model.card, split=split
                    ),
                )
            )
    count = pluralise(len(models), "model")
    if all(folder.exists(CHECKPOINT_FILES[0]) for folder in targets):
        stdout.print(
            f"export: {count} in {target.address}. Next: load it with from_pretrained of Transformers, or set "
            "teachers.path to it"
        )
        return
    stdout.print(
        f"export: {count} in {target.address}. Next: raykd predict {shlex.quote(targets[0].address)} FILE "
        "(or three lines of Python: docs/EXPORT.md)"
    )


def _with_progress(target: Storage, write: Callable[[], Written]) -> Written:
    """Write one model, and show the progress."""
    name = f"{target.address}: "
    with stderr.status(f"{name}exporting …") as status:

        def show(fraction: float | None, doing: str) -> None:
            status.update(f"{name}{doing}{'' if fraction is None else f', {share(fraction)}'}")

        with listen_to_progress(show):
            return write()


def _wish(kept: float | None, share_: float | None, teacher: str | None, *, checkpoint: bool) -> Wish | None:
    """Return what a cascade must reach; None if none is written."""
    if kept is None and share_ is None:
        if teacher is not None:
            raise SpecError(
                (Fault("--teacher", None, "", "is for a cascade; give --cascade or --cascade-share too"),)
            )
        return None
    if checkpoint or (kept is not None and share_ is not None):
        option, other = ("--checkpoint", "--cascade") if checkpoint else ("--cascade", "--cascade-share")
        raise SpecError(
            (Fault(option, None, "", f"cannot be given together with {other}; omit one of them"),)
        )
    return Wish(kept, share_)


def _teacher_of(source: _Source, teacher: str | None) -> Storage:
    """Return the folder of the run that is the teacher of a cascade."""
    store = _store_of(source)
    if teacher is not None:
        match = RUN.fullmatch(teacher)
        return store.child(KINDS[match.group(1)], teacher) if match else Storage(teacher)
    sources = source.folder.read_json(MODEL, Run.from_plain).sources
    if len(sources) == 1:
        return store.child("teachers", sources[0].teacher_id)
    problem = f"learnt from {len(sources) or 'no'} teachers, and a cascade has one"
    raise StoreError(
        source.folder.address, problem, "name it: --teacher teacher-…, or another run that labels the same"
    )


def _store_of(source: _Source) -> Storage:
    if source.store is None:
        problem = "its store is not known, and a threshold is chosen on dev"
        raise StoreError(source.folder.address, problem, "give --store")
    return source.store


def _refuse_files(targets: list[Storage]) -> None:
    """Raise StoreError if a file to write exists; other files in the folder do not matter."""
    for target in targets:
        if existing := next((name for name in (*FILES, *CHECKPOINT_FILES) if target.exists(name)), None):
            hint = "give another folder, or --overwrite"
            raise StoreError(target.address, f"holds {existing} already", hint)


def _names_sweep_or_trial(name: str, store: str | None) -> bool:
    """True if a name belongs to a sweep or a trial, not to a run or a folder."""
    if RUN.fullmatch(name) or Storage(name).exists(MODEL):
        return False
    if "#" in name.rpartition("/")[2]:
        return True
    with suppress(StoreError):
        find_records(name, store, None, False)
        return True
    return False


def _split_trial(name_of_trial: str) -> tuple[str, str]:
    """Split `SWEEP#TRIAL`; the folders of a sweep file may contain the sign too."""
    folder, slash, name = name_of_trial.rpartition("/")
    sweep, sign, number = name.rpartition("#")
    return (f"{folder}{slash}{sweep}", number) if sign else (name_of_trial, "")


def _sweep_sources(
    name: str, store: str | None, seed: int | None, options: dict[str, str], *, whole_front: bool
) -> list[_Source]:
    """The models of one trial, or of the whole front with a folder for each trial."""
    sweep, number = _split_trial(name)
    if whole_front and number:
        raise SpecError(
            (
                Fault(
                    "--all", None, "", f"it means the whole front, but trial {number} is named too; omit one"
                ),
            )
        )
    records = find_records(sweep, store, None, False)
    trials = records.trials()
    front = pareto_front(trials, records.objectives)
    if whole_front:
        if not front:
            raise StoreError(
                f"sweep {sweep!r}", "has no student on its front", "continue it with raykd sweep --resume"
            )
        chosen = {folder_name(trial): trial for trial in front}
    elif number:
        chosen = {"": _trial(records, trials, number)}
    else:
        names = ", ".join(f"{sweep}#{trial.number}" for trial in front)
        hint = f"its front has {names or 'no student'}" + ("; or give --all" if front else "")
        raise StoreError(f"sweep {sweep!r}", "has several trials, and you named none", hint)
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
        for model in _models_of_seed(seeds_of(records, trial), trial, seed)
    ]


def _trial(records: SweepRecords, trials: list[Trial], number: str) -> Trial:
    """Return the complete trial with a number; `best` is the best of the front on dev, `ship` the one to ship."""
    sweep, front = records.name, pareto_front(trials, records.objectives)
    if number == "best" and front:
        return max(front, key=lambda trial: trial.scores.mean("dev") or 0.0)
    if number == "ship" and front:
        labels = records.dev_labels()
        verdict = judge(trials, records.teachers(), objectives=records.objectives, dev_labels=labels).verdict
        if verdict.ship is None:
            raise StoreError(f"sweep {sweep!r}", verdict.text, f"or name a trial: {sweep}#best, {sweep}#0, …")
        return verdict.ship
    # Tables show a trial's number as #05.
    plain = number.lstrip("0") or "0"
    trial = next((trial for trial in trials if str(trial.number) == plain), None)
    if trial is None or trial.state != "COMPLETE":
        problem = f"has no trial {number!r}" if trial is None else f"trial {number} is {trial.state}"
        complete = ", ".join(str(trial.number) for trial in trials if trial.state == "COMPLETE")
        raise StoreError(f"sweep {sweep!r}", problem, f"complete trials are {complete or 'none'}")
    return trial


def _models_of_seed(seeds: list[list[TrialModel]], trial: Trial, seed: int | None) -> list[TrialModel]:
    """The models of one seed of a trial."""
    if seed is not None and seed >= len(seeds):
        message = f"trial {trial.number} has {len(seeds)} seeds; choose from 0 to {len(seeds) - 1}"
        raise SpecError((Fault("--seed", None, str(seed), message),))
    if len(seeds) > 1 and seed is None:
        stdout.print(
            f"trial {trial.number} has {len(seeds)} seeds: seed 0 is exported (--seed chooses another)"
        )
    return seeds[seed or 0]


def folder_name(trial: Trial) -> str:
    """Return a trial's short name as a folder: `07-top_wk-k3-T2-E32-H64-crf`."""
    return re.sub(r"[^\w.]+", "-", trial.name.replace("=", ""), flags=re.ASCII).strip("-.")


def _run_source(run: str, store: str | None, stated: CardConfig) -> _Source:
    """Return the source for a run given by id or folder, with the store if known."""
    card = partial(model_card, stated=stated)
    if match := RUN.fullmatch(run):
        store_of_run = Storage(store or ".raykd")
        return _Source(store_of_run.child(KINDS[match.group(1)], run), store_of_run, card)
    folder = Storage(run)
    above = folder.address.rpartition("/")[0]
    inside = above.rpartition("/")[2] in KINDS.values()
    return _Source(folder, Storage(store or above.rpartition("/")[0]) if store or inside else None, card)


def _print(exported: Export) -> None:
    """Print the files of one model, and their agreement with it."""
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
            "the files were not compared with the model, as the sentences of its run are not here; give --store"
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
            f"{agreement.too_long} sentences were left out, as they have more pieces than the graph can read "
            f"(piece_limit in export.json)"
        )
    if (problem := exported.splitting.problem) is not None:
        advice = "give words where you have them (label.label)"
        if (proposed_split := exported.splitting.proposal) is not None:
            share = exported.splitting.share(proposed_split)
            advice += f", or for texts that are written as the corpus --split {proposed_split} ({share})"
        warn(f"{problem}; {advice}")


def print_cascade(written: CascadeExport) -> None:
    """Print the parts of a cascade, its rule, its scores and its times."""
    for exported in (written.student, *([written.teacher] if written.teacher else ())):
        _print(exported)
    rule, label = written.rule, find_task(written.student.run.task).score_label
    stdout.print(
        f"cascade: the teacher labels sentences with a confidence below {rule.threshold:.4f}; "
        f"{MEASURES[rule.confidence]}"
    )
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("part", no_wrap=True)
    for heading in ("passed on", "95 %", label, "kept", "95 %", "student", "teacher"):
        table.add_column(heading, justify="right", no_wrap=True)
    for part, outcome in written.outcomes.items():
        table.add_row(
            part,
            percent(outcome.share), f"{percent(outcome.share_from)} to {percent(outcome.share_to)}",
            percent(outcome.score),
            percent(outcome.kept), f"{percent(outcome.kept_from)} to {percent(outcome.kept_to)}",
            percent(outcome.student), percent(outcome.teacher),
        )  # fmt: skip
    stdout.print(table)
    sentences = ", ".join(f"{outcome.sentences:,} of {part}" for part, outcome in written.outcomes.items())
    stdout.print(
        f"sentences: {sentences}; 95 % intervals by a bootstrap over them; the threshold is chosen on dev"
    )
    times = written.milliseconds
    if "cascade" not in times:
        stdout.print(
            f"mean time of a sentence of dev, alone on one thread: student {times['student']:.3g} ms; that of the "
            "teacher is not measured"
        )
        return
    stdout.print(
        f"mean time of a sentence of dev, alone on one thread: student {times['student']:.3g} ms, teacher "
        f"{times['teacher']:.3g} ms, cascade {times['cascade']:.3g} ms ({times['teacher'] / times['cascade']:.2g} "
        "times the speed of the teacher)"
    )


MEASURES = {
    "word": "confidence is the least marginal of its labels",
    "labelling": "confidence is the probability of all its labels together",
    "span": "confidence is the least probability of its spans",
}


def _differing(agreement: Agreement, name: str) -> str:
    """Return number and share of the labels in which a file and the model differ; empty for the model itself."""
    if name not in agreement.differing:
        return ""
    number = agreement.differing[name]
    return f"{number:,} ({100 * number / agreement.labels:.2f} %)" if number else "0"
