"""The model card of an export: README.md as Hugging Face reads it, metadata above, sections for people below."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from raykd import __version__
from raykd.corpora.detect.file_names import UNKNOWN as NO_LANGUAGE
from raykd.deploy.export import ONNX, ONNX_INT8, Agreement, Export
from raykd.deploy.splitting import IN_WORDS, Splitting
from raykd.figures.front import find_gold_twin
from raykd.figures.results import Scores
from raykd.figures.table import (
    AGREEMENT,
    BYTES,
    COMPRESSION,
    LATENCY,
    PARAMETERS,
    SPEEDUP,
    TORCH_LATENCY,
    score_figures,
)
from raykd.figures.trial import Teacher, Trial, shape_name
from raykd.recipes.card_config import CardConfig
from raykd.recipes.run import Run, objective_name
from raykd.report.markdown import markdown_table
from raykd.report.readable_numbers import FORMS, gain, in_words, percent, size, spread
from raykd.tasks import find_task

PIPELINES = {"word": "token-classification", "sentence": "text-classification"}
"""Labelled unit → Hugging Face's name of the task."""
UNKNOWN = "unknown"
"""Hugging Face's name for an unknown licence."""
MEAN = "mean"
"""Row of the mean over languages."""
CARD_ROWS = {
    PARAMETERS.name: "parameters", LATENCY.name: f"ms a sentence, `{ONNX}` in ONNX Runtime",
    TORCH_LATENCY.name: "ms a sentence in PyTorch", BYTES.name: f"bytes of `{ONNX}` with the pieces of its text",
}  # fmt: skip
"""Name of a cost → heading of the row on the card."""
RATIOS = {PARAMETERS: None, LATENCY: SPEEDUP, TORCH_LATENCY: None, BYTES: COMPRESSION}
"""Cost on the card → figure with the ratio to the teacher's cost; None without a ratio."""


@dataclass(frozen=True)
class Origin:
    """A student's sweep: its trial, its teachers and its twin on gold labels."""

    sweep: str
    trial: Trial
    teachers: Sequence[Teacher] = ()
    twin: Trial | None = None
    """The same student trained on gold labels alone."""


def model_card(exported: Export, *, stated: CardConfig, origin: Origin | None = None) -> str:
    """Return the model card as Markdown.

    The scores are those of the exported model. The sweep supplies the scores of the teacher and of the same student on
    gold labels alone.

    Args:
        exported: The exported model.
        stated: Licences and data sets from the sweep file or the command line.
        origin: The student's sweep; None for a run without one.
    """
    metadata = "\n".join(f"{key}: {json.dumps(value)}" for key, value in _metadata(exported, stated, origin))
    sections = [
        ("Figures", _figures(exported, origin)),
        ("Data", _data(exported)),
        ("How it was made", _training_lines(exported, origin)),
        ("Use", _use(exported)),
        ("Licences", _licences(stated)),
    ]
    body = "\n".join(f"## {title}\n\n{_lines(lines)}\n" for title, lines in sections)
    return f"---\n{metadata}\n---\n\n# {_title(exported, origin)}\n\n{_summary(exported, origin)}\n\n{body}"


def trial_card(
    trial: Trial, trials: Iterable[Trial], teachers: Sequence[Teacher], *, sweep: str, stated: CardConfig
) -> Callable[[Export], str]:
    """Return the function that makes the card of each model of a trial.

    Args:
        trial: The trial to export.
        trials: All trials of its sweep, among them the twin on gold labels.
        teachers: The teachers of the sweep.
        sweep: Name of the sweep.
        stated: Licences and data sets from the sweep file or the command line.
    """
    return partial(
        model_card, stated=stated, origin=Origin(sweep, trial, teachers, find_gold_twin(trial, trials))
    )


def _metadata(exported: Export, stated: CardConfig, origin: Origin | None) -> Iterator[tuple[str, Any]]:
    # Values are written as JSON, which is valid YAML: readers of YAML 1.1 would take the language `no` for false.
    run, task = exported.run, find_task(exported.run.task)
    # Hugging Face takes codes of two or three letters.
    if languages := [code for code in _languages(exported) if re.fullmatch("[a-z]{2,3}", code)]:
        yield "language", languages
    yield "license", stated.license or UNKNOWN
    yield "library_name", "raykd"
    yield "pipeline_tag", PIPELINES[task.unit]
    method = ["knowledge-distillation"] if run.sources else []
    yield "tags", ["raykd", "onnx", task.with_gold, *method]
    if stated.datasets:
        yield "datasets", list(stated.datasets)
    yield "metrics", [task.score_name]
    data = stated.datasets[0] if stated.datasets else run.corpus_id
    values = [
        {
            "type": task.score_name,
            "name": f"test {task.score_label} {_language(language)}",
            "value": round(100 * value, 2),
        }
        for language, value in _by_language(exported.result.scores, "test").items()
    ]
    result = {
        "task": {"type": PIPELINES[task.unit], "name": task.with_gold},
        "dataset": {"type": data, "name": data, "split": "test"},
        "metrics": values,
    }
    yield "model-index", [{"name": _name(exported, origin), "results": [result] if values else []}]


