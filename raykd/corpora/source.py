"""What every corpus source understands: which sentences to take, and where its files lie.

A source is its configuration (frozen) and a function `read(config) -> Parts` beside it. Reading hands over
every sentence as the file holds it; taking, splitting and converting is the same for all sources
(`corpus.py`).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from raykd.corpora.sentence import PARTS, Sentence
from raykd.corpora.tags import FileScheme
from raykd.spec import Frozen

Parts = dict[str, list[Sentence]]
Value = TypeVar("Value")
Weight = Annotated[int, Field(ge=1)]
Sentences = Annotated[int, Field(ge=1)]
Cap = Sentences | dict[str, Sentences]
Name = Annotated[str, Field(min_length=1)]

REST = "rest"
DEFAULT = "default"


class Split(Frozen):
    """Shares of the capped train sentences that become train, dev and test (ACL 2021 draws 3 : 1 : 1)."""

    train: Weight = 3
    dev: Weight = 1
    test: Weight = 1


class SourceConfig(Frozen):
    """Which sentences of a source to take. The default takes all."""

    languages: Annotated[tuple[Name, ...], Field(min_length=1)]
    scheme: FileScheme | dict[str, FileScheme] = "auto"
    """How the files write spans, for all languages or each; `auto` tells it per language from the tags."""
    cap: Cap | None = None
    """Most labelled training sentences per language, drawn at random: 5000, or {en: 12000, default: 5000}.
    With `split` it counts the sentences of all three parts together."""
    unlabelled_cap: Cap | None = None
    dev_cap: Cap | None = None
    test_cap: Cap | None = None
    split: Split | None = None
    """Draw dev and test from the training sentences instead of reading them."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Whether a training sentence whose text was read before is left out."""
    sampling_alpha: Annotated[float, Field(ge=0)] = 1.0
    """Exponent of smoothed language sampling: p ∝ n^alpha; 1 takes the corpus as it is."""
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _settings_agree(self) -> SourceConfig:
        twice = sorted({name for name in self.languages if self.languages.count(name) > 1})
        if twice:
            raise ValueError(f"languages names {', '.join(twice)} twice")
        if self.split is not None and (self.dev_cap is not None or self.test_cap is not None):
            raise ValueError("split decides how large dev and test are, so do not set dev_cap or test_cap")
        for field in ("scheme", "cap", "unlabelled_cap", "dev_cap", "test_cap"):
            refuse_strangers(field, getattr(self, field), self.languages)
        return self


class PartsConfig(SourceConfig):
    """A source that names its parts one by one: files, or splits of a data set."""

    train: Name
    dev: Name | None = None
    test: Name | None = None
    unlabelled: Name | None = None
    """Text without tags; `rest` takes the training sentences that `cap` leaves."""

    @model_validator(mode="after")
    def _parts_are_complete(self) -> PartsConfig:
        named = [part for part in ("dev", "test") if getattr(self, part) is not None]
        written = [part for part in named if part in self.model_fields_set]
        if self.split is not None and written:
            raise ValueError(f"split draws dev and test from train, so do not name {' and '.join(written)}")
        if self.split is None and len(named) < 2:
            raise ValueError("name dev and test, or draw them with split: {train: 3, dev: 1, test: 1}")
        if self.unlabelled == REST and self.cap is None:
            raise ValueError("unlabelled: rest takes what cap leaves, so cap must be set")
        return self

    def named_parts(self) -> dict[str, str]:
        """Part → the pattern or name under which the source has it."""
        parts = ("train", "unlabelled") if self.split is not None else PARTS
        named = {part: getattr(self, part) for part in parts}
        return {part: name for part, name in named.items() if name is not None and name != REST}


class FilesConfig(PartsConfig):
    """Files below `root`: one pattern per part, with `{lang}` for the language; `*` is allowed."""

    root: Name = "."
    """Folder or URI (s3://…, gs://…) below which the patterns are looked up."""

    @model_validator(mode="after")
    def _patterns_stay_below_the_root(self) -> FilesConfig:
        for part, pattern in self.named_parts().items():
            if pattern.startswith("/") or ".." in pattern.split("/"):
                raise ValueError(f"{part} must lie below root: write the folder into root, not {pattern!r}")
        return self


class TextConfig(FilesConfig):
    """A source of text files."""

    encoding: Name | dict[str, Name] = "utf-8"

    @model_validator(mode="after")
    def _every_language_has_its_files(self) -> TextConfig:
        refuse_strangers("encoding", self.encoding, self.languages)
        refuse_one_name_for_all(self.named_parts(), self.languages)
        return self


def refuse_strangers(field: str, value: object, languages: tuple[str, ...]) -> None:
    """ValueError when a per-language setting names a language that the corpus does not have."""
    strangers = sorted(set(value) - {*languages, DEFAULT}) if isinstance(value, dict) else []
    if strangers:
        raise ValueError(
            f"{field} names {', '.join(strangers)}, not among languages ({', '.join(languages)})"
        )


def refuse_one_name_for_all(names: dict[str, str], languages: tuple[str, ...], otherwise: str = "") -> None:
    """ValueError when several languages would be read from one and the same place."""
    for part, name in names.items():
        if len(languages) > 1 and "{lang}" not in name:
            mend = f"{part} must hold {{lang}}{f' ({otherwise})' if otherwise else ''}"
            raise ValueError(f"{mend}, as there are {len(languages)} languages")


def for_language(value: Value | dict[str, Value] | None, language: str) -> Value | None:
    """A setting's value for one language: its own, else `default`, else the one value that holds for all."""
    if isinstance(value, dict):
        return value.get(language, value.get(DEFAULT))
    return value
