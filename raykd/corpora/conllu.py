"""CoNLL-U: ten columns between tabs, one syntactic word per line (Universal Dependencies).

Multi-word tokens (ids like 3-4) and empty nodes (8.1) are skipped: words are tagged, and have heads. The package
`conllu` is not used, because it accepts a line of two columns and reports no line numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import model_validator

from raykd.corpora.column_files import (
    HEAD_SENTENCES,
    NO_WORD,
    Cells,
    Layout,
    cut_at_tabs,
    row_faults,
    sentence_rows,
)
from raykd.corpora.files import BrokenLine
from raykd.corpora.guess import CERTAIN, Guess, Head, Target
from raykd.corpora.predicted_pos import PredictedPos
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import TextConfig, refuse_unknown_languages
from raykd.corpora.trees import read_heads
from raykd.errors import CorpusError
from raykd.forms.tag_schemes import FileScheme
from raykd.pluralise import pluralise

Pos = Literal["upos", "xpos"]
Column = Literal["upos", "xpos", "deprel"]
COLUMNS: Mapping[Column, int] = MappingProxyType({"upos": 3, "xpos": 4, "deprel": 7})
WIDTH = 10
HEAD_COLUMN = 6
MISSING = ("_", "")
HINT = "correct the line; for other column files set corpus.source: conll"


class ConlluSource(TextConfig):
    """CoNLL-U with one of the columns as the tag, or with trees."""

    source: Literal["conllu"]
    tag: Literal["upos", "xpos", "deprel", "tree"] = "upos"
    """A column, or `tree`: heads (HEAD), relations (DEPREL) and parts of speech (`pos`)."""
    pos: Pos = "upos"
    """For trees: the column of gold parts of speech."""
    predicted_pos: PredictedPos | None = None
    """For trees: a model that predicts parts of speech, for unlabelled text or for all sentences."""
    relations: Literal["full", "universal"] = "full"
    """For trees: `universal` cuts subtypes, `nsubj:pass` to `nsubj`, as evaluations do."""
    scheme: FileScheme | dict[str, FileScheme] = "flat"

    @model_validator(mode="after")
    def _settings_of_trees_agree(self) -> ConlluSource:
        if self.tag == "tree":
            if self.scheme != "flat":
                raise ValueError("relations are no spans: remove scheme")
            return self
        for name in ("pos", "relations", "predicted_pos"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect without trees: set tag: tree, or remove it")
        return self

    @model_validator(mode="after")
    def _every_language_has_its_model(self) -> ConlluSource:
        if self.predicted_pos is not None:
            refuse_unknown_languages("predicted_pos.model", self.predicted_pos.model, self.languages)
            missing = sorted({*self.languages} - self.predicted_pos.folders(self.languages).keys())
            if missing:
                problem = f"predicted_pos.model has nothing for {', '.join(missing)}"
                raise ValueError(f"{problem}: name it there, or add default")
        return self

    @property
    def leaves_out_trees(self) -> bool:
        """True if trees are not read."""
        return self.tag != "tree"

    @property
    def pos_origin(self) -> str:
        """Source of the parts of speech of a treebank, in words."""
        gold = f"gold, column {self.pos.upper()}"
        if self.predicted_pos is None:
            return gold
        predicted = f"predicted by {self.predicted_pos.describe()}"
        return predicted if self.predicted_pos.replace else f"{gold}, and where there are none {predicted}"


def parse(
    config: ConlluSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Yield the sentences of a file.

    Args:
        config: Configuration of the source.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part of the corpus; of a part without tags neither tags nor heads are read.
    """
    labelled = config.reads_tags(part, language)
    trees = config.tag == "tree"
    tag: Column = "deprel" if config.tag == "tree" else config.tag
    columns: dict[Column, str] = {tag: f"set corpus.tag ({', '.join(COLUMNS)})"} if labelled else {}
    if labelled and trees:
        columns = {tag: "leave the sentence out"}
        if config.predicted_pos is None:
            columns[config.pos] = f"set corpus.pos ({', '.join(get_args(Pos))}) or corpus.predicted_pos"
    layout = Layout(cut_at_tabs, width=WIDTH, token=1, tag=None, exact=True, comment="#", hint=HINT)
    sentences = sentence_rows(lines, layout)
    head = list(islice(sentences, HEAD_SENTENCES))
    _refuse_other_columns(head, file, labelled=labelled)
    for numbers, rows in chain(head, sentences):
        faults = row_faults(rows, numbers, layout, file)
        # Multi-word tokens and empty nodes are no words; an id of any other form is checked as a word's.
        words = (
            []
            if faults
            else [
                (row, number)
                for row, number in zip(rows, numbers, strict=True)
                if not NO_WORD.fullmatch(row[0])
            ]
        )
        faults = faults or _word_faults(words, columns, file)
        heads = None
        if labelled and trees and not faults:
            heads, faults = _read_heads(words, file)
        if faults:
            yield Faulty(language, faults)
            continue
        tags = [row[COLUMNS[tag]] for row, _ in words] if labelled else None
        if tags is not None and config.relations == "universal":
            tags = [relation.partition(":")[0] or relation for relation in tags]
        yield Sentence(
            [layout.word(row) for row, _ in words], tags, language, (file, numbers[0]),
            heads=heads, pos=_read_pos(words, COLUMNS[config.pos]) if trees else None,
        )  # fmt: skip