def _languages(exported: Export) -> list[str]:
    """Languages named by the corpus."""
    return [language for language in exported.languages if language != NO_LANGUAGE]


def _language(name: str) -> str:
    """A language as tables show it."""
    return "not stated" if name == NO_LANGUAGE else name


def _name(exported: Export, origin: Origin | None) -> str:
    return exported.run.id if origin is None else f"{origin.sweep}-{origin.trial.number:02d}"


def _title(exported: Export, origin: Origin | None) -> str:
    return exported.run.id if origin is None else f"{origin.sweep} {origin.trial.name}"


def _summary(exported: Export, origin: Origin | None) -> str:
    run, task = exported.run, find_task(exported.run.task)
    kind = f"{run.model['kind']} {run.role}"
    sweep = "" if origin is None else f" It is trial {origin.trial.number} of the sweep {origin.sweep}."
    label = "labels each text" if task.unit == "sentence" else "labels words"
    label = "labels each pair of texts" if task.reads_pairs else label
    if exported.trees is not None:
        label = "finds the head of each word and its relation"
    languages = ", ".join(_languages(exported))
    return f"A {kind} that {label} ({task.with_gold}) in {languages or 'text'}, made by raykd.{sweep}"


def _figures(exported: Export, origin: Origin | None) -> Iterator[str]:
    yield from _score_table(exported, origin)
    yield f"In percent. Dev selected the {exported.run.role}, test is only reported."
    if not find_task(exported.run.task).has_gold:
        yield "There are no gold labels: agreement is with the labels that the teacher gives to these texts itself."
    if origin is not None:
        yield from _trial_lines(origin, find_task(exported.run.task).score_label)
    yield ""
    yield from _cost_table(exported, origin)
    if exported.agreement is not None:
        yield _agreement(exported.agreement)


def _score_table(exported: Export, origin: Origin | None) -> list[str]:
    """Scores by language: the model's, each teacher's, and those of the twin on labels alone."""
    task = find_task(exported.run.task)
    scores_of: dict[str, Scores] = {"": exported.result.scores}
    if origin is not None:
        scores_of |= {f"teacher {teacher.name} ": teacher.scores for teacher in origin.teachers}
        scores_of |= {} if origin.twin is None else {"labels alone ": origin.twin.scores}
    has_agreement = exported.result.scores.get("dev", beside=AGREEMENT) is not None
    columns = {
        f"{name}{figure.heading.format(label=task.score_label)}": (
            FORMS[figure.form],
            _by_language(scores, figure.part, figure.metric),
        )
        for name, scores in scores_of.items()
        for figure in score_figures(task.score_name, targets=False, agreement=has_agreement)
    }
    names = [
        name
        for name in (*exported.languages, MEAN)
        if any(name in by_language for _, by_language in columns.values())
    ]
    if len(names) == 2:
        names = names[:1]  # the mean of a single language would only repeat it
    rows = [
        [_language(name), *(form(by_language.get(name)) for form, by_language in columns.values())]
        for name in names
    ]
    return _table(["language", *columns], rows)


def _cost_table(exported: Export, origin: Origin | None) -> Iterator[str]:
    """Costs measured by the sweep beside the teacher's, and the sizes of the files."""
    # With one student per language a trial's costs are the sum of all, so no single student has them.
    one_student = origin is not None and origin.trial.settings.get("student.scope") != "language"
    costs = origin.trial.cost if origin is not None and one_student else {}
    cost_rows = [
        [
            CARD_ROWS[figure.name], FORMS[figure.form](costs[figure.name]),
            in_words(ratio, costs[ratio.name]) if ratio and ratio.name in costs else "",
        ]
        for figure, ratio in RATIOS.items()
        if figure.name in costs
    ]  # fmt: skip
    files = [[name, size(exported.sizes[name]), ""] for name in (ONNX, ONNX_INT8)]
    yield from _table(["", "", "than the teacher"], [*cost_rows, *files])
    if cost_rows:
        yield "Latency is the median of one sentence of 32 pieces on one thread, where the sweep ran."
        yield from (f"{note[0].upper()}{note[1:]}." for note in (origin.trial.cost_notes if origin else ()))


def _trial_lines(origin: Origin, label: str) -> Iterator[str]:
    dev = origin.trial.scores.get("dev")
    if dev is not None and dev.sd is not None:
        means = "; the figures on labels alone are means too" if origin.twin else ""
        mean = f"{percent(dev.mean)}{spread(dev.sd)}"
        yield f"One of {len(dev.by_seed)} seeds, whose mean is dev {label} {mean}{means}."
    dev_mean, gold_only = origin.trial.scores.mean("dev"), origin.twin and origin.twin.scores.mean("dev")
    if dev_mean is not None and gold_only is not None:
        yield f"Against the same student on labels alone: {gain(dev_mean - gold_only)} on dev."


