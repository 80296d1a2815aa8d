"""Raw text without tags in all parts, for the training of language models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.corpora.guess import FALLBACK, Guess, Head
from raykd.corpora.plain_text import parse_documents, parse_sentences
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Name, TextConfig, for_language

Form = Literal["sentences", "documents"]
END = ".!?…。！？।\"'”»)"
NEXT_SENTENCE = re.compile(r"\w[.!?]['\"”»)]? +['\"“«(]?[^\W\d_a-z]|[。！？].")
"""End of a sentence inside a line, followed by the beginning of the next."""


class TextSource(TextConfig):
    """Text without tags, in train, dev and test alike."""

    source: Literal["text"]
    form: Form | dict[str, Form] = "sentences"
    """`sentences`: a sentence per line. `documents`: empty lines between paragraphs, which are split into sentences
    (needs the package sentencex, `pip install sentencex`)."""
    labels: tuple[Name, ...] = ()
    """The labels that your annotator gives, where there are no gold ones: types of spans such as PER, tags, or classes
    of sentences. Its own labels of dev and test then stand in for gold labels, and every score is called agreement."""
    max_characters: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of characters read from a sentence: as many words as fit, at least one (Soltan et al. 2021,
    §3.1: 256); null: no limit."""

    @property
    @override
    def annotator_labels(self) -> tuple[str, ...]:
        return self.labels

    @property
    @override
    def has_text(self) -> bool:
        return bool(self.labels) or super().has_text


def parse(
    config: TextSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Parse one file into sentences without tags.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.
    """
    form = for_language(config.form, language)
    read_one = parse_documents if form == "documents" else parse_sentences
    for sentence in read_one(config, lines, file=file, language=language, part=part):
        if isinstance(sentence, Faulty) or config.max_characters is None:
            yield sentence
        else:
            yield sentence._replace(tokens=_cut(sentence.tokens, config.max_characters))


def _cut(words: list[str], limit: int) -> list[str]:
    """The first words within `limit` characters, with a space before each but the first; at least one word."""
    ends = accumulate(len(word) + 1 for word in words)
    fitting = sum(1 for _ in takewhile(lambda end: end - 1 <= limit, ends))
    return words[: max(1, fitting)]


def guess(head: Head) -> Guess | None:
    """Accept any text: one sentence per line, or documents.

    In documents some lines have several sentences, or sentences run over several lines.
    """
    if not head.lines:
        return None
    several = head.share(NEXT_SENTENCE.search)
    wrapped = (
        len(head.nonblank_lines) < len(head.lines)
        and 2 * head.share(lambda line: line.strip()[-1] in END) < 1
    )
    form = "documents" if 5 * several > 1 or wrapped else "sentences"
    description = "several sentences in a line" if several else "sentences over several lines"
    description = description if form == "documents" else "a sentence in each line"
    return Guess(
        source="text", reason=f"plain text, {description}", confidence=FALLBACK, labelled=False,
        settings={"unlabelled_form": form},
    )  # fmt: skip
