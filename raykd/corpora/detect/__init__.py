"""Detection of a corpus in a folder: parts, languages, format, columns and tags of the files.

`detect(root)` looks at the names and beginnings of all files. The result is the settings of a corpus source, with
guesses, doubts and unused files. Reading the corpus (`read_corpus`) is the proof.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from raykd.corpora.columns import describe_columns
from raykd.corpora.config import FORMATS, CorpusConfig
from raykd.corpora.detect.file_names import parts_in_name, reason_to_skip
from raykd.corpora.detect.part_assignment import Parts, list_names
from raykd.corpora.format_detection import detect_format
from raykd.corpora.guess import Guess
from raykd.corpora.source import TextConfig
from raykd.errors import CorpusError
from raykd.storage.store import Storage

MOST_FILES = 5000
EXPECTED = (
    "expected are files of train, dev and test, with the part in the name of the file or folder (en/train.conll, "
    "train.en.txt): one word and its tag per line with empty lines between sentences, CoNLL-U, a text and its class "
    "per line with a tab between them, intents and slots of ATIS, xSID or MultiATIS++, Parquet, JSON Lines, or JSON "
    "with spans of characters"
)

RAW_TEXT = (
    f"{EXPECTED}. To pretrain an encoder on raw text write a sweep file with task: masked_lm and corpus.source: text "
    "(docs/PRETRAINING.md)"
)


@dataclass(frozen=True)
class DetectedCorpus:
    """A corpus detected in a folder.

    Attributes:
        root: The folder.
        settings: Settings for the section `corpus` of a sweep file.
        config: The same, validated.
        files: (language, part) → files.
        guesses: (subject, finding with reason).
        notes: Doubts, and decisions made for want of something better.
        unused: File → reason for which it is not read.
        tree_settings: Settings that read the trees of a treebank; empty if there are none.
    """

    root: str
    settings: dict[str, Any]
    config: CorpusConfig
    files: dict[tuple[str, str], tuple[str, ...]]
    guesses: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    unused: dict[str, str]
    tree_settings: Mapping[str, str] = field(default_factory=dict)

    def with_trees(self) -> DetectedCorpus:
        """Return the same treebank, read with trees and not only with a column of tags."""
        settings = {name: value for name, value in self.settings.items() if name != "scheme"}
        settings |= self.tree_settings
        return replace(self, settings=settings, config=_validated(self.root, settings))

    def skipping_faults(self, fault: str) -> DetectedCorpus:
        """Return the same corpus without faulty sentences; `fault` is the first fault."""
        settings = self.settings | {"on_error": "skip"}
        note = f"sentences with faults are left out (on_error: skip); the first: {fault}"
        return replace(
            self, settings=settings, config=_validated(self.root, settings), notes=(*self.notes, note)
        )


def detect(root: str) -> DetectedCorpus:
    """Detect the corpus in a folder.

    Args:
        root: Folder or URI.

    Raises:
        CorpusError: There is no corpus that raykd can read; the message names the files and the expected forms.
    """
    storage = Storage(root)
    all_files = storage.names()
    if not all_files:
        raise CorpusError(root, None, "there are no files", EXPECTED)
    if len(all_files) > MOST_FILES:
        problem = f"{len(all_files):,} files are below it, and at most {MOST_FILES:,} are looked at"
        raise CorpusError(root, None, problem, "give the folder of one corpus")
    unused = {name: reason for name in all_files if (reason := reason_to_skip(name))}
    guesses = [detect_format(storage, name) for name in all_files if name not in unused]
    unused |= {guess.name: guess.reason for guess in guesses if not guess.readable}
    source, files = _choose_format(root, [guess for guess in guesses if guess.readable], unused)
    parts = Parts(root, all_files, unused)
    parts.assign(files)
    settings = parts.roles()
    if not any("train" in by_part for by_part in parts.files.values()):
        raise _no_corpus(root, parts.unused, "no file with labels is there to train on")
    settings = {
        "source": source,
        "root": root,
        "languages": sorted(parts.files),
        **settings,
        **parts.patterns(),
    }
    labelled = parts.files_of_parts("train", "dev", "test")
    parts.notes += _doubts([file for files in parts.files_of_parts("train").values() for file in files])
    if issubclass(FORMATS[source].config, TextConfig):
        settings |= parts.encodings()
    found_settings, doubts = FORMATS[source].combine_guesses(labelled)
    settings |= found_settings
    parts.notes += doubts
    settings |= parts.text_forms()
    trees = [file.trees for files in labelled.values() for file in files]
    names = {
        (language, part): tuple(sorted(file.name for file in files))
        for language, by_part in parts.files.items()
        for part, files in by_part.items()
    }
    return DetectedCorpus(
        root, settings, _validated(root, settings), names, tuple(_describe_guesses(parts)),
        tuple(dict.fromkeys(parts.notes)), dict(sorted(parts.unused.items())),
        trees[0] if all(tree == trees[0] for tree in trees) else {},
    )  # fmt: skip


def find_texts(root: str, *, without: Collection[str] = ()) -> list[str]:
    """Return the names of the files of plain text in a folder.

    Args:
        root: Folder or URI.
        without: Names of files to leave out.
    """
    storage = Storage(root)
    names = [name for name in storage.names() if name not in without and reason_to_skip(name) is None]
    guesses = [detect_format(storage, name) for name in names]
    return [guess.name for guess in guesses if guess.readable and not guess.labelled]


def _choose_format(root: str, files: list[Guess], unused: dict[str, str]) -> tuple[str, list[Guess]]:
    """Return the format of most labelled files, with its files and readable files of plain text."""
    counts = Counter(file.source for file in files if file.labelled)
    if not counts:
        text = {file.name: file.reason for file in files}
        hint = RAW_TEXT if files and all(file.source == "text" for file in files) else EXPECTED
        raise _no_corpus(root, unused | text, "no file with labels is there", hint)
    # Of two formats with equally many files, the first of the table: Universal NER comes as columns and as CoNLL-U.
    best = max((name for name in FORMATS if name in counts), key=lambda name: counts[name])
    texts = issubclass(FORMATS[best].config, TextConfig)
    chosen = [file for file in files if file.source == best or (texts and _is_unlabelled_text(file))]
    for file in files:
        if file not in chosen:
            unused[file.name] = f"{file.reason}, and the corpus is read from other files ({best})"
    return best, chosen


def _is_unlabelled_text(file: Guess) -> bool:
    """Return True for plain text that is not the text of a labelled part, as that has the sentences of the test."""
    return file.source == "text" and parts_in_name(file.name) in ((), ("unlabelled",))


def _doubts(files: list[Guess]) -> list[str]:
    """Return the doubts about some files, without repetition."""
    files_by_doubt: dict[str, list[Guess]] = {}
    for file in files:
        for doubt in file.doubts:
            files_by_doubt.setdefault(doubt, []).append(file)
    return [
        doubt if len(doubtful) == len(files) > 1 else f"{list_names(doubtful)}: {doubt}"
        for doubt, doubtful in files_by_doubt.items()
    ]


def _no_corpus(root: str, unused: dict[str, str], problem: str, hint: str = EXPECTED) -> CorpusError:
    some = "; ".join(f"{name} ({reason})" for name, reason in list(unused.items())[:5])
    more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
    return CorpusError(root, None, f"{problem}. Seen: {some}{more}", hint)


def _validated(root: str, settings: dict[str, Any]) -> CorpusConfig:
    try:
        return TypeAdapter(CorpusConfig).validate_json(json.dumps(settings))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"][1:])
        problem = f"the corpus that its files look like is not valid ({key} {first['msg']})".replace(
            "( ", "("
        )
        raise CorpusError(
            root, None, problem, "write the section corpus by hand (docs/SWEEP_FILE.md)"
        ) from None


def _describe_guesses(parts: Parts) -> list[tuple[str, str]]:
    """Return the findings without repetition, with the languages that differ."""
    findings: dict[Any, tuple[str, str, list[str]]] = {}
    for language, files_of_part in parts.files.items():
        file = next(
            (
                files_of_part[part][0]
                for part in ("train", "test", "unlabelled", "dev")
                if part in files_of_part
            ),
            None,
        )
        if file is None:
            continue
        findings.setdefault(file.reason, ("format", file.reason, []))[2].append(language)
        if file.labelled and file.columns:
            text = describe_columns(file.columns, tag=file.targets[0].settings["columns"]["tag"])
            kinds = tuple(column.kind for column in file.columns)
            findings.setdefault(kinds, ("columns", text, []))[2].append(language)
        elif file.labelled and file.settings:
            text = ", ".join(_describe_setting(key, value) for key, value in file.settings.items())
            findings.setdefault(text, ("columns", text, []))[2].append(language)
    return [
        (subject if len(languages) == len(parts.files) else f"{subject} of {', '.join(languages)}", text)
        for subject, text, languages in findings.values()
    ]


def _describe_setting(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{inner} {setting}" for inner, setting in value.items())
    if key == "header":
        return "names in the first line" if value else "no line of names"
    return f"{key} {value}"
