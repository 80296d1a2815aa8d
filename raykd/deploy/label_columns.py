"""Label files of columns: a word a line, an empty line after each sentence.

A parser fills HEAD and DEPREL of CoNLL-U; other columns get two more. It reads parts of speech in the column of CoNLL-U
that its export names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from raykd.corpora.column_files import starts_document
from raykd.corpora.conllu import COLUMNS, HEAD_COLUMN, MISSING, NO_WORD, WIDTH
from raykd.counted import counted
from raykd.errors import CorpusError
from raykd.serving.labeller import READ_AHEAD, Labeller

GIVE_POS = "give --pos DIR, an export of a student of task pos"
Numbered = Iterator[tuple[int, str]]
"""(line from 1, its text without the line end)."""
Rows = tuple[list[tuple[int, str, bool]], list[str]]
"""Each line of a sentence with its number and whether it is a word's, and the words."""


def label_columns(
    labeller: Labeller, lines: Numbered, file: str, column: int | None, batch: int
) -> Iterator[str]:
    """Each sentence with a last column of labels; comments stay where they are."""
    if labeller.pairs:
        problem = "columns of words have no pairs of texts, which the model labels"
        raise CorpusError(file, None, problem, "give --format text, tsv or jsonl")
    read = _sentences(lines, file, column)
    if labeller.trees is not None:
        yield from _of_trees(labeller, read, file, batch)
        return
    while own := list(islice(read, READ_AHEAD * batch)):
        texts = [words for _, words in own if words]
        intents: Iterator[str] = iter(())
        if labeller.utterances:
            found_of_each = labeller.intents_and_slots(texts, batch=batch)
            intents = (f"# intent: {intent}\n" for intent, _ in found_of_each)
            labels = iter([slots for _, slots in found_of_each])
        else:
            labels = iter(labeller.label(texts, batch=batch))
        for rows, words in own:
            found = iter(_for_each(next(labels), words) if words else ())
            yield (
                (next(intents, "") if words else "")
                + "".join(f"{row}\t{next(found)}\n" if is_word else f"{row}\n" for _, row, is_word in rows)
                + "\n"
            )


def _of_trees(labeller: Labeller, read: Iterator[Rows], file: str, batch: int) -> Iterator[str]:
    """Each sentence with its tree, in HEAD and DEPREL of CoNLL-U, else in two more columns."""
    while own := list(islice(read, READ_AHEAD * batch)):
        pos = [_pos_of(labeller, rows, file) for rows, words in own if words]
        trees = iter(labeller.parse([words for _, words in own if words], pos, batch=batch))
        for rows, words in own:
            arcs = iter(next(trees) if words else ())
            yield (
                "".join(f"{_with_arc(row, next(arcs)) if is_word else row}\n" for _, row, is_word in rows)
                + "\n"
            )


def _pos_of(labeller: Labeller, rows: list[tuple[int, str, bool]], file: str) -> list[str] | None:
    """The parts of speech of a sentence's words, where the model must be given them: a column of CoNLL-U."""
    if labeller.trees is None or not labeller.needs_pos:
        return None
    name = labeller.card["trees"]["pos"]
    found = []
    for number, row, is_word in rows:
        cells, problem = row.split("\t"), ""
        if not is_word:
            continue
        if len(cells) != WIDTH:
            problem = f"the model reads parts of speech, {name.upper()} of CoNLL-U's {WIDTH} columns, and the line has "
            raise CorpusError(file, number, f"{problem}{counted(len(cells), 'column')}", GIVE_POS)
        if (pos := cells[COLUMNS[name]]) not in labeller.trees.pos:
            known = ", ".join(labeller.trees.own_pos)
            problem = f"unknown {name.upper()} {pos!r} ({known})"
            if pos in MISSING:
                problem = f"{cells[1]!r} has no {name.upper()}, which the model reads"
            raise CorpusError(file, number, problem, f"annotate it, or {GIVE_POS}")
        found.append(pos)
    return found


def _with_arc(row: str, arc: tuple[int, str]) -> str:
    head, relation = arc
    cells = row.split("\t")
    if len(cells) != WIDTH:
        return f"{row}\t{head}\t{relation}"
    cells[HEAD_COLUMN], cells[COLUMNS["deprel"]] = str(head), relation
    return "\t".join(cells)


def _for_each(labels: list[str], words: list[str]) -> list[str]:
    """One label for each word: of a task that labels whole sentences the same for all."""
    return labels if len(labels) == len(words) else labels * len(words)


def _sentences(lines: Numbered, file: str, column: int | None) -> Iterator[Rows]:
    """The lines and the words of each sentence."""
    for block in _blocks(lines):
        separator = "\t" if any("\t" in text for _, text in block) else None
        cells = [(number, text, text.split(separator)) for number, text in block]
        # A word "#" has all columns, a comment has others.
        width = next((len(own) for _, text, own in cells if not text.startswith("#")), None)
        lines_of_words = [
            not starts_document(text) and (not text.startswith("#") or len(own) == width)
            for _, text, own in cells
        ]
        if column is None and any(lines_of_words):
            column = _column(
                [own for (_, _, own), of_word in zip(cells, lines_of_words, strict=True) if of_word]
            )
        rows, words = [], []
        for (number, text, own), of_word in zip(cells, lines_of_words, strict=True):
            is_word = of_word and not (column and NO_WORD.fullmatch(own[0]))
            rows.append((number, text, is_word))
            if is_word and len(own) <= (column or 0):
                problem = (
                    f"the line has {counted(len(own), 'column')}, and words are expected in column {column}"
                )
                raise CorpusError(file, number, problem, "set --column to the column of the words, from 0")
            words += [own[column or 0]] if is_word else []
        yield rows, words


def _column(rows: list[list[str]]) -> int:
    """The column of the words: the second where the first counts them, from 0 or from 1."""
    numbers = [own[0] for own in rows if not NO_WORD.fullmatch(own[0])]
    counted = [*map(str, range(len(numbers) + 1))]
    return int(numbers in (counted[1:], counted[:-1]) and all(len(own) > 1 for own in rows))


def _blocks(lines: Numbered) -> Iterator[list[tuple[int, str]]]:
    """The lines between empty ones."""
    block: list[tuple[int, str]] = []
    for number, text in lines:
        if text.strip():
            block.append((number, text))
        elif block:
            yield block
            block = []
    if block:
        yield block
