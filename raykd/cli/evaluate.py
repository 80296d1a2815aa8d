"""`raykd evaluate`: score an exported model on labelled files, and show its errors."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.options import ExportDir, Int8, Overwrite, Threads, refuse_existing
from raykd.cli.predict import check_export
from raykd.corpora.detect.file_names import UNKNOWN
from raykd.corpora.labelled_files import LabelledFile, LabelledText, read_labelled
from raykd.corpora.sentence import display_words
from raykd.deploy.pos_models import open_pos_model
from raykd.errors import CorpusError, StoreError
from raykd.forms.utterance_marks import UTTERANCE
from raykd.metrics.reliability import BINS
from raykd.pluralise import pluralise
from raykd.report.readable_numbers import gain, percent
from raykd.storage.layout import CARD
from raykd.storage.store import Storage

if TYPE_CHECKING:
    from raykd.deploy.export_scores import Evaluation, LoadedExport
    from raykd.metrics.by_label import LabelScores, ScoresByLabel
    from raykd.metrics.confusions import Confusion, Example

LANGUAGE = re.compile(r"([^\W\d_][\w-]*)=(.+)")
MOST_CONFUSIONS = 10
"""Largest number of confusions printed; JSON has all."""
CONTEXT_WORDS = 8
"""Words of a sentence printed on each side of an error."""


def evaluate(
    folder: ExportDir,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Labelled files; LANG=FILE states the language.", show_default=False),
    ],
    language: Annotated[
        str | None,
        typer.Option(help="Language of files without LANG=; several, with commas, if a column of the file has it."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Another export to compare with, such as the teacher's. May be repeated."
        ),
    ] = None,
    pos: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False,
            help="For parsers: an exported student of task pos that predicts the parts of speech. Default: those in "
            "the files.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE",
            help="Setting for reading the files, as in a sweep file: --set corpus.columns.token=1. "
            "By default the format "
            "is detected as in raykd init, and the column with the model's labels is read.",
        ),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Example sentences for each confusion.")] = 2,
    int8: Int8 = False,
    batch: Annotated[int, typer.Option(min=1, help="Sentences in one batch.")] = 32,
    threads: Threads = 1,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")] = None,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Score the exported model in DIR on labelled files: figures by label and language, and its errors."""
    refuse_existing(out, overwrite)
    for directory in (folder, *(against or ()), *([pos] if pos else ())):
        if not any(directory.glob(f"*/{CARD}")):  # a folder with one export per language is read as one model
            check_export(directory, f"raykd evaluate {{}} {shlex.join(files)}")
    with stderr.status("reading …") as status:
        from raykd.deploy.export_scores import LoadedExport  # torch takes seconds to import
        from raykd.deploy.export_scores import evaluate as evaluated

        models = [LoadedExport(export, int8=int8, threads=threads) for export in (folder, *(against or ()))]
        task, tagger = models[0].task, pos and LoadedExport(pos, int8=int8, threads=threads)
        _refuse_other_tasks(models, tagger)
        text = read_labelled(
            [_file(labelled_file, language) for labelled_file in files],
            unit=task.unit, scheme=task.form.file_scheme, labels=models[0].known_labels,
            settings=_tree_settings(models[0], tagger) if task.form.reads_heads else {}, overrides=set_ or (),
            open_model=open_pos_model,
        )  # fmt: skip
        total = f"{len(text.sentences):,}"
        evaluations = [
            evaluated(
                model, text, pos_tagger=tagger, batch=batch, examples=examples,
                on_progress=lambda count, model=model: status.update(f"{model.folder}: {count:,} of {total} sentences"),
            )
            for model in models
        ]  # fmt: skip
    if json_ or out:
        written = json.dumps(_plain(evaluations, text, task.score_name), ensure_ascii=False, indent=2) + "\n"
        if out:
            out.write_text(written, encoding="utf-8")
        if json_:
            print(written, end="")
            return
    _print(evaluations, text, task.score_label)


def _refuse_other_tasks(models: Sequence[LoadedExport], tagger: LoadedExport | None) -> None:
    """Raise StoreError if only some models parse, or if a tagger has no effect."""
    for model in models:
        if model.task.form.reads_heads != models[0].task.form.reads_heads:
            problem = (
                f"its task is {model.task.name!r}, but that of {models[0].folder} is {models[0].task.name!r}"
            )
            raise StoreError(str(model.folder), problem, "give --against models of the same task")
    if tagger is not None and not any(model.reads_pos for model in models):
        problem = (
            f"--pos has no effect: {models[0].folder} (task {models[0].task.name}) reads no parts of speech"
        )
        raise StoreError(str(tagger.folder), problem, "omit --pos")


