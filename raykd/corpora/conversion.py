"""From sentences as the files have them to Arrow tables in the one internal tag scheme."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from raykd.corpora.sentence import Sentence, Unit
from raykd.corpora.source import Parts, SourceConfig, for_language
from raykd.corpora.tags import OUTSIDE, FileScheme, TagSet, guess_scheme, read_spans, to_bioes
from raykd.errors import CorpusError

COLUMNS: Mapping[str, pa.DataType] = {
    "tokens": pa.list_(pa.string()),
    "tags": pa.list_(pa.int16()),
    "language": pa.string(),
}


@dataclass
class Converted:
    """Tables by part, the tag set of their numbers, and what conversion found."""

    tag_set: TagSet
    tables: dict[str, pa.Table]
    schemes: dict[str, FileScheme]
    repairs: dict[str, dict[str, int]] = field(default_factory=dict)
    """Part → language → tags that were not valid in the file's scheme as they stood."""
    unit: Unit = "word"


def convert(parts: Parts, config: SourceConfig) -> Converted:
    """Tables of all parts. The tag set is all tags of train, dev and test together.

    Raises:
        CorpusError: a tag does not fit the scheme of its language, or some files tag words and others whole
            sentences; the file and the line are named.
    """
    everything = [sentence for sentences in parts.values() for sentence in sentences]
    labelled = [sentence for sentence in everything if sentence.tags is not None]
    inventories = _inventories(labelled)
    schemes = _schemes(labelled, inventories, config)
    converted = Converted(_tag_set(inventories, schemes), {}, schemes, unit=_unit(everything))
    for part, sentences in parts.items():
        numbers, converted.repairs[part] = _numbers(sentences, schemes, converted.tag_set)
        converted.tables[part] = _table(sentences, numbers)
    return converted


def _unit(sentences: Sequence[Sentence]) -> Unit:
    first = sentences[0].unit if sentences else "word"
    for sentence in sentences:
        if sentence.unit != first:
            problem = f"the tags before it are one per {first}, and here they are one per {sentence.unit}"
            raise _fault(sentence, problem, "use one kind of tags in a corpus: remove these files")
    return first


def _inventories(labelled: Iterable[Sentence]) -> dict[str, set[tuple[str, ...]]]:
    """Every different tag sequence of each language: there are far fewer than sentences."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for sentence in labelled:
        found.setdefault(sentence.language, set()).add(tuple(sentence.tags or ()))
    return found


def _schemes(
    labelled: Sequence[Sentence], inventories: Mapping[str, set[tuple[str, ...]]], config: SourceConfig
) -> dict[str, FileScheme]:
    schemes: dict[str, FileScheme] = {}
    for language, sequences in inventories.items():
        scheme = for_language(config.scheme, language) or "auto"
        try:
            schemes[language] = guess_scheme(sequences) if scheme == "auto" else scheme
        except ValueError as error:
            raise _mixed_forms(labelled, language, str(error)) from None
    flat = [language for language in schemes if schemes[language] == "flat"]
    if 0 < len(flat) < len(schemes):
        for language in flat:
            # A language with O alone is the same in every scheme.
            if any(tag != OUTSIDE for tags in inventories[language] for tag in tags):
                raise _different_schemes(labelled, language, schemes)
            schemes[language] = "iob2"
    return schemes


def _tag_set(inventories: Mapping[str, set[tuple[str, ...]]], schemes: Mapping[str, FileScheme]) -> TagSet:
    tags = {language: {tag for each in found for tag in each} for language, found in inventories.items()}
    if all(scheme == "flat" for scheme in schemes.values()):
        return TagSet.flat(tag for found in tags.values() for tag in found)
    types: set[str] = set()
    for language, found in tags.items():
        # In `io` a tag is the type of its span; elsewhere the type is after the letter.
        span_types = {tag[2:] for tag in found if tag[1:2] == "-"} - {""}
        types |= found - {OUTSIDE} if schemes[language] == "io" else span_types
    return TagSet.of_types(types)


def _numbers(
    sentences: Iterable[Sentence], schemes: Mapping[str, FileScheme], tag_set: TagSet
) -> tuple[list[np.ndarray | None], dict[str, int]]:
    """Tag numbers of every sentence, and repairs per language. Equal sequences are converted once."""
    known: dict[tuple[str, tuple[str, ...]], tuple[np.ndarray, int]] = {}
    numbers: list[np.ndarray | None] = []
    repairs: dict[str, int] = {}
    for sentence in sentences:
        if sentence.tags is None:
            numbers.append(None)
            continue
        scheme = schemes[sentence.language]
        key = (scheme, tuple(sentence.tags))
        if key not in known:
            known[key] = _convert_one(sentence, scheme, tag_set)
        numbers.append(known[key][0])
        if known[key][1]:
            repairs[sentence.language] = repairs.get(sentence.language, 0) + known[key][1]
    return numbers, repairs


def _convert_one(sentence: Sentence, scheme: FileScheme, tag_set: TagSet) -> tuple[np.ndarray, int]:
    tags = sentence.tags or []
    if scheme == "flat" or scheme == "auto":
        return tag_set.encode(tags), 0
    try:
        bioes, repairs = to_bioes(tags, scheme)
    except ValueError as error:
        raise _fault(sentence, str(error), "correct the tag, or set corpus.scheme") from None
    return tag_set.encode(bioes), repairs


def _table(sentences: Sequence[Sentence], numbers: Sequence[np.ndarray | None]) -> pa.Table:
    columns = {
        "tokens": pa.array([sentence.tokens for sentence in sentences], COLUMNS["tokens"]),
        "tags": pa.array(numbers, COLUMNS["tags"]),
        "language": pa.array([sentence.language for sentence in sentences], COLUMNS["language"]),
    }
    return pa.table(columns)


def _mixed_forms(labelled: Iterable[Sentence], language: str, problem: str) -> CorpusError:
    for sentence in labelled:
        if sentence.language == language:
            try:
                read_spans(sentence.tags or [])
            except ValueError:
                hint = f"correct the tag, or set corpus.scheme (language {language!r}) to flat"
                return _fault(sentence, problem, hint)
    raise AssertionError("guess_scheme refuses only sequences with a tag that is not a span tag")


def _different_schemes(
    labelled: Iterable[Sentence], language: str, schemes: Mapping[str, FileScheme]
) -> CorpusError:
    found = ", ".join(f"{name} {scheme}" for name, scheme in schemes.items())
    sentence = next(s for s in labelled if s.language == language and set(s.tags or ()) - {OUTSIDE})
    hint = "use one task per corpus: remove the language, or set corpus.scheme"
    return _fault(sentence, f"some languages have spans and others one tag per word ({found})", hint)


def _fault(sentence: Sentence, problem: str, hint: str) -> CorpusError:
    file, line = sentence.origin or (f"a sentence of {sentence.language}", None)
    words = " ".join(sentence.tokens)
    return CorpusError(file, line, f"{problem} in the sentence {words[:60]!r}", hint)
