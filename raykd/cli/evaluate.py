"""`raykd evaluate`: how well an exported model labels labelled files, and what it takes for what."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from raykd.cli.console import stderr, stdout, warn
from raykd.cli.options import ExportDir, Int8, Overwrite, Threads, refuse_existing
from raykd.cli.predict import refuse_no_export
from raykd.corpora.detect.file_names import UNKNOWN
from raykd.corpora.labelled_files import LabelledFile, LabelledText, read_labelled
from raykd.corpora.sentence import display_words
from raykd.deploy.pos_models import open_pos_model
from raykd.errors import CorpusError, StoreError
from raykd.forms.marks import UTTERANCE
from raykd.pluralise import pluralise
from raykd.report.readable_numbers import gain, percent
from raykd.storage.layout import CARD
from raykd.storage.store import Storage

if TYPE_CHECKING:
    from raykd.deploy.export_scores import Evaluation, LoadedExport
    from raykd.metrics.by_label import LabelScores, ScoresByLabel
    from raykd.metrics.confusions import Confusion, Example

LANGUAGE = re.compile(r"([^\W\d_][\w-]*)=(.+)")
SHOWN = 10
"""Most confusions that are shown; JSON has all."""
AROUND = 8
"""Words of a sentence that are shown on each side."""


def evaluate(
    folder: ExportDir,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Labelled files; LANG=FILE names the language.", show_default=False),
    ],
    language: Annotated[
        str | None,
        typer.Option(help="Of the files that do not name theirs; several, with commas, where a column names them."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Another export, shown beside it: the teacher's, the gold twin's. May be repeated."
        ),
    ] = None,
    pos: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False,
            help="Of parsers: an export of a student of task pos, which gives the parts of speech. Default: those of "
            "the files.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE",
            help="How the files are read, as in a sweep file: --set corpus.columns.token=1. Default: as raykd init "
            "recognises them, and of several columns of tags the one with the model's labels.",
        ),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Sentences that are shown of each confusion.")] = 2,
    int8: Int8 = False,
    batch: Annotated[int, typer.Option(min=1, help="Sentences that are read at once.")] = 32,
    threads: Threads = 1,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the JSON there too.")] = None,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Score the exported model in DIR on labelled files: figures by label and language, and its errors."""
    refuse_existing(out, overwrite)
    for each in (folder, *(against or ()), *([pos] if pos else ())):
        if not any(each.glob(f"*/{CARD}")):  # one for each language is read together
            refuse_no_export(each, f"raykd evaluate {{}} {shlex.join(files)}")
    with stderr.status("reading …") as status:
        from raykd.deploy.export_scores import LoadedExport  # torch takes seconds to import
        from raykd.deploy.export_scores import evaluate as evaluated

        models = [LoadedExport(each, int8=int8, threads=threads) for each in (folder, *(against or ()))]
        task, tagger = models[0].task, pos and LoadedExport(pos, int8=int8, threads=threads)
        _refuse_other_tasks(models, tagger)
        text = read_labelled(
            [_file(each, language) for each in files],
            unit=task.unit, scheme=task.form.file_scheme, labels=models[0].known_labels,
            settings=_tree_settings(models[0], tagger) if task.form.reads_heads else {}, overrides=set_ or (),
            open_model=open_pos_model,
        )  # fmt: skip
        total = f"{len(text.sentences):,}"
        found = [
            evaluated(
                model, text, pos=tagger, batch=batch, examples=examples,
                on_progress=lambda done, model=model: status.update(f"{model.folder}: {done:,} of {total} sentences"),
            )
            for model in models
        ]  # fmt: skip
    if json_ or out:
        written = json.dumps(_plain(found, text, task.score_name), ensure_ascii=False, indent=2) + "\n"
        if out:
            out.write_text(written, encoding="utf-8")
        if json_:
            print(written, end="")
            return
    _print(found, text, task.score_label)


def _refuse_other_tasks(models: Sequence[LoadedExport], tagger: LoadedExport | None) -> None:
    """Raise StoreError where some models parse and others do not, or a tagger has no effect."""
    for model in models:
        if model.task.form.reads_heads != models[0].task.form.reads_heads:
            problem = f"it is of task {model.task.name!r}, and {models[0].folder} of {models[0].task.name!r}"
            raise StoreError(str(model.folder), problem, "give models that predict the same to --against")
    if tagger is not None and not any(model.reads_pos for model in models):
        problem = (
            f"--pos has no effect: {models[0].folder} (task {models[0].task.name}) reads no parts of speech"
        )
        raise StoreError(str(tagger.folder), problem, "omit --pos")


def _tree_settings(model: LoadedExport, tagger: LoadedExport | None) -> dict[str, Any]:
    """How files of trees are read. With a tagger they need no parts of speech of their own."""
    predicted = {} if tagger is None else {"predicted_pos": {"model": str(tagger.folder)}}
    return {**model.tree_settings, **predicted}


