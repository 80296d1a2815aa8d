"""mTOP: utterances of six languages with trees of intents and slots.

Source: Li et al. 2021, "MTOP: A comprehensive multilingual task-oriented semantic parsing benchmark".

Its files are `{lang}/train.txt`, `{lang}/eval.txt` and `{lang}/test.txt`: eight columns between tabs, without a
header.

    1 id   2 intent   3 slots (start:end:SL:NAME, …)   4 utterance   5 domain   6 locale
    7 tree in the decoupled form, [IN:GET_WEATHER [SL:LOCATION boston ] ]
    8 JSON with the utterance's words, {"tokens": [...], "tokenSpans": [...]}

The words are read from column 8, the tree from column 7; other columns are ignored. As in all utterances
(`utterance_files.py`), one artificial word is put in front.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from typing_extensions import override

from raykd.corpora.column_files import cut_at_tabs
from raykd.corpora.columns import ALMOST
from raykd.corpora.files import BrokenLine
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.semantic_trees import tree_of_text
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import TextConfig
from raykd.errors import CorpusError
from raykd.forms import STEPS, LabelForm
from raykd.forms.steps import steps_from_tree
from raykd.forms.tag_schemes import ReadScheme
from raykd.forms.utterance_marks import UTTERANCE
from raykd.pluralise import pluralise

COLUMNS, TREE, WORDS = 8, 6, 7
"""Number of columns, and the columns of the tree and the words, from 0."""
HINT = "correct the line"


class MtopSource(TextConfig):
    """The files of mTOP."""

    forms: ClassVar[tuple[LabelForm, ...]] = (STEPS,)
    source: Literal["mtop"]
    scheme: Literal["flat"] = "flat"

    @override
    def scheme_of(self, language: str) -> ReadScheme:
        return "parse"


def parse(
    config: MtopSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Parse the lines of one file.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.

    Yields:
        Words of an utterance, with the steps of its tree as tags. In the steps, words are counted from the artificial
        one, which is put in front later (`read_utterances`).
    """
    labelled = config.reads_tags(part, language)
    for number, line in enumerate(lines, start=1):
        if isinstance(line, BrokenLine):
            yield Faulty(language, (line.fault(file, number),))
        elif line.strip():
            try:
                words, steps = _utterance(line, labelled=labelled)
            except ValueError as error:
                yield Faulty(language, (CorpusError(file, number, str(error), HINT),))
            else:
                yield Sentence(words, steps, language, (file, number))


def _utterance(line: str, *, labelled: bool) -> tuple[list[str], list[str] | None]:
    """Words and steps of a line; steps are None where they are not read. ValueError for a faulty line."""
    cells = cut_at_tabs(line.rstrip("\r\n"))
    if len(cells) != COLUMNS:
        raise ValueError(f"{pluralise(len(cells), 'column')} between tabs: expected {COLUMNS}")
    words = _words(cells[WORDS])
    if not labelled:
        return words, None
    try:
        return words, steps_from_tree(tree_of_text(cells[TREE], [UTTERANCE, *words]))
    except ValueError as error:
        raise ValueError(f"column {TREE + 1}, {cells[TREE][:80]!r}: {error}") from None


def _words(cell: str) -> list[str]:
    """Words in column 8."""
    try:
        # In some lines a word that is a quotation mark stands there as it is.
        content = json.loads(cell.replace('"""', '"\\""'))
        words = content["tokens"]
    except (json.JSONDecodeError, TypeError, KeyError):
        words = None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise ValueError(
            f'column {WORDS + 1} has no words: expected {{"tokens": ["…"], …}}, got {cell[:60]!r}'
        )
    return words


def guess(head: Head) -> Guess | None:
    """Recognise lines with trees, for which no sweep file is drafted."""
    if head.lines and head.share(lambda line: "\t[IN:" in line) >= ALMOST:
        description = "trees of intents and slots: docs/SEMANTIC_PARSING.md says how they are read"
        return Guess(source="mtop", reason=description, confidence=CERTAIN, readable=False)
    return None
