"""Labelled files without a corpus around them: recognised as `raykd init` recognises them, and read as a part of a
corpus is, by the same readers, nothing left out.

A file becomes the configuration of a corpus whose parts are all drawn from it, so that the file is read once, with its
tags; what is drawn is not looked at.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from raykd.corpora.config import READERS, SOURCES, CorpusConfig
from raykd.corpora.conversion import convert
from raykd.corpora.detect.file_names import UNKNOWN
from raykd.corpora.faults import Faults
from raykd.corpora.format_detection import detect_format
from raykd.corpora.guess import Guess, Target
from raykd.corpora.note_messages import note_message
from raykd.corpora.pool import read_pool
from raykd.corpora.predicted_pos import OpenPosModel, PosTaggers, refuse_model
from raykd.corpora.sentence import Unit
from raykd.corpora.source import TextConfig
from raykd.corpora.tag_faults import find_spellings, without_unknown_tags
from raykd.corpora.utterance_files import PARSERS as UTTERANCES
from raykd.errors import Fault, SpecError
from raykd.forms import LabelForm
from raykd.forms.form import LabelledSentence
from raykd.forms.tag_schemes import FileScheme
from raykd.identity import PlainObject
from raykd.spec import Document, Frozen, check, with_overrides
from raykd.storage.store import Storage

READING = (
    "source", "columns", "separator", "comment", "header", "tag", "pos", "relations", "tag_names", "scheme",
    "encoding", "on_error", "most_skipped", "nested", "labels", "part_values", "spoken", "offsets", "ends", "several",
    "form",
)  # fmt: skip
"""The settings of a corpus that say how a file is read; the others choose sentences."""
FIXED_SCHEME = ("conllu", "tsv", "spans", *UTTERANCES)
"""Sources whose labels need no scheme."""
TABLES = ("parquet", "jsonl")


@dataclass(frozen=True)
class LabelledFile:
    """A file with the languages of its sentences: one, or several where a column of a table names them."""

    name: str
    languages: tuple[str, ...]


@dataclass(frozen=True)
class LabelledText:
    """N sentences with their labels: BIOES tags of spans, or labels as the files have them."""

    sentences: Sequence[Sequence[str]]
    labels: Sequence[Sequence[str]]
    languages: Sequence[str]
    origins: Sequence[tuple[str, int | None]]
    """The file and the line of each sentence's first word, from 1."""
    unit: Unit
    form: LabelForm
    """What the labels look like."""
    repairs: int
    """Tags that were not valid in the files' scheme as they stood."""
    skipped: int
    """Sentences that could not be read and were left out, with `corpus.on_error=skip`."""
    read_as: Sequence[str] = ()
    """How each file was read."""
    heads: Sequence[Sequence[int]] = ()
    """Of each sentence of a treebank, 0 for the root; its labels are relations then. Empty where there are no trees."""
    pos: Sequence[Sequence[str] | None] = ()
    """Parts of speech of each sentence of a treebank; None where they are not known."""
    notes: Sequence[str] = ()
    """Changes of reading, and records that were left out, that are no faults; one sentence each."""

    def sentence(self, row: int) -> LabelledSentence:
        """The sentence at `row` with its labels."""
        heads = self.heads[row] if self.heads else None
        pos = self.pos[row] if self.pos else None
        return LabelledSentence(self.sentences[row], self.labels[row], self.unit, heads, pos)


class _File(Frozen):
    corpus: CorpusConfig


def read_labelled(
    files: Sequence[LabelledFile],
    *,
    unit: Unit,
    scheme: FileScheme = "auto",
    labels: Collection[str] = (),
    settings: PlainObject = MappingProxyType({}),
    overrides: Sequence[str] = (),
    open_model: OpenPosModel = refuse_model,
) -> LabelledText:
    """All sentences of `files`, in their order.

    Args:
        unit: what one label belongs to, in files that do not say it.
        scheme: how the files write spans.
        labels: those that are expected: of several columns of tags the one that has most of them is read.
        settings: of the corpus' source, in the place of what would be recognised: trees are read with `tag: tree`.
        overrides: settings of the corpus' source as in a sweep file, `corpus.columns.token=1`, laid over what was
            recognised.
        open_model: opens models of parts of speech.

    Raises:
        SpecError: an override is no setting of the source, or says nothing of how a file is read.
        CorpusError: a file is missing, empty or malformed.
    """
    _refuse_without_effect(overrides)
    recognised = [_override_recognised(_recognise(file, labels, overrides), settings) for file in files]
    configs = [
        _corpus_config(file, guessed, unit, scheme if scheme != "auto" else suggested, overrides)
        for file, guessed in zip(files, recognised, strict=True)
        for suggested in [guessed.pop("scheme", "auto")]
    ]
    config = configs[0].model_copy(update={"scheme": _schemes(configs)})
    stream = chain.from_iterable(READERS[config.source](config) for config in configs)
    with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
        faults = Faults(config.on_error)
        pool = read_pool(stream, Path(folder), faults)
        spellings, columns = find_spellings(pool, config), pool.columns
        if faults.on_error == "skip":
            columns = without_unknown_tags(pool, config, spellings, faults)
            faults.refuse_too_many(columns.counts(), config.most_skipped)
        rows = np.flatnonzero(columns.part >= 0)
        converted = convert(
            pool, {"test": rows}, config, spellings, PosTaggers.from_config(config, open_model)
        )
        batches = [batch for _, batch in pool.batches(rows, ["file", "line"])]
    origins = [
        place for batch in batches for place in zip(*(column.to_pylist() for column in batch), strict=True)
    ]
    table, names = converted.tables["test"], converted.tag_set
    notes = [
        f"tags of {name}: {text}" for name, spelling in spellings.items() if (text := spelling.describe())
    ]
    if inside := sum(converted.nested.counts.get("test", {}).values()):
        notes.append(note_message("inner", inside))
    return LabelledText(
        table["tokens"].to_pylist(),
        [names.decode(tags) for tags in table["tags"].to_pylist()],
        table["language"].to_pylist(),
        origins,
        converted.unit,
        names.form,
        sum(converted.repairs["test"].values()),
        faults.skipped.total(),
        [*(_describe_reading(file, config) for file, config in zip(files, configs, strict=True)), *notes],
        table["heads"].to_pylist() if converted.pos else (),
        [pos and [converted.pos[number] for number in pos] for pos in table["pos"].to_pylist()]
        if converted.pos
        else (),
        [note_message(note, tally.total()) for note, tally in faults.notes.items()],
    )