def _file(written: str, languages: str | None) -> LabelledFile:
    """`LANG=FILE`, or a file whose language is `languages`."""
    own = LANGUAGE.fullmatch(written)
    if own and not Path(written).is_file():
        languages, written = own[1], own[2]
    folder, slash, name = written.rpartition("/")
    if not Storage((folder or slash) or ".").exists(name):
        raise CorpusError(written, None, "there is no such file", "give a labelled file, or LANG=FILE")
    return LabelledFile(written, tuple(code.strip() for code in (languages or UNKNOWN).split(",")))


def _print(found: Sequence[Evaluation], text: LabelledText, score_label: str) -> None:
    first, words = found[0], _words(text)
    for read_as in text.read_as:
        stdout.print(f"read: {read_as}")
    stdout.print(_table(found, "relation" if text.heads else "label"))
    if first.score.beside:
        stdout.print(_scores(found, score_label))
    for origin in dict.fromkeys(each.pos for each in found if each.pos):
        stdout.print(f"parts of speech: {origin}")
    for note in text.notes:
        warn(note)
    if text.skipped:
        warn(f"{text.skipped:,} sentences could not be read and were left out")
    if text.repairs:
        warn(f"{text.repairs:,} tags were not valid in the files' scheme and were repaired, as for training")
    for each in found:
        if each.unknown_labels:
            named = ", ".join(f"{label} {count:,}" for label, count in each.unknown_labels.items())
            warn(f"{each.address} does not know labels of the files, so these count as not found: {named}")
    _print_confusions(first.confusions, text)
    twin = "its gold twin" if text.heads else "its teacher or gold twin"
    other = "" if len(found) > 1 else f" Next: --against DIR shows the export of {twin} beside it"
    for each in found:
        stdout.print(
            f"{each.address} ({', '.join(each.run_ids)}): {score_label} {percent(each.score.mean)}"
            f"{_beside(each)}{_over(each)}"
        )
    stdout.print(
        f"evaluate: {pluralise(len(text.sentences), 'sentence')}, {pluralise(words, 'word')}.{other}"
    )


def _words(text: LabelledText) -> int:
    """How many words the files have."""
    return sum(map(len, text.sentences)) - text.form.words_in_front * len(text.sentences)


def _beside(found: Evaluation) -> str:
    own = [f"{BESIDE[name]} {percent(score.mean)}" for name, score in found.score.beside.items()]
    return "".join(f", {each}" for each in own)


def _over(found: Evaluation) -> str:
    count = len(found.by_language)
    return f", mean over {count} languages" if count > 1 else ""


def _scores(found: Sequence[Evaluation], score_label: str) -> Table:
    """The score and those beside it of every language and export."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("language", no_wrap=True)
    several = len(found) > 1
    for each in found:
        names = (score_label, *(BESIDE[name] for name in each.score.beside))
        for name in names:
            table.add_column(f"{name} of {Path(each.address).name}" if several else name, justify="right")
    scores = [score for each in found for score in (each.score, *each.score.beside.values())]
    for language in found[0].by_language:
        table.add_row(language, *(percent(score.by_language[language]) for score in scores))
    if len(found[0].by_language) > 1:
        table.add_section()
        table.add_row("mean of languages", *(percent(score.mean) for score in scores))
    return table


def _table(found: Sequence[Evaluation], label: str) -> Table:
    """Every language with its labels and averages, the figures of the first export, and F1 of the others."""
    several = len(found[0].by_language) > 1
    table = Table(box=box.SIMPLE_HEAD)
    if several:
        table.add_column("language", no_wrap=True)
    table.add_column(label, overflow="fold")
    for title in ("support", "precision", "recall", "F1"):
        table.add_column(title, justify="right", no_wrap=True)
    for other in found[1:]:
        table.add_column(f"F1 of {Path(other.address).name}", justify="right")
        table.add_column("±", justify="right", no_wrap=True)
    for language in found[0].by_language:
        _add(table, [each.by_language[language] for each in found], [language] if several else [])
    if several:
        _add(table, [each.overall for each in found], ["all sentences"])
        if not found[0].score.beside:  # the next table has them
            _add_means(table, found)
    return table


def _add(table: Table, sides: Sequence[ScoresByLabel], before: Sequence[str]) -> None:
    names = sorted({name for side in sides for name in side.labels})
    rows = [(name, tuple(side.labels.get(name) for side in sides)) for name in names]
    rows += [("micro", tuple(side.micro for side in sides)), ("macro", tuple(side.macro for side in sides))]
    for place, (name, own) in enumerate(rows):
        head = [*before] if place == 0 else [""] * len(before)
        table.add_row(*head, name, *_cells(own), end_section=place == len(rows) - 1)


def _cells(own: Sequence[LabelScores | None]) -> list[str]:
    first = own[0]
    if first is None:  # the first never says such a label, and none is there
        cells = ["0", *["–"] * 3]
    else:
        cells = [f"{first.support:,}", percent(first.precision), percent(first.recall), percent(first.f1)]
    for other in own[1:]:
        both = other is not None and first is not None
        cells += [percent(other.f1 if other else None), gain(other.f1 - first.f1) if both else "–"]  # type: ignore[union-attr]
    return cells


def _add_means(table: Table, found: Sequence[Evaluation]) -> None:
    """The score that a sweep has: the mean of the languages' own."""
    scores = [each.score.mean for each in found]
    cells = ["", "", "", percent(scores[0])]
    for other in scores[1:]:
        cells += [percent(other), gain(other - scores[0])]
    table.add_row("mean of languages", "", *cells)