def _read_heads(words: list[tuple[Cells, int]], file: str) -> tuple[list[int], tuple[CorpusError, ...]]:
    heads, faults = read_heads([row[HEAD_COLUMN] for row, _ in words], [row[1] for row, _ in words])
    return heads, tuple(
        CorpusError(file, words[fault.place][1], fault.problem, fault.hint) for fault in faults
    )


def _read_pos(words: list[tuple[Cells, int]], column: int) -> list[str] | None:
    """Return the parts of speech of a sentence; None if a word has none."""
    pos = [row[column] for row, _ in words]
    return None if any(tag in MISSING for tag in pos) else pos


def _refuse_other_columns(head: list[tuple[list[int], list[Any]]], file: str, *, labelled: bool) -> None:
    """Raise CorpusError if all rows of the first sentences have too few columns: the file is not CoNLL-U."""
    rows = [
        (number, row)
        for numbers, sentence in head
        for number, row in zip(numbers, sentence, strict=True)
        if type(row) is not BrokenLine
    ]
    if not rows or any(len(row) >= WIDTH for _, row in rows):
        return
    number, row = rows[0]
    # Cells of a file with spaces between them are found too.
    cells = row if len(row) > 1 else row[0].split()
    first = int(len(cells) > 2 and cells[0].isdecimal())
    problem = (
        f"{pluralise(len(row), 'column')} between tabs where CoNLL-U has {WIDTH}: {'  '.join(row)[:60]!r}"
    )
    if not labelled:
        hint = "name it in corpus.unlabelled, and set corpus.unlabelled_form: columns"
        hint += ", sentences or documents" if len(row) == 1 else ""
    elif len(cells) > 1:
        hint = f"set corpus.source: conll and corpus.columns: {{token: {first}, tag: {len(cells) - 1}}}"
    else:
        hint = "for words without tags set corpus.source: conll"
    raise CorpusError(file, number, problem, hint)


def _word_faults(
    words: list[tuple[Cells, int]], columns: Mapping[Column, str], file: str
) -> tuple[CorpusError, ...]:
    """Return faults for wrong ids, and for words without a value in one of `columns`, given with hints."""
    faults: list[CorpusError] = []
    for expected, (row, number) in enumerate(words, start=1):
        if row[0] != str(expected):
            problem = f"word id {row[0]!r} where {expected} is expected"
            hint = "number a sentence's words 1, 2, 3… and end it with an empty line"
            # Those that follow are only counted from here.
            return (*faults, CorpusError(file, number, problem, hint))
        for name, otherwise in columns.items():
            if row[COLUMNS[name]] in MISSING:
                hint = f"annotate it, or {otherwise}"
                faults.append(CorpusError(file, number, f"{row[1]!r} has no {name}", hint))
    return tuple(faults)


def guess(head: Head) -> Guess | None:
    """Guess the settings of a file with ten columns and word numbers; None for other files."""
    columns = head.columns
    if len(columns) != WIDTH or not head.has_tabs or columns[0].kind != "index":
        return None
    filled = {place for place, column in enumerate(columns) if column.examples != (MISSING[0],)}
    tags = [tag for tag, place in COLUMNS.items() if place in filled]
    pos = next((tag for tag in tags if tag in get_args(Pos)), None)
    trees = {"tag": "tree", "pos": pos} if pos and filled.issuperset((HEAD_COLUMN, COLUMNS["deprel"])) else {}
    doubts = [f"tag {tags[0]} is taken; the files also have {' and '.join(tags[1:])}"] if tags[1:] else []
    doubts += ["for parsers: raykd init DIR --task parsing"] if trees else []
    return Guess(
        source="conllu", reason="ten columns between tabs and word numbers: CoNLL-U", confidence=CERTAIN,
        settings={"tag": tags[0]} if tags else {}, labelled=bool(tags), trees=trees, doubts=tuple(doubts),
        targets=tuple(
            Target({"tag": tag}, columns[place].examples) for tag, place in COLUMNS.items() if place in filled
        ),
    )  # fmt: skip
