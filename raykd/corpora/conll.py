"""CoNLL columns: one word per line, tabs or spaces between columns, an empty line after each sentence.

Reads CoNLL-2002 and -2003 (spaces, `-DOCSTART-`, also behind an index), WikiAnn (an index before the word), Universal
NER (`#` comments, more columns after the tag) and similar files. Columns count from 0, or from the right when negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from raykd.corpora.column_files import (
    HEAD_SENTENCES,
    Layout,
    Separator,
    read_beginning,
    refuse_header,
    row_faults,
    sentence_rows,
    starts_document,
    unlabelled_sentences,
)
from raykd.corpora.columns import Column, describe_columns, tag_columns
from raykd.corpora.guess import LIKELY, Guess, Head, Target, merge_values
from raykd.corpora.sentence import Faulty, ReadingNote, Sentence
from raykd.corpora.source import PerLanguage, TextConfig, for_language
from raykd.errors import CorpusError
from raykd.forms import TagSet
from raykd.identity import PlainObject
from raykd.spec import Frozen

ONE_SENTENCE = 200
"""Maximum number of words for which a file without empty lines is read as one sentence."""


class Columns(Frozen):
    """Columns of word and tag."""

    token: int = 0
    """The column of the word, from 0; from the right where it is negative."""
    tag: int = -1
    """The column of the tag, likewise."""


class ConllSource(TextConfig):
    """CoNLL columns."""

    source: Literal["conll"]
    columns: PerLanguage[Columns] = Columns()
    """The columns of word and tag, counted from 0; or a mapping from languages, with `default` for the others."""
    separator: Separator = "auto"
    """`space` also takes several spaces; `auto` takes tabs where most of the first lines have one."""
    comment: Annotated[str, Field(max_length=8)] = "#"
    """The start of a comment line; empty for none. A word `#` stays a word: its line has all columns."""


def parse(
    config: ConllSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty | ReadingNote]:
    """Yield the sentences of a file.

    Args:
        config: Configuration of the source.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part of the corpus; of a part without tags the tag column is not read.
    """
    labelled = config.reads_tags(part, language)
    layout, lines = find_layout(config, lines, file=file, language=language, labelled=labelled)
    sentences = _sentences(layout, lines, file, language)
    head = list(islice(sentences, HEAD_SENTENCES))
    _refuse_running_numbers([sentence for sentence in head if isinstance(sentence, Sentence)], layout, file)
    yield from head
    yield from sentences


def _sentences(
    layout: Layout, lines: Iterable[str], file: str, language: str
) -> Iterator[Sentence | Faulty | ReadingNote]:
    for numbers, rows in sentence_rows(lines, layout):
        if faults := row_faults(rows, numbers, layout, file):
            yield Faulty(language, faults)
            continue
        tokens = [layout.word(row) for row in rows]
        if layout.tag is None:
            yield from unlabelled_sentences(tokens, language, file, numbers)
        else:
            yield Sentence(tokens, [row[layout.tag] for row in rows], language, (file, numbers[0]))


def conll_text(table: pa.Table, tag_set: TagSet) -> str:
    """Write sentences as lines of word, tab, tag, with an empty line after each sentence.

    Args:
        table: Sentences with tag numbers; unlabelled sentences are written as words only.
        tag_set: The tags; spans are written in IOB2, flat tags as they are.
    """
    blocks = []
    for tokens, numbers in zip(table["tokens"].to_pylist(), table["tags"].to_pylist(), strict=True):
        if numbers is None:
            blocks.append("".join(f"{token}\n" for token in tokens))
            continue
        tags = [tag_set.tags[number] for number in numbers]
        written = tag_set.form.write(tags, tag_set.form.reads[0])
        blocks.append("".join(f"{token}\t{tag}\n" for token, tag in zip(tokens, written, strict=True)))
    return "".join(f"{block}\n" for block in blocks)


def find_layout(
    config: ConllSource, lines: Iterable[str], *, file: str, language: str, labelled: bool
) -> tuple[Layout, Iterable[str]]:
    """Find the layout of a file from the first lines.

    Args:
        config: Configuration of the source.
        lines: Lines of the file; the first ones are consumed.
        file: Name of the file, for errors.
        language: Language of the file.
        labelled: True if the tag column is read.

    Returns:
        The layout, and all lines.

    Raises:
        CorpusError: A column does not exist, or the file begins with the names of columns.
    """
    lines = iter(lines)
    start = read_beginning(lines, config.comment, config.separator)
    refuse_header(start, file, config.comment)
    chosen = for_language(config.columns, language) or Columns()
    columns = {"token": chosen.token} | ({"tag": chosen.tag} if labelled else {})
    resolved = {name: place + start.width if place < 0 else place for name, place in columns.items()}
    for name, place in resolved.items():
        if start.width and not 0 <= place < start.width:
            kind = "tabs" if start.separator == "\t" else "spaces"
            raise CorpusError(
                file,
                start.number,
                f"column {columns[name]} ({name}) is not there: {start.width} columns between {kind} in "
                f"{start.example!r}",
                f"set corpus.columns.{name} or corpus.separator",
            )
    if labelled and start.width and resolved["tag"] == resolved["token"]:
        problem = f"one column cannot be both word and tag: {start.example!r}"
        raise CorpusError(file, start.number, problem, "set corpus.columns and corpus.separator")
    exact = min(columns.values()) < 0
    layout = Layout(start.cut, start.width, resolved["token"], resolved.get("tag"), exact, config.comment)
    return layout, chain(start.lines, lines)


def _refuse_running_numbers(head: list[Sentence], layout: Layout, file: str) -> None:
    """Raise CorpusError if the words of all first sentences are 0, 1, 2…: the column is an index."""
    if sum(len(sentence.tokens) for sentence in head) <= len(head):
        return
    for sentence in head:
        length = len(sentence.tokens)
        if sentence.tokens not in ([str(i) for i in range(length)], [str(i + 1) for i in range(length)]):
            return
    problem = f"column {layout.token} (token) has running numbers, not words"
    raise CorpusError(file, None, problem, f"set corpus.columns.token, for example to {layout.token + 1}")


def guess(head: Head) -> Guess | None:
    """Guess the settings of a file with one word in a line; None for other files."""
    columns, kinds = head.columns, {column.kind for column in head.columns}
    blank = any(not line.strip() or starts_document(line) for line in head.lines[1:])
    if "words" not in kinds or not (blank or kinds & {"spans", "runs"}):
        return None
    if not blank and len(head.nonblank_lines) > ONE_SENTENCE:
        reason = "columns without empty lines: put an empty line between sentences"
        return Guess(source="conll", reason=reason, confidence=LIKELY, readable=False)
    separator = "tab" if head.has_tabs else "space"
    description = f"{len(columns)} columns between {separator}s" if len(columns) > 1 else "no tags"
    word_place = next(column.place for column in columns if column.kind == "words")
    targets = tuple(
        Target(
            {"columns": {"token": word_place, "tag": column.place}, "scheme": _scheme_of(column)},
            column.examples,
        )
        for column in tag_columns(columns)
    )
    return Guess(
        source="conll", reason=f"one word per line, empty lines between sentences, {description}", confidence=LIKELY,
        settings={"separator": separator}, targets=targets, labelled=bool(targets), columns=columns,
    )  # fmt: skip


def _scheme_of(column: Column) -> str:
    """Return `auto`, or the scheme that cannot be found from the tags."""
    return "io" if column.kind == "runs" else "auto"


def combine_guesses(by_language: Mapping[str, Sequence[Guess]]) -> tuple[PlainObject, list[str]]:
    """Combine the guesses of labelled files into settings of a corpus and doubts.

    Doubts are about differing files and further tag columns.

    Args:
        by_language: Language → guesses of its labelled files.
    """
    columns, schemes = dict[str, Any](), dict[str, str]()
    other_columns: dict[int, Column] = {}
    notes: list[str] = []
    for language, files in by_language.items():
        best = files[0]
        tag, *more = tag_columns(best.columns)
        settings = best.targets[0].settings
        word_place, width = settings["columns"]["token"], len(best.columns)
        # Where files of different widths have the tag in the last column, columns are counted from the right.
        same_place = tag.place != width - 1 or all(len(file.columns) == width for file in files)
        tag_place = tag.place if same_place else -1
        columns[language] = {"token": word_place, "tag": tag_place}
        schemes[language] = settings["scheme"]
        other_columns = {column.place: column for column in more} | other_columns
        for file in files:
            if not _has_same_columns(file.columns, word_place, tag_place, tag.kind):
                notes.append(
                    f"{file.name} has other columns than {best.name}: {describe_columns(file.columns)}"
                )
    notes += [
        f"column {place} could be the tags too: {other_columns[place].describe()}"
        for place in sorted(other_columns)
    ]
    corpus_settings: dict[str, Any] = {"columns": merge_values(columns)}
    written = {file.settings["separator"] for files in by_language.values() for file in files}
    if len(written) == 1:
        corpus_settings["separator"] = written.pop()
    if set(schemes.values()) != {"auto"}:
        corpus_settings["scheme"] = merge_values(schemes)
    return corpus_settings, notes


def _has_same_columns(columns: Sequence[Column], word_place: int, tag_place: int, tag_kind: str) -> bool:
    """Return True if the columns at the two places have words and tags; `tag_place` may be −1, the last column."""
    if max(word_place, tag_place) >= len(columns):
        return False
    tags = columns[tag_place]
    # A short file may have O alone, by which its kind of tags cannot be recognised.
    return columns[word_place].kind == "words" and (tags.kind == tag_kind or tags.distinct == 1)