def _print_confusions(confusions: Sequence[Confusion], text: LabelledText) -> None:
    kinds = Counter[str]()
    for each in confusions:
        kinds[each.kind] += each.count
    counted = ", ".join(f"{count:,} {KINDS[kind]}" for kind, count in kinds.most_common())
    stdout.print(f"errors: {counted}" if confusions else "errors: none")
    for each in confusions[:SHOWN]:
        stdout.print(f"{each.count:7,}  {each.gold} → {each.predicted}  ({KINDS[each.kind]})")
        for example in each.examples:
            stdout.print(f"         {_shown(example, each, text)}")
    if len(confusions) > SHOWN:
        stdout.print(f"         … and {len(confusions) - SHOWN} more kinds of confusion: --json has all")


KINDS: Mapping[str, str] = {
    "type": "wrong type", "boundary": "wrong boundary", "both": "wrong type and boundary", "missed": "missed",
    "spurious": "spurious", "label": "wrong label", "head": "wrong head", "relation": "wrong relation",
    "arc": "wrong head and relation",
}  # fmt: skip
BESIDE: Mapping[str, str] = {
    "uas": "UAS", "repairs": "repaired heads", "intent_accuracy": "intent accuracy", "slot_f1": "slot F1",
}  # fmt: skip
"""What is shown beside the score of a parser, and of intents and slots."""


def _shown(example: Example, confusion: Confusion, text: LabelledText) -> str:
    """File and line, the gold span and the predicted one, and the words around."""
    words = text.sentences[example.sentence]
    sides = []
    if example.heads is not None:
        heads = (words[head - 1] if head else "the root" for head in example.heads)
        labels = (confusion.gold, confusion.predicted)
        sides = [f"{label} of {head}" for label, head in zip(labels, heads, strict=True)]
    elif text.unit == "word":
        for place, label in ((example.gold, confusion.gold), (example.predicted, confusion.predicted)):
            named = " ".join(words[place.start : place.end]) if place else ""
            named = "the utterance" if named == UTTERANCE else named
            sides.append(f"{named} ({label})" if place else "nothing")
    own = [place for place in (example.gold, example.predicted) if place and text.unit == "word"]
    start = max(0, min((place.start for place in own), default=0) - AROUND)
    end = max((place.end for place in own), default=2 * AROUND) + AROUND
    around = f"{'… ' if start else ''}{display_words(words[start:end])}{' …' if end < len(words) else ''}"
    said = f"gold {sides[0]}, predicted {sides[1]}: " if sides else ""
    if example.heads is not None and example.gold is not None:
        said = f"{words[example.gold.start]}: {said}"
    return f"{_origin(text, example.sentence)}: {said}{around}"


def _origin(text: LabelledText, sentence: int) -> str:
    file, line = text.origins[sentence]
    return file if line is None else f"{file}:{line}"


def _plain(found: Sequence[Evaluation], text: LabelledText, score_name: str) -> dict[str, Any]:
    return {
        "score": score_name, "sentences": len(text.sentences), "words": _words(text), "repairs": text.repairs,
        "skipped": text.skipped,
        "exports": [_plain_one(each, text) for each in found],
    }  # fmt: skip


def _plain_one(found: Evaluation, text: LabelledText) -> dict[str, Any]:
    return {
        "folder": found.address,
        "runs": list(found.run_ids),
        "mean": found.score.mean,
        **{name: score.mean for name, score in found.score.beside.items()},
        **({"pos": found.pos} if found.pos else {}),
        "by_language": {
            language: {
                "score": found.score.by_language[language],
                **{name: score.by_language[language] for name, score in found.score.beside.items()},
                **_plain_labels(own),
            }
            for language, own in found.by_language.items()
        },
        "together": _plain_labels(found.overall),
        "unknown_labels": dict(found.unknown_labels),
        "confusions": [
            {
                "gold": each.gold, "predicted": each.predicted, "kind": each.kind, "count": each.count,
                "examples": list(_plain_examples(each.examples, text)),
            }
            for each in found.confusions
        ],
    }  # fmt: skip


def _plain_labels(own: ScoresByLabel) -> dict[str, Any]:
    labels = {name: row._asdict() for name, row in own.labels.items()}
    return {"labels": labels, "micro": own.micro._asdict(), "macro": own.macro._asdict()}


def _plain_examples(examples: Sequence[Example], text: LabelledText) -> Iterator[dict[str, Any]]:
    """Spans as their first word and the one after their last."""
    for each in examples:
        file, line = text.origins[each.sentence]
        yield {
            "file": file, "line": line, "tokens": list(text.sentences[each.sentence]),
            "gold": each.gold, "predicted": each.predicted,
            **({"heads": list(each.heads)} if each.heads else {}),
        }  # fmt: skip
