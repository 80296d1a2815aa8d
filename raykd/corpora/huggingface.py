"""A data set of the Hugging Face hub by name, or a folder: saved by `save_to_disk`, or of Parquet or JSON.

The package `datasets` is needed, and imported only when such a corpus is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import model_validator

from raykd.corpora.chunks import ROWS
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Name, Pattern, Stream
from raykd.corpora.table_origins import Rows
from raykd.corpora.table_rows import TableSource, class_names, sentences_from_table
from raykd.errors import CorpusError
from raykd.storage.layout import PARTS

SAVED = ("dataset_dict.json", "state.json")
"""Files written by `save_to_disk`: for several splits, or for one."""


class HuggingFaceSource(TableSource):
    """A data set with a list of words and a list of tags per row; the parts are names of its splits."""

    source: Literal["huggingface"]
    path: Name
    """Name on the hub, or folder; may contain `{lang}`."""
    root: Name | None = None
    """The folder that contains `path`; then the hub is not used."""
    subset: Name | None = None
    """Configuration of the data set; may contain `{lang}`."""
    revision: Name | None = None
    """Commit or tag of the data set on the hub; set it, so that the corpus cannot change."""
    train: Pattern = "train"
    dev: Pattern | None = "validation"
    test: Pattern | None = "test"

    @model_validator(mode="after")
    def _languages_differ(self) -> HuggingFaceSource:
        if self.columns.language is None and "{lang}" not in f"{self.path} {self.subset}":
            self.refuse_one_place_for_two("or set path, subset or columns.language")
        return self


def read(config: HuggingFaceSource) -> Stream:
    """Yield the sentences of all parts, row by row.

    Raises:
        CorpusError: The data set cannot be loaded, a split or column is missing, or a word has no tag.
    """
    package = _package()
    for (path, subset), languages in _data_sets(config).items():
        splits = _load(package, config, path, subset)
        for (part, split), split_languages in _splits(config, languages).items():
            file = f"{path}{f'/{subset}' if subset else ''}[{split}]"
            if split not in splits:
                hint = f"set corpus.{part} to one of its splits ({', '.join(splits)})"
                raise CorpusError(file, None, f"there is no split {split!r}", hint)
            for sentence in _sentences(config, splits[split], file, split_languages, part):
                yield part, sentence


def _data_sets(config: HuggingFaceSource) -> dict[tuple[str, str | None], list[str]]:
    """Return (path, subset) → languages: a data set of several languages is loaded once."""
    data_sets: dict[tuple[str, str | None], list[str]] = {}
    for language in config.languages:
        subset = config.subset.replace("{lang}", language) if config.subset else None
        data_sets.setdefault((config.path.replace("{lang}", language), subset), []).append(language)
    return data_sets


def _splits(config: HuggingFaceSource, languages: list[str]) -> dict[tuple[str, str], list[str]]:
    """Return (part, split) → languages to take from it."""
    splits: dict[tuple[str, str], list[str]] = {}
    for part in PARTS:
        for language in languages:
            if (split := config.named_parts(language).get(part)) is not None:
                splits.setdefault((part, split), []).append(language)
    return splits


def _load(package: ModuleType, config: HuggingFaceSource, path: str, subset: str | None) -> Mapping[str, Any]:
    folder = Path(config.root or ".") / path
    if config.root is not None and not folder.is_dir():
        raise CorpusError(str(folder), None, "no such folder", "set corpus.root and corpus.path")
    try:
        if any((folder / name).is_file() for name in SAVED):
            saved = package.load_from_disk(str(folder))
            return saved if isinstance(saved, Mapping) else {"train": saved}
        if folder.is_dir():
            return package.load_dataset(str(folder), subset)
        return package.load_dataset(path, subset, revision=config.revision)
    # The package raises many kinds of errors: a missing data set is a FileNotFoundError, an unknown subset
    # a ValueError, no network a ConnectionError, a broken file a DatasetsError.
    except (OSError, ValueError, RuntimeError, package.exceptions.DatasetsError) as error:
        problem = f"the data set cannot be loaded ({str(error).splitlines()[0] if str(error) else error!r})"
        hint = "set corpus.path (a name on the hub, which needs the network, or a folder) and corpus.subset"
        raise CorpusError(path, None, problem, hint) from None


def _sentences(
    config: HuggingFaceSource, split: Any, file: str, languages: list[str], part: str
) -> Iterator[Sentence | Faulty]:
    names = config.tag_names or class_names(split.features.to_dict().get(config.columns.target))
    labelled, empty = any(config.reads_tags(part, language) for language in languages), True
    rows = split.with_format("arrow")
    # Also once for a split without rows, whose columns are checked too.
    for first in range(0, max(len(rows), 1), ROWS):
        for sentence in sentences_from_table(
            rows[first : first + ROWS], config.columns, rows=Rows(file, first), languages=languages, names=names,
            labelled=labelled,
        ):  # fmt: skip
            empty = False
            yield sentence
    if empty:
        problem = f"it has no sentence of {', '.join(languages)}"
        raise CorpusError(file, None, problem, f"set corpus.{part}, or corpus.languages")


def _package() -> ModuleType:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        problem = "source: huggingface needs the package 'datasets', which is not installed"
        raise CorpusError("corpus", None, problem, "run pip install datasets") from None
