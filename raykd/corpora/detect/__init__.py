"""A corpus found in a folder: which files are which part of which language, their format, columns and tags.

`detect(root)` looks at names and at the beginning of every file and gives the settings of a corpus source, with what
was guessed, what is doubtful and what is not used. Reading the corpus (`read_corpus`) is the proof of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from raykd.corpora.config import CorpusConfig
from raykd.corpora.detect.assemble import (
    Parts,
    by_language,
    conll_settings,
    encodings,
    patterns,
    roles,
    shown,
    table_settings,
    text_forms,
)
from raykd.corpora.detect.columns import tag_columns
from raykd.corpora.detect.look import look_at, tree_settings
from raykd.corpora.detect.names import named, no_corpus
from raykd.corpora.detect.seen import TEXT_FILES, Seen, Unclear
from raykd.errors import CorpusError
from raykd.storage.store import Storage

MOST_FILES = 5000
EXPECTED = (
    "expected are files of train, dev and test, with the part in the name of the file or folder (en/train.conll, "
    "train.en.txt): one word and its tag per line with empty lines between sentences, CoNLL-U, a text and its class "
    "per line with a tab between them, intents and slots of ATIS, xSID or MultiATIS++, Parquet or JSON Lines"
)

RAW_TEXT = (
    f"{EXPECTED}. To pretrain an encoder on raw text write a sweep file with task: masked_lm and corpus.source: text "
    "(docs/PRETRAINING.md)"
)


@dataclass(frozen=True)
class Detected:
    """What was found in a folder."""

    root: str
    settings: dict[str, Any]
    """Of the section `corpus` of a sweep file."""
    config: CorpusConfig
    """The same, validated."""
    files: dict[tuple[str, str], tuple[str, ...]]
    """(language, part) → its files."""
    guesses: tuple[tuple[str, str], ...]
    """(subject, what was found and why)."""
    notes: tuple[str, ...]
    """What is doubtful, or decided for want of something better."""
    unused: dict[str, str]
    """File → why it is not read."""
    tree_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings with which the trees of a treebank are read; empty where there are none."""

    def with_trees(self) -> Detected:
        """The same treebank, of which the trees are read and not only a column of tags."""
        settings = {name: value for name, value in self.settings.items() if name != "scheme"}
        settings |= self.tree_settings
        return replace(self, settings=settings, config=_validated(self.root, settings))

    def skipping(self, fault: str) -> Detected:
        """The same without sentences that have faults, of which `fault` is the first."""
        settings = self.settings | {"on_error": "skip"}
        note = f"sentences with faults are left out (on_error: skip); the first: {fault}"
        return replace(
            self, settings=settings, config=_validated(self.root, settings), notes=(*self.notes, note)
        )


def detect(root: str) -> Detected:
    """The corpus in the folder or URI `root`.

    Raises:
        CorpusError: there is none that raykd can read; the files that were seen and what was expected are named.
    """
    storage = Storage(root)
    every = storage.names()
    if not every:
        raise CorpusError(root, None, "there are no files", EXPECTED)
    if len(every) > MOST_FILES:
        problem = f"{len(every):,} files are below it, and at most {MOST_FILES:,} are looked at"
        raise CorpusError(root, None, problem, "give the folder of one corpus")
    unused = {name: why for name in every if (why := no_corpus(name))}
    names = [name for name in every if name not in unused]
    looks = [look_at(storage, name) for name in names]
    unused |= {look.name: look.why for look in looks if isinstance(look, Unclear)}
    seen = [look for look in looks if isinstance(look, Seen)]
    chosen, notes = _of_one_format(root, seen, unused), []
    parts = by_language(list(zip(named([each.name for each in chosen]), chosen, strict=True)), notes, unused)
    role_settings, parts = roles(parts, notes, unused)
    if not any("train" in own for own in parts.values()):
        raise _nothing(root, unused, "no file with labels is there to train on")
    found = patterns(parts, every, notes, unused)
    used = [seen for own in parts.values() for files in own.values() for seen in files]
    notes += _doubts([seen for own in parts.values() for seen in own.get("train", [])])
    source = next(each.format for each in used if each.labelled)
    settings = {"source": source, "root": root, "languages": sorted(parts)} | role_settings | found
    if source in TEXT_FILES:
        settings |= encodings(parts, notes)
    settings |= conll_settings(parts, notes) if source == "conll" else table_settings(parts)
    settings |= text_forms(parts, notes)
    names = {
        (language, part): tuple(sorted(seen.name for seen in files))
        for language, own in parts.items()
        for part, files in own.items()
    }
    return Detected(
        root, settings, _validated(root, settings), names, tuple(_guesses(parts)),
        tuple(dict.fromkeys(notes)), dict(sorted(unused.items())), _trees(used),
    )  # fmt: skip


