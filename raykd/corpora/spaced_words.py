"""Words with white space inside, counted for a warning: served text is split at white space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.faults import MOST_EXAMPLES

SPACED_SHARE = 0.001
"""Minimum share of words with white space inside that is reported; numbers like `10 000` are rarer."""


@dataclass(frozen=True)
class SpacedWords:
    """Words of a language with white space inside, as in Vietnamese; served text is split there.

    Attributes:
        count: Number of words with white space inside.
        words: Number of words that were examined.
        examples: Some of these words.
    """

    count: int = 0
    words: int = 0
    examples: Sequence[str] = ()

    def with_words(self, words: int, spaced: Sequence[str]) -> SpacedWords:
        """Return the counts after further words.

        Args:
            words: Number of further words.
            spaced: Words among these with white space inside.
        """
        examples = dict.fromkeys([*self.examples, *spaced[: 10 * MOST_EXAMPLES]])
        return SpacedWords(self.count + len(spaced), self.words + words, tuple(examples)[:MOST_EXAMPLES])

    def message(self, language: str) -> str:
        """Return a warning; empty where such words are rare."""
        if self.count < max(1, SPACED_SHARE * self.words):
            return ""
        share, examples = 100 * self.count / self.words, ", ".join(map(repr, self.examples))
        return (
            f"{share:.1f} % of the words of {language} have a space inside (for example {examples}): served text is "
            "split at white space, so these words are not found in it; if you know the words, give them as a list"
        )


def count_spaced_words(table: pa.Table) -> dict[str, SpacedWords]:
    """Return the words with white space inside, by language, for languages with any.

    Args:
        table: Corpus part with the columns `tokens` and `language`.
    """
    by_language: dict[str, SpacedWords] = {}
    for batch in table.select(["tokens", "language"]).to_batches():
        for language in batch["language"].unique().to_pylist():
            in_language = pc.call_function("equal", [batch["language"], pa.scalar(language)])
            words = batch["tokens"].filter(in_language).flatten()
            inside = pc.call_function("match_substring_regex", [words], pc.MatchSubstringOptions(r"[\s\pZ]"))
            spaced = words.filter(inside)
            by_language[language] = by_language.get(language, SpacedWords()).with_words(
                len(words), spaced.to_pylist()
            )
    return {language: spaced for language, spaced in by_language.items() if spaced.count}
