"""Plain text: a sentence in each line, or paragraphs that are split into sentences.

Words are those that a served student sees in the same text (`serving/labeller.py`); texts with one class each are split
at white space, as their labelled sentences are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import TextConfig, for_language
from raykd.errors import CorpusError
from raykd.serving.labeller import WORDS

LINES = 1000
"""Lines of a paragraph that are split together; the last sentence of a longer one is joined with what follows."""
Line = tuple[int, str]


def parse(
    config: TextConfig, lines: Iterable[str], *, file: str, language: str, labelled: bool
) -> Iterator[Sentence | Faulty]:
    """The sentences of one file's lines, without tags."""
    split: Callable[[str], list[str]] = str.split if config.unit == "sentence" else WORDS.findall
    whole = for_language(config.unlabelled_form, language) == "documents"
    for number, text in _by_document(lines, language) if whole else enumerate(lines, start=1):
        if type(text) is BrokenLine:
            yield Faulty(language, (CorpusError(file, number, text.problem, text.hint),))
        elif words := split(text):
            yield Sentence(words, None, language, (file, number), config.unit)


def _by_document(lines: Iterable[str], language: str) -> Iterator[Line]:
    """Each sentence with the line at which its block begins; lines that are not text as they are."""
    segment = _segmenter()
    block: list[str] = []
    first = 1
    for number, line in enumerate(lines, start=1):
        if type(line) is BrokenLine:
            yield number, line
        elif line.strip():
            first = first if block else number
            block.append(line.strip())
            if len(block) >= LINES:
                *sentences, last = segment(language, " ".join(block))
                yield from ((first, sentence) for sentence in sentences)
                block, first = [last], number
        elif block:
            yield from ((first, sentence) for sentence in segment(language, " ".join(block)))
            block = []
    yield from ((first, sentence) for sentence in segment(language, " ".join(block)))


def _segmenter() -> Callable[[str, str], list[str]]:
    try:
        segment = importlib.import_module("sentencex").segment
    except ImportError:
        problem = "documents are split into sentences by the package 'sentencex', which is not installed"
        hint = "run pip install 'raykd[text]', or set corpus.unlabelled_form: sentences"
        raise CorpusError("corpus", None, problem, hint) from None
    return lambda language, text: list(segment(language, text))