def _schemes(configs: Sequence[CorpusConfig]) -> FileScheme | dict[str, FileScheme]:
    """The scheme of the files, or of each language; `auto` for a language whose files have several."""
    schemes: dict[str, FileScheme] = {}
    for config in configs:
        for language in config.languages:
            scheme = cast(FileScheme, config.scheme_of(language))
            schemes[language] = scheme if schemes.get(language, scheme) == scheme else "auto"
    return schemes if len(set(schemes.values())) > 1 else next(iter(schemes.values()))


def _refuse_without_effect(overrides: Sequence[str]) -> None:
    """SpecError for settings of a corpus that do not say how a file is read."""
    other_settings = {field for source in SOURCES.values() for field in source.model_fields} - set(READING)
    takes = ", ".join(f"corpus.{name}" for name in READING)
    faults = []
    for override in overrides:
        section, _, key = override.partition("=")[0].strip().partition(".")
        if section != "corpus" or not key or key.partition(".")[0] in other_settings:
            problem = f"it has no effect on how labelled files are read; --set takes {takes}"
            faults.append(Fault(f"--set {override}", None, "", problem))
    if faults:
        raise SpecError(tuple(faults))


def _recognise(file: LabelledFile, labels: Collection[str], overrides: Sequence[str]) -> dict[str, Any]:
    """The settings that the file itself suggests; none where it is not recognised, or another source is asked for."""
    guess = _detected_format(file)
    requested = [
        override.partition("=")[2].strip() for override in overrides if override.startswith("corpus.source=")
    ]
    if not (guess.readable and guess.labelled) or (requested and requested[-1] != guess.source):
        return {}
    settings = _settings_of(guess, labels)
    if guess.languages and file.languages == (UNKNOWN,):
        settings["languages"] = list(guess.languages)
    return settings


def _settings_of(guess: Guess, labels: Collection[str]) -> dict[str, Any]:
    """The settings of the source that reads a labelled file; of several kinds of labels the one that has most of
    `labels`, then the likeliest.
    """

    def label_share(target: Target) -> float:
        return sum(label in labels for label in target.labels) / max(len(target.labels), 1)

    settings = {"source": guess.source, **guess.settings}
    if guess.targets:
        settings |= max(guess.targets, key=label_share).settings
    if issubclass(SOURCES[guess.source], TextConfig) and guess.encoding not in ("utf-8", "ascii"):
        settings["encoding"] = guess.encoding
    return {key: value for key, value in settings.items() if value is not False}


def _override_recognised(recognised: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of what was recognised nothing stays where `settings` have another source."""
    same = settings.get("source") in (None, recognised.get("source"))
    return {**(recognised if same else {}), **settings}


def _describe_reading(file: LabelledFile, config: Any) -> str:
    """`test.conll: conll, columns token 1, tag 3`."""
    columns = getattr(config, "columns", None)
    columns_read = columns.model_dump(exclude_none=True) if isinstance(columns, Frozen) else {}
    if columns_read.get("text"):  # of a table the other columns are not read
        columns_read = {key: value for key, value in columns_read.items() if key not in ("token", "tag")}
    elif "token" in columns_read:
        columns_read.pop("label", None)
    if getattr(config, "tag", None) == "tree":
        columns_read = {"trees": config.relations + " relations", "parts of speech": config.pos.upper()}
        return f"{file.name}: {config.source}, {', '.join(f'{key}: {value}' for key, value in columns_read.items())}"
    listed = ", ".join(f"{key} {value}" for key, value in columns_read.items())
    return f"{file.name}: {config.source}{f', columns: {listed}' if listed else ''}"


def _corpus_config(
    file: LabelledFile, recognised: dict[str, Any], unit: Unit, scheme: FileScheme, overrides: Sequence[str]
) -> Any:
    folder, _, name = file.name.rpartition("/")
    source = recognised.get("source") or _default_source(file, unit)
    tree: dict[str, Any] = {
        "source": source, "root": folder or ("/" if file.name.startswith("/") else "."), "train": escape(name),
        "languages": list(file.languages), "split": {"train": 1, "dev": 1, "test": 1}, **recognised,
    }  # fmt: skip
    if source not in FIXED_SCHEME:
        tree["scheme"] = scheme
    if unit == "sentence" and source in TABLES and "columns" not in recognised:
        tree["columns"] = {"text": "text"}
    document = with_overrides(Document(file.name, {"corpus": tree}, {}), overrides)
    check(document, _File)
    return _File.model_validate_json(json.dumps(document.tree)).corpus


def _default_source(file: LabelledFile, unit: Unit) -> str:
    """The source that reads a file whose labels are not recognised."""
    source = _detected_format(file).source
    if source in (*TABLES, "conllu"):
        return source
    return "tsv" if unit == "sentence" else "conll"


def _detected_format(file: LabelledFile) -> Guess:
    folder, _, name = file.name.rpartition("/")
    return detect_format(Storage(folder or "."), name)