def _tree_settings(model: LoadedExport, tagger: LoadedExport | None) -> dict[str, Any]:
    """Settings for reading trees. With a tagger the files need no parts of speech."""
    predicted = {} if tagger is None else {"predicted_pos": {"model": str(tagger.folder)}}
    return {**model.tree_settings, **predicted}


def _file(written: str, languages: str | None) -> LabelledFile:
    """`LANG=FILE`, or a file whose language is `languages`."""
    match = LANGUAGE.fullmatch(written)
    if match and not Path(written).is_file():
        languages, written = match[1], match[2]
    folder, slash, name = written.rpartition("/")
    if not Storage((folder or slash) or ".").exists(name):
        raise CorpusError(written, None, "there is no such file", "give a labelled file, or LANG=FILE")
    return LabelledFile(written, tuple(code.strip() for code in (languages or UNKNOWN).split(",")))


def _print(evaluations: Sequence[Evaluation], text: LabelledText, score_label: str) -> None:
    first, words = evaluations[0], _words(text)
    for read_as in text.read_as:
        stdout.print(f"read: {read_as}")
    stdout.print(_table(evaluations, "relation" if text.heads else "label"))
    if first.score.beside:
        stdout.print(_scores(evaluations, score_label))
    for origin in dict.fromkeys(evaluation.pos_origin for evaluation in evaluations if evaluation.pos_origin):
        stdout.print(f"parts of speech: {origin}")
    for note in text.notes:
        warn(note)
    if text.skipped:
        warn(f"{text.skipped:,} sentences cannot be read and are left out")
    if text.repairs:
        warn(f"{text.repairs:,} tags are not valid in the files' scheme and are repaired, as for training")
    for evaluation in evaluations:
        if evaluation.unknown_labels:
            counts = ", ".join(f"{label} {count:,}" for label, count in evaluation.unknown_labels.items())
            warn(
                f"{evaluation.address} does not have these labels of the files, so they count as missed: {counts}"
            )
    if first.reliability:
        stdout.print(_reliability(first))
    _print_confusions(first.confusions, text)
    twin = "its gold twin" if text.heads else "its teacher or gold twin"
    hint = "" if len(evaluations) > 1 else f" Next: --against DIR shows the export of {twin} beside it"
    for evaluation in evaluations:
        stdout.print(
            f"{evaluation.address} ({', '.join(evaluation.run_ids)}): {score_label} {percent(evaluation.score.mean)}"
            f"{_beside(evaluation)}{_over(evaluation)}"
        )
    stdout.print(f"evaluate: {pluralise(len(text.sentences), 'sentence')}, {pluralise(words, 'word')}.{hint}")


def _words(text: LabelledText) -> int:
    """Number of words in the files."""
    return sum(map(len, text.sentences)) - text.form.words_in_front * len(text.sentences)


def _beside(evaluation: Evaluation) -> str:
    metrics = [
        f"{METRIC_LABELS[name]} {percent(score.mean)}" for name, score in evaluation.score.beside.items()
    ]
    return "".join(f", {metric}" for metric in metrics)


def _over(evaluation: Evaluation) -> str:
    count = len(evaluation.by_language)
    return f", mean over {count} languages" if count > 1 else ""


def _reliability(evaluation: Evaluation) -> Table:
    """A table of labels and spans by their probability p: number, mean p and share of right ones; calibration error."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("reliability", no_wrap=True)
    for kind in evaluation.reliability:
        for heading in (kind, "mean p", "right"):
            table.add_column(heading, justify="right", no_wrap=True)
    bins = [{part.above: part for part in sides.after.bins} for sides in evaluation.reliability.values()]
    for above in sorted({above for parts in bins for above in parts}):
        cells = [
            (f"{part.count:,}", percent(part.confidence), percent(part.accuracy)) if part else ("", "", "")
            for part in (parts.get(above) for parts in bins)
        ]
        table.add_row(f"{above:.1f} to {above + 1 / BINS:.1f}", *(cell for row in cells for cell in row))
    table.add_section()
    errors = {"calibration error": "after", "uncalibrated": "before"}
    for heading, side in errors.items():
        sides = [getattr(kind, side) for kind in evaluation.reliability.values()]
        table.add_row(heading, *(cell for part in sides for cell in ("", "", percent(part.error))))
    return table


def _scores(evaluations: Sequence[Evaluation], score_label: str) -> Table:
    """A table of the score and further metrics, by language and export."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("language", no_wrap=True)
    several = len(evaluations) > 1
    for evaluation in evaluations:
        names = (score_label, *(METRIC_LABELS[name] for name in evaluation.score.beside))
        for name in names:
            table.add_column(
                f"{name} of {Path(evaluation.address).name}" if several else name, justify="right"
            )
    scores = [
        score for evaluation in evaluations for score in (evaluation.score, *evaluation.score.beside.values())
    ]
    for language in evaluations[0].by_language:
        table.add_row(language, *(percent(score.by_language[language]) for score in scores))
    if len(evaluations[0].by_language) > 1:
        table.add_section()
        table.add_row("mean of languages", *(percent(score.mean) for score in scores))
    return table


