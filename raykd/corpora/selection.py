"""Which sentences become which part: caps, the drawn split, and no test sentence in training.

Everything random is drawn per language from (seed, language) alone: a language's sentences stay the same whatever
other languages a corpus has, and a smaller cap takes a subset of what a larger one takes.

Selection looks at numbers only (`pool.Columns`): sentences are rows of what was read, equal where their words are.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from raykd.corpora.hashes import first_occurrences
from raykd.corpora.pool import Columns
from raykd.corpora.source import Cap, Role, SourceConfig, Split, for_language

TRAINING = ("train", "unlabelled")
HELD_OUT = ("dev", "test")

Rows = np.ndarray
"""Sentences by their rows: int64."""
Reason = Literal["overlaps", "duplicates"]


@dataclass
class Dropped:
    """How many sentences were dropped, by part, and which."""

    overlaps: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TRAINING, 0))
    """Their text is also in dev or test."""
    duplicates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TRAINING, 0))
    """Their text was read before in the same language."""
    rows: dict[Reason, dict[str, list[Rows]]] = field(
        default_factory=lambda: {"overlaps": {}, "duplicates": {}}, compare=False
    )

    def record(self, reason: Reason, part: str, rows: Rows) -> None:
        """Count rows that were dropped."""
        getattr(self, reason)[part] += len(rows)
        self.rows[reason].setdefault(part, []).append(rows)


def select(columns: Columns, config: SourceConfig) -> tuple[dict[str, Rows], Dropped]:
    """The sentences that `config` asks for, by part, in the order in which they were read.

    A training sentence whose text also occurs in dev or test, of any language, is dropped before the caps are
    filled, unless `overlaps` is "keep"; so is one whose text its own language already has, unless `duplicates` is. Dev
    and test stay as they are.

    Of a language without labels every training sentence that is not drawn for its test is unlabelled text; of
    a zero-shot language only the test is kept. Neither has a dev. Tags of the unlabelled part are not to be used.
    """
    return _Selection(columns, config).parts()


def draw_order(count: int, seed: int, language: str) -> np.ndarray:
    """The order in which the sentences of one language are drawn: a permutation of `count`."""
    return np.random.default_rng([seed, zlib.crc32(language.encode())]).permutation(count)


def split_sizes(count: int, split: Split) -> tuple[int, int, int]:
    """How many of `count` sentences go to train, dev and test; what does not divide evenly goes to train."""
    whole = split.train + split.dev + split.test
    dev, test = count * split.dev // whole, count * split.test // whole
    return count - dev - test, dev, test


class _Selection:
    def __init__(self, columns: Columns, config: SourceConfig):
        self.columns, self.config, self.dropped = columns, config, Dropped()

    def parts(self) -> tuple[dict[str, Rows], Dropped]:
        config, read = self.config, self._by_role()
        labelled, text_only = self._with_role("labelled"), self._with_role("unlabelled")
        held_out = {
            "dev": self._cap_each(read["dev"], config.dev_cap)[0],
            "test": self._cap_each(read["test"], config.test_cap)[0],
        }
        pool = self._without_duplicates(read["train"], "train")
        pool = self._without_overlaps(pool, held_out, "train")
        if config.split is None:
            train, rest = self._cap_each(pool, config.cap, config.cap_per_class)
        else:
            train, rest = self._cap_each(pool, config.cap)
            train, drawn = self._split_each(train, config.split)
            held_out = drawn if config.draws("test") else {**drawn, "test": held_out["test"]}
            train, beyond = self._cap_each(train, None, config.cap_per_class)
            # Nothing is selected on a target: its share of dev is text like the rest.
            rest = np.concatenate([rest, beyond, self._in_languages(held_out["dev"], text_only)])
            held_out["dev"] = self._in_languages(held_out["dev"], self._scored_on_dev())
        text = [self._in_languages(np.concatenate([train, rest]), text_only), read["unlabelled"]]
        # A split is drawn per language: a text may still be in the train part of one and in the test of another.
        train = self._without_overlaps(self._in_languages(train, labelled), held_out, "train")
        text.append(
            self._in_languages(rest, {language for language in labelled if config.takes_rest(language)})
        )
        unlabelled = self._without_duplicates(np.concatenate(text), "unlabelled", seen=train)
        unlabelled = self._without_overlaps(unlabelled, held_out, "unlabelled")
        unlabelled, _ = self._cap_each(unlabelled, config.unlabelled_cap)
        return {"train": train, "unlabelled": unlabelled, **held_out}, self.dropped

    def _by_role(self) -> dict[str, Rows]:
        """What each language gives by its role. Where a split is drawn, it is drawn from targets' train too."""
        labelled, text_only = self._with_role("labelled"), self._with_role("unlabelled")
        train = self.columns.of_part("train")
        text = self._in_languages(self.columns.of_part("unlabelled"), labelled | text_only)
        if self.config.split is None:
            train, text = (
                self._in_languages(train, labelled),
                np.concatenate([text, self._in_languages(train, text_only)]),
            )
        dev = self._in_languages(self.columns.of_part("dev"), self._scored_on_dev())
        return {"train": train, "unlabelled": text, "dev": dev, "test": self.columns.of_part("test")}

    def _scored_on_dev(self) -> set[str]:
        targets = self._with_role("zero-shot") if self.config.zero_shot_dev else set()
        return self._with_role("labelled") | targets

    def _with_role(self, role: Role) -> set[str]:
        return {language for language in self.config.languages if self.config.role(language) == role}

    def _in_languages(self, rows: Rows, languages: set[str]) -> Rows:
        wanted = np.array([name in languages for name in self.columns.languages], dtype=bool)
        return rows[wanted[self.columns.language[rows]]] if len(wanted) else rows

    def _drawing_orders(self, rows: Rows) -> Iterator[tuple[str, np.ndarray]]:
        """Of each language the order in which its sentences are drawn: places in `rows`."""
        codes = self.columns.language[rows]
        for code in np.unique(codes).tolist():
            places, language = np.flatnonzero(codes == code), self.columns.languages[code]
            yield language, places[draw_order(len(places), self.config.seed, language)]

    def _cap_each(self, rows: Rows, cap: Cap | None, per_class: Cap | None = None) -> tuple[Rows, Rows]:
        """At most `cap` sentences of each language and, among these, `per_class` of each of its classes; then the
        others. Both are in the order of `rows`.
        """
        taken = np.zeros(len(rows), dtype=bool)
        for language, order in self._drawing_orders(rows):
            drawn, most = order[: for_language(cap, language)], for_language(per_class, language)
            taken[drawn if most is None else self._first_of_each_class(rows, drawn, most)] = True
        return rows[taken], rows[~taken]

    def _first_of_each_class(self, rows: Rows, drawn: np.ndarray, most: int) -> np.ndarray:
        groups = self.columns.group[rows[drawn]]
        order = np.argsort(groups, kind="stable")
        firsts = np.searchsorted(groups[order], groups[order], side="left")
        return drawn[order[np.arange(len(order)) - firsts < most]]

    def _split_each(self, rows: Rows, split: Split) -> tuple[Rows, dict[str, Rows]]:
        masks = np.zeros((3, len(rows)), dtype=bool)
        for _, order in self._drawing_orders(rows):
            train, dev, _ = split_sizes(len(order), split)
            for mask, drawn in zip(masks, np.split(order, [train, train + dev]), strict=True):
                mask[drawn] = True
        train, dev, test = (rows[mask] for mask in masks)
        return train, {"dev": dev, "test": test}

    def _without_duplicates(self, rows: Rows, part: str, *, seen: Rows | None = None) -> Rows:
        """`rows` without what stands in `seen`, or before, in the same language."""
        if self.config.duplicates == "keep":
            return rows
        keys = self._text_keys(rows)
        fresh = (
            np.arange(len(rows)) if seen is None else np.flatnonzero(~np.isin(keys, self._text_keys(seen)))
        )
        kept = np.zeros(len(rows), dtype=bool)
        kept[fresh[first_occurrences(keys[fresh])]] = True
        self.dropped.record("duplicates", part, rows[~kept])
        return rows[kept]

    def _text_keys(self, rows: Rows) -> np.ndarray:
        """Equal for equal words in one language, int64."""
        languages = max(len(self.columns.languages), 1)
        return self.columns.sentence[rows].astype(np.int64) * languages + self.columns.language[rows]

    def _without_overlaps(self, rows: Rows, parts: dict[str, Rows], part: str) -> Rows:
        if self.config.overlaps == "keep":
            return rows
        overlap = find_overlaps(self.columns, rows, parts)
        self.dropped.record("overlaps", part, rows[overlap])
        return rows[~overlap]


def find_overlaps(columns: Columns, rows: Rows, parts: Mapping[str, Rows]) -> np.ndarray:
    """Which of `rows` have the text of a sentence of dev or test: bool."""
    held_out = np.concatenate([parts[part] for part in HELD_OUT])
    return np.isin(columns.sentence[rows], columns.sentence[held_out])
