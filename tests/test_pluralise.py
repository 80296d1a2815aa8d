"""Numbers with a noun."""

from __future__ import annotations

import pytest

from raykd.corpora.report import CorpusReport
from raykd.pluralise import pluralise


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("text",), "0 texts"),
        (1, ("text",), "1 text"),
        (2400, ("transfer set",), "2,400 transfer sets"),
        (1, ("entry", "entries"), "1 entry"),
        (3, ("entry", "entries"), "3 entries"),
    ],
)
def test_one_is_no_plural(number, words, expected):
    assert pluralise(number, *words) == expected


@pytest.mark.parametrize("count", [1, 2])
def test_a_corpus_warns_in_sentences(count):
    counts = {"train": {"en": count}, "dev": {}, "test": {}}
    report = CorpusReport(
        {part: {"en": 5} for part in ("train", "dev", "test")},
        {"en": "iob2"}, counts, counts, counts, count, {}, skipped=counts,
    )  # fmt: skip
    keep = {name: f"set corpus.{name}: keep to keep them" for name in ("overlaps", "duplicates")}
    assert (
        report.warnings()
        == {
            1: [
                "1 tag of train en was not valid in its scheme (iob2) and was repaired",
                "1 sentence of train en has faults and was left out",
                f"1 sentence was dropped from train: it is also in dev or test (en 1); {keep['overlaps']}",
                f"1 repeated sentence was dropped from train (en 1); {keep['duplicates']}",
                "1 sentence of dev is also in test",
            ],
            2: [
                "2 tags of train en were not valid in their scheme (iob2) and were repaired",
                "2 sentences of train en have faults and were left out",
                f"2 sentences were dropped from train: they are also in dev or test (en 2); {keep['overlaps']}",
                f"2 repeated sentences were dropped from train (en 2); {keep['duplicates']}",
                "2 sentences of dev are also in test",
            ],
        }[count]
    )
