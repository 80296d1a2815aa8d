"""Plain text: one sentence per line, or paragraphs that are split into sentences.

Words are those that a served student sees in the same text (`serving/labeller/signs.py`). Texts with one
class each are split at white space, like their labelled sentences.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import TextConfig
from raykd.errors import CorpusError
from raykd.serving.labeller.signs import SIGNS, WHITESPACE, word_places

BLOCK = 2000
"""Maximum number of characters that are split together; the last sentence of a block begins the next one.

In longer blocks, a quotation mark that is not closed swallows all text that follows."""
Line = tuple[int, str]


def parse_sentences(
    config: TextConfig, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Parse a file with one sentence per line, without tags.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.
    """
    return _sentences(config, enumerate(lines, start=1), file, language)


def parse_documents(
    config: TextConfig, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Parse a file of paragraphs into sentences without tags.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.
    """
    return _sentences(config, _document_sentences(lines, language), file, language)


def _sentences(
    config: TextConfig, lines: Iterable[Line], file: str, language: str
) -> Iterator[Sentence | Faulty]:
    split = WHITESPACE if config.unit == "sentence" else SIGNS
    for number, text in lines:
        if type(text) is BrokenLine:
            yield Faulty(language, (text.fault(file, number),))
        elif words := [text[first:last] for first, last in word_places(text, split)]:
            yield Sentence(words, None, language, (file, number), config.unit)


def _document_sentences(lines: Iterable[str], language: str) -> Iterator[Line]:
    """Sentences with the first line of the block; broken lines are passed on."""
    segment = sentence_splitter()
    text, first = "", 1
    for number, line in enumerate(lines, start=1):
        if type(line) is BrokenLine:
            yield number, line
            continue
        if not line.strip():
            yield from ((first, sentence) for sentence in segment(language, text))
            text = ""
        for piece in _blocks_of_line(line):
            first = first if text else number
            text = f"{text} {piece}" if text else piece
            if len(text) >= BLOCK:
                *sentences, text = segment(language, text)
                yield from ((first, sentence) for sentence in sentences)
                first = number
            if len(text) >= BLOCK:
                yield first, text
                text = ""
    yield from ((first, sentence) for sentence in segment(language, text))


def _blocks_of_line(line: str) -> list[str]:
    """A line in pieces of at most a block, cut at white space where there is some."""
    longest = BLOCK - 1
    return re.findall(rf"\S.{{0,{longest}}}(?=\s|$)|\S.{{0,{longest}}}", line)


def sentence_splitter() -> Callable[[str, str], list[str]]:
    """Return a function from language and text to sentences.

    Raises:
        CorpusError: The package sentencex is not installed.
    """
    try:
        segment = importlib.import_module("sentencex").segment
    except ImportError:
        problem = "documents are split into sentences by the package 'sentencex', which is not installed"
        hint = "run pip install sentencex, or set corpus.form, or corpus.unlabelled_form, to sentences"
        raise CorpusError("corpus", None, problem, hint) from None
    return lambda language, text: list(segment(language, text))