def _table(evaluations: Sequence[Evaluation], label: str) -> Table:
    """A table of labels and averages by language: all figures of the first export, and F1 of the others."""
    several = len(evaluations[0].by_language) > 1
    table = Table(box=box.SIMPLE_HEAD)
    if several:
        table.add_column("language", no_wrap=True)
    table.add_column(label, overflow="fold")
    for title in ("support", "precision", "recall", "F1"):
        table.add_column(title, justify="right", no_wrap=True)
    for evaluation in evaluations[1:]:
        table.add_column(f"F1 of {Path(evaluation.address).name}", justify="right")
        table.add_column("±", justify="right", no_wrap=True)
    for language in evaluations[0].by_language:
        _add(
            table,
            [evaluation.by_language[language] for evaluation in evaluations],
            [language] if several else [],
        )
    if several:
        _add(table, [evaluation.overall for evaluation in evaluations], ["all sentences"])
        if not evaluations[0].score.beside:  # the next table has them
            _add_means(table, evaluations)
    return table


def _add(table: Table, sides: Sequence[ScoresByLabel], before: Sequence[str]) -> None:
    names = sorted({name for side in sides for name in side.labels})
    rows = [(name, tuple(side.labels.get(name) for side in sides)) for name in names]
    rows += [("micro", tuple(side.micro for side in sides)), ("macro", tuple(side.macro for side in sides))]
    for place, (name, counts) in enumerate(rows):
        head = [*before] if place == 0 else [""] * len(before)
        table.add_row(*head, name, *_cells(counts), end_section=place == len(rows) - 1)


def _cells(counts: Sequence[LabelScores | None]) -> list[str]:
    first = counts[0]
    if first is None:  # the label is neither predicted by the first export nor in the files
        cells = ["0", *["–"] * 3]
    else:
        cells = [f"{first.support:,}", percent(first.precision), percent(first.recall), percent(first.f1)]
    for count in counts[1:]:
        both = count is not None and first is not None
        cells += [percent(count.f1 if count else None), gain(count.f1 - first.f1) if both else "–"]  # type: ignore[union-attr]
    return cells


def _add_means(table: Table, evaluations: Sequence[Evaluation]) -> None:
    """Add the mean over languages, which is the score of a sweep."""
    scores = [evaluation.score.mean for evaluation in evaluations]
    cells = ["", "", "", percent(scores[0])]
    for mean in scores[1:]:
        cells += [percent(mean), gain(mean - scores[0])]
    table.add_row("mean of languages", "", *cells)


def _print_confusions(confusions: Sequence[Confusion], text: LabelledText) -> None:
    kinds = Counter[str]()
    for confusion in confusions:
        kinds[confusion.kind] += confusion.count
    counted = ", ".join(f"{count:,} {ERROR_KINDS[kind]}" for kind, count in kinds.most_common())
    stdout.print(f"errors: {counted}" if confusions else "errors: none")
    for confusion in confusions[:MOST_CONFUSIONS]:
        stdout.print(
            f"{confusion.count:7,}  {confusion.gold} → {confusion.predicted}  ({ERROR_KINDS[confusion.kind]})"
        )
        for example in confusion.examples:
            stdout.print(f"         {_example_line(example, confusion, text)}")
    if len(confusions) > MOST_CONFUSIONS:
        stdout.print(
            f"         … and {len(confusions) - MOST_CONFUSIONS} more kinds of confusion: --json has all"
        )