def _trees(files: list[Seen]) -> dict[str, str]:
    """The settings by which the trees of the labelled files are read, where all of them have any, in one way."""
    found = [tree_settings(seen.columns) for seen in files if seen.labelled and seen.format == "conllu"]
    return found[0] if found and all(each == found[0] for each in found) else {}


def _of_one_format(root: str, seen: list[Seen], unused: dict[str, str]) -> list[Seen]:
    """The files of the format that most labelled files have, and files of words or text that this format reads."""
    formats = Counter(each.format for each in seen if each.labelled)
    if not formats:
        text = {each.name: each.why for each in seen}
        hint = RAW_TEXT if seen and all(each.format == "text" for each in seen) else EXPECTED
        raise _nothing(root, unused | text, "no file with labels is there", hint)
    # Of two formats with equally many files, the one with spans: Universal NER comes as both.
    best = max(formats, key=lambda kind: (formats[kind], kind == "conll"))
    texts = best in TEXT_FILES
    chosen = [each for each in seen if each.format == best or (texts and _is_unlabelled_text(each))]
    for each in seen:
        if each not in chosen:
            unused[each.name] = f"{each.why}, and the corpus is read from other files ({best})"
    return chosen


def _is_unlabelled_text(seen: Seen) -> bool:
    """Whether it is plain text that is not the text of a labelled part: that would have the test's sentences."""
    (found,) = named([seen.name])
    return seen.format == "text" and found.part in (None, "unlabelled")


def _doubts(files: list[Seen]) -> list[str]:
    """The doubts about some files, each once."""
    found: dict[str, list[str]] = {}
    for seen in files:
        for doubt in seen.doubts:
            found.setdefault(doubt, []).append(seen.name)
    return [
        doubt if len(names) == len(files) > 1 else f"{shown(names)}: {doubt}"
        for doubt, names in found.items()
    ]


def _nothing(root: str, unused: dict[str, str], problem: str, hint: str = EXPECTED) -> CorpusError:
    some = "; ".join(f"{name} ({why})" for name, why in list(unused.items())[:5])
    more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
    return CorpusError(root, None, f"{problem}. Seen: {some}{more}", hint)


def _validated(root: str, settings: dict[str, Any]) -> CorpusConfig:
    try:
        return TypeAdapter(CorpusConfig).validate_json(json.dumps(settings))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"][1:])
        problem = f"the corpus that its files look like is not valid ({where} {first['msg']})".replace(
            "( ", "("
        )
        raise CorpusError(
            root, None, problem, "write the section corpus by hand (docs/SWEEP_FILE.md)"
        ) from None


def _guesses(parts: Parts) -> list[tuple[str, str]]:
    """What was found, each once; of several languages the ones that differ."""
    found: dict[Any, tuple[str, str, list[str]]] = {}
    for language, own in parts.items():
        seen = next((own[part][0] for part in ("train", "test", "unlabelled", "dev") if part in own), None)
        if seen is None:
            continue
        found.setdefault(seen.why, ("format", seen.why, []))[2].append(language)
        if seen.format == "conll" and seen.labelled:
            kinds = tuple(column.kind for column in seen.columns)
            found.setdefault(kinds, ("columns", _columns(seen), []))[2].append(language)
        elif seen.settings and seen.labelled:
            settings = ", ".join(_plain(key, value) for key, value in seen.settings)
            found.setdefault(settings, ("columns", settings, []))[2].append(language)
    return [
        (subject if len(languages) == len(parts) else f"{subject} of {', '.join(languages)}", text)
        for subject, text, languages in found.values()
    ]


def _columns(seen: Seen) -> str:
    tag = tag_columns(seen.columns)[0]
    marks = {tag.place: ", taken as the tags"}
    return "; ".join(f"{each.place} {each.words()}{marks.get(each.place, '')}" for each in seen.columns)


def _plain(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{inner} {each}" for inner, each in value.items())
    if key == "header":
        return "names in the first line" if value else "no line of names"
    return f"{key} {value}"