def _agreement(agreement: Agreement) -> str:
    differing_share = agreement.differing[ONNX_INT8] / max(agreement.labels, 1)
    tied = f", except in {agreement.tied} whose two best labellings score the same" if agreement.tied else ""
    return (
        f"On {agreement.sentences:,} sentences of {agreement.part} `{ONNX}` gives the same labels as PyTorch{tied}; "
        f"`{ONNX_INT8}` gives other labels in {100 * differing_share:.2f} % of the cases ({agreement.score_label} "
        f"{percent(agreement.scores[ONNX])} → {percent(agreement.scores[ONNX_INT8])})."
    )


def _data(exported: Export) -> Iterator[str]:
    if exported.corpus is None:
        yield f"Corpus `{exported.run.corpus_id}`, which was not available when the model was exported."
        return
    yield f"Corpus `{exported.run.corpus_id}`, sentences:"
    parts = exported.corpus.sentences
    used = [part for part, counts in parts.items() if any(counts.values())]
    names = list(dict.fromkeys(name for part in used for name in parts[part]))
    yield ""
    yield from _table(
        ["language", *used],
        [[_language(name), *(f"{parts[part].get(name, 0):,}" for part in used)] for name in names],
    )
    yield from (f"- {message}" for message in exported.corpus.pos_messages())
    # Raw text cannot show words with spaces inside, but the model learnt them.
    yield from (f"- {message}" for message in exported.corpus.spaced_word_messages())


def _training_lines(exported: Export, origin: Origin | None) -> Iterator[str]:
    run = exported.run
    sources = ", ".join(dict.fromkeys(source.teacher_id for source in run.sources))
    # With several teachers the sweep's names do not tell which one taught this student.
    names = origin.teachers[0].name if origin and len(origin.teachers) == 1 else sources
    yield f"- Teacher: {names if run.sources else 'none, it learnt from labels alone'}"
    yield f"- Model: {run.model['kind']} {shape_name(run.model)}".rstrip()
    if (trees := exported.trees) is not None:
        yield f"- Heads as labels: {trees.encoding}"
        if trees.pos is not None:
            yield f"- Parts of speech that it read: {trees.pos_origin or f'column {trees.pos.upper()}'}"
    if run.decoding:
        yield f"- Decoding: {run.decoding}"
    if origin is not None:
        yield f"- Method: {origin.trial.method}"
    for number, stage in enumerate(run.stages, 1):
        schedule = stage["schedule"]
        length = [
            f"{schedule[key]} {word}"
            for key, word in (("epochs", "epochs"), ("max_steps", "steps"))
            if schedule.get(key)
        ]
        temperature = stage["objective"].get("temperature", 1)
        softened = [f"temperature {temperature:g}"] if temperature != 1 else []
        details = ", ".join([f"{stage['text']} text", *softened, *length])
        yield f"- Stage {number}: {objective_name(stage['objective'])} ({details})"
    yield f"- Training: {', '.join(f'{key} {value}' for key, value in _shown_settings(run))}"
    yield f"- Run: `{run.id}`, {exported.result.steps:,} steps, raykd {__version__}"


def _shown_settings(run: Run) -> list[tuple[str, Any]]:
    names = ("optimiser", "learning_rate", "batch_tokens", "dropout", "seed")
    return [(key.replace("_", " "), run.training[key]) for key in names if run.training.get(key) is not None]


def _use(exported: Export) -> Iterator[str]:
    call = 'label("Ada Lovelace lives in London.")'
    if find_task(exported.run.task).reads_pairs:
        call = 'label("It rains.\\tThe streets are wet.")'
    if exported.trees is not None:
        pos = "" if exported.trees.pos is None else ', pos=[["PRON", "VERB"]]'
        call = f'label.parse([["She", "sleeps"]]{pos})'
    yield from _splitting(exported.splitting)
    yield from (
        "```python",
        "import raykd",
        'label = raykd.load("DIR")   # the folder of this file',
        f"print({call})",
        "```",
        "",
        "Without raykd, on onnxruntime and numpy alone, in this folder: `from labeller import load` and `load(\".\")`.",
    )  # fmt: skip


def _splitting(splitting: Splitting) -> Iterator[str]:
    yield f"Texts are split into words {IN_WORDS[splitting.split]}."
    if splitting.problem is not None:
        yield f"Words as in training give the best labels: {splitting.problem}."
    if splitting.proposal is not None:
        yield f'For texts that are written as the corpus: `raykd.load(DIR, split="{splitting.proposal}")`.'
    yield ""


def _licences(stated: CardConfig) -> Iterator[str]:
    yield f"- Model: {stated.license or 'not stated'}"
    yield f"- Data: {stated.data_license or 'not stated'}"


def _by_language(scores: Scores, part: Any, metric: str = "") -> Mapping[str, float]:
    """Scores by language, and their mean as `MEAN`."""
    mean = scores.mean(part, beside=metric)
    return {**scores.by_language(part, metric), **({} if mean is None else {MEAN: mean})}


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [*markdown_table(heading, rows), ""]


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip()