ERROR_KINDS: Mapping[str, str] = {
    "type": "wrong type", "boundary": "wrong boundary", "both": "wrong type and boundary", "missed": "missed",
    "spurious": "spurious", "label": "wrong label", "head": "wrong head", "relation": "wrong relation",
    "arc": "wrong head and relation",
}  # fmt: skip
METRIC_LABELS: Mapping[str, str] = {
    "uas": "UAS", "repairs": "repaired heads", "intent_accuracy": "intent accuracy", "slot_f1": "slot F1",
}  # fmt: skip
"""Labels of the metrics shown beside the score of a parser, and of intents and slots."""


def _example_line(example: Example, confusion: Confusion, text: LabelledText) -> str:
    """File and line, gold and predicted span, and the words around them."""
    words = text.sentences[example.sentence]
    sides = []
    if example.heads is not None:
        heads = (words[head - 1] if head else "the root" for head in example.heads)
        labels = (confusion.gold, confusion.predicted)
        sides = [f"{label} of {head}" for label, head in zip(labels, heads, strict=True)]
    elif text.unit == "word":
        for place, label in ((example.gold, confusion.gold), (example.predicted, confusion.predicted)):
            words_of_span = " ".join(words[place.start : place.end]) if place else ""
            words_of_span = "the utterance" if words_of_span == UTTERANCE else words_of_span
            sides.append(f"{words_of_span} ({label})" if place else "nothing")
    spans = [place for place in (example.gold, example.predicted) if place and text.unit == "word"]
    start = max(0, min((place.start for place in spans), default=0) - CONTEXT_WORDS)
    end = max((place.end for place in spans), default=2 * CONTEXT_WORDS) + CONTEXT_WORDS
    around = f"{'… ' if start else ''}{display_words(words[start:end])}{' …' if end < len(words) else ''}"
    comparison = f"gold {sides[0]}, predicted {sides[1]}: " if sides else ""
    if example.heads is not None and example.gold is not None:
        comparison = f"{words[example.gold.start]}: {comparison}"
    return f"{_origin(text, example.sentence)}: {comparison}{around}"


def _origin(text: LabelledText, sentence: int) -> str:
    file, line = text.origins[sentence]
    return file if line is None else f"{file}:{line}"


def _plain(evaluations: Sequence[Evaluation], text: LabelledText, score_name: str) -> dict[str, Any]:
    return {
        "score": score_name, "sentences": len(text.sentences), "words": _words(text), "repairs": text.repairs,
        "skipped": text.skipped,
        "exports": [_plain_one(evaluation, text) for evaluation in evaluations],
    }  # fmt: skip


def _plain_one(evaluation: Evaluation, text: LabelledText) -> dict[str, Any]:
    return {
        "folder": evaluation.address,
        "runs": list(evaluation.run_ids),
        "mean": evaluation.score.mean,
        **{name: score.mean for name, score in evaluation.score.beside.items()},
        **({"pos": evaluation.pos_origin} if evaluation.pos_origin else {}),
        "by_language": {
            language: {
                "score": evaluation.score.by_language[language],
                **{name: score.by_language[language] for name, score in evaluation.score.beside.items()},
                **_plain_labels(counts),
            }
            for language, counts in evaluation.by_language.items()
        },
        "together": _plain_labels(evaluation.overall),
        "unknown_labels": dict(evaluation.unknown_labels),
        "reliability": {kind: asdict(sides) for kind, sides in evaluation.reliability.items()},
        "confusions": [
            {
                "gold": confusion.gold, "predicted": confusion.predicted,
                "kind": confusion.kind, "count": confusion.count,
                "examples": list(_plain_examples(confusion.examples, text)),
            }
            for confusion in evaluation.confusions
        ],
    }  # fmt: skip


def _plain_labels(counts: ScoresByLabel) -> dict[str, Any]:
    labels = {name: row._asdict() for name, row in counts.labels.items()}
    return {"labels": labels, "micro": counts.micro._asdict(), "macro": counts.macro._asdict()}


def _plain_examples(examples: Sequence[Example], text: LabelledText) -> Iterator[dict[str, Any]]:
    """Yield examples as plain data; a span is the index of the first word, and of the word after the last."""
    for example in examples:
        file, line = text.origins[example.sentence]
        yield {
            "file": file, "line": line, "tokens": list(text.sentences[example.sentence]),
            "gold": example.gold, "predicted": example.predicted,
            **({"heads": list(example.heads)} if example.heads else {}),
        }  # fmt: skip
