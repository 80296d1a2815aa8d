"""Labelled files outside of a corpus, recognised as by `raykd init` and read as a part of a corpus.

All sentences are kept. A file becomes the configuration of a corpus whose parts are all drawn from it, so that the file
is read once, with its tags; the drawn parts are not used.
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
from raykd.forms.form_types import LabelledSentence
from raykd.forms.tag_schemes import FileScheme
from raykd.identity import PlainObject
from raykd.spec import Document, Frozen, check, with_overrides
from raykd.storage.store import Storage

READING = (
    "source", "columns", "separator", "comment", "header", "tag", "pos", "relations", "tag_names", "scheme",
    "encoding", "on_error", "most_skipped", "nested", "labels", "part_values", "spoken", "offsets", "ends", "several",
    "form",
)  # fmt: skip
"""Settings of a corpus that affect how a file is read; all others select sentences."""
FIXED_SCHEME = ("conllu", "tsv", "spans", *UTTERANCES)
"""Sources whose labels need no scheme."""
TABLES = ("parquet", "jsonl")


@dataclass(frozen=True)
class LabelledFile:
    """A file with the languages of the sentences: one, or several if a column of a table names them."""

    name: str
    languages: tuple[str, ...]


@dataclass(frozen=True)
class LabelledText:
    """N sentences with labels: BIOES tags of spans, or labels as in the files.

    Attributes:
        sentences: Words of each sentence.
        labels: Labels of each sentence; relations, if there are trees.
        languages: Language of each sentence.
        origins: File and line (from 1) of each sentence's first word.
        unit: The unit of a label: word or sentence.
        form: Form of the labels.
        repairs: Tags that were not valid in the scheme of the files.
        skipped: Sentences left out because they could not be read, with `corpus.on_error=skip`.
        read_as: A description of the reading of each file.
        heads: Heads of the words of each sentence in a treebank, 0 for the root; empty without trees.
        pos: Parts of speech of each sentence in a treebank; None where they are unknown.
        notes: Changes of reading, and records left out, that are no faults; one sentence each.
    """

    sentences: Sequence[Sequence[str]]
    labels: Sequence[Sequence[str]]
    languages: Sequence[str]
    origins: Sequence[tuple[str, int | None]]
    unit: Unit
    form: LabelForm
    repairs: int
    skipped: int
    read_as: Sequence[str] = ()
    heads: Sequence[Sequence[int]] = ()
    pos: Sequence[Sequence[str] | None] = ()
    notes: Sequence[str] = ()

    def sentence(self, row: int) -> LabelledSentence:
        """Return the sentence at `row` with labels."""
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
    """Read all sentences of labelled files, in order.

    Args:
        files: The files.
        unit: The unit of a label, for files whose format or columns are not recognised.
        scheme: Scheme of spans in the files.
        labels: Expected labels; of several columns of tags, the one with the largest share of expected labels is read.
        settings: Settings of the corpus source that replace recognised ones, as `{"tag": "tree"}` to read trees.
        overrides: Settings of the corpus source as in a sweep file, `corpus.columns.token=1`, laid over the recognised
            ones.
        open_model: Function that opens a model of parts of speech; the default refuses every model.

    Raises:
        SpecError: An override is no setting of the source, or has no effect on the reading of a file.
        CorpusError: A file is missing, empty or malformed.
    """
    _refuse_without_effect(overrides)
    recognised = [_override_recognised(_recognise(file, labels, overrides), settings) for file in files]
    configs = [
        _corpus_config(file, guessed, unit, scheme, overrides)
        for file, guessed in zip(files, recognised, strict=True)
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
    """Return the scheme of the files, or of each language; `auto` for a language with several schemes."""
    schemes: dict[str, FileScheme] = {}
    for config in configs:
        for language in config.languages:
            scheme = cast(FileScheme, config.scheme_of(language))
            schemes[language] = scheme if schemes.get(language, scheme) == scheme else "auto"
    return schemes if len(set(schemes.values())) > 1 else next(iter(schemes.values()))


def _refuse_without_effect(overrides: Sequence[str]) -> None:
    """Raise SpecError for settings of a corpus without effect on the reading of a file."""
    other_settings = {field for source in SOURCES.values() for field in source.model_fields} - set(READING)
    takes = ", ".join(f"corpus.{name}" for name in READING)
    faults = []
    for override in overrides:
        section, _, key = override.partition("=")[0].strip().partition(".")
        if section != "corpus" or not key or key.partition(".")[0] in other_settings:
            problem = f"the setting has no effect on how labelled files are read; set one of {takes}"
            faults.append(Fault(f"--set {override}", None, "", problem))
    if faults:
        raise SpecError(tuple(faults))


def _recognise(file: LabelledFile, labels: Collection[str], overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings suggested by the file; empty if it is not recognised, or an override names another source."""
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
    """Return the settings that read a labelled file, with the kind of labels that has most of `labels`."""

    def label_share(target: Target) -> float:
        return sum(label in labels for label in target.labels) / max(len(target.labels), 1)

    settings = {"source": guess.source, **guess.settings}
    if guess.targets:
        settings |= max(guess.targets, key=label_share).settings
    if issubclass(SOURCES[guess.source], TextConfig) and guess.encoding not in ("utf-8", "ascii"):
        settings["encoding"] = guess.encoding
    return {key: value for key, value in settings.items() if value is not False}


def _override_recognised(recognised: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings over the recognised ones; settings with another source replace all of them."""
    same = settings.get("source") in (None, recognised.get("source"))
    return {**(recognised if same else {}), **settings}


def _describe_reading(file: LabelledFile, config: Any) -> str:
    """Describe the reading of a file, as in `test.conll: conll, columns token 1, tag 3`."""
    columns = getattr(config, "columns", None)
    columns_read = columns.model_dump(exclude_none=True) if isinstance(columns, Frozen) else {}
    if columns_read.get(
        "text"
    ):  # a table with a column of texts is read without the columns of words and tags
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
    """Return the settings of a corpus of one file; `scheme` comes before the recognised one, unless it is `auto`."""
    folder, _, name = file.name.rpartition("/")
    source = recognised.get("source") or _default_source(file, unit)
    suggested_scheme = recognised.get("scheme", "auto")
    recognised = {key: value for key, value in recognised.items() if key != "scheme"}
    tree: dict[str, Any] = {
        "source": source, "root": folder or ("/" if file.name.startswith("/") else "."), "train": escape(name),
        "languages": list(file.languages), "split": {"train": 1, "dev": 1, "test": 1}, **recognised,
    }  # fmt: skip
    if source not in FIXED_SCHEME:
        tree["scheme"] = suggested_scheme if scheme == "auto" else scheme
    if unit == "sentence" and source in TABLES and "columns" not in recognised:
        tree["columns"] = {"text": "text"}
    document = with_overrides(Document(file.name, {"corpus": tree}, {}), overrides)
    check(document, _File)
    return _File.model_validate_json(json.dumps(document.tree)).corpus


def _default_source(file: LabelledFile, unit: Unit) -> str:
    """Return the source for a file with unrecognised labels."""
    source = _detected_format(file).source
    if source in (*TABLES, "conllu"):
        return source
    return "tsv" if unit == "sentence" else "conll"


def _detected_format(file: LabelledFile) -> Guess:
    folder, _, name = file.name.rpartition("/")
    return detect_format(Storage(folder or "."), name)
