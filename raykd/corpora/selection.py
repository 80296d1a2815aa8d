"""Selection of sentences for the parts: caps, the drawn split, and no test sentence in training.

Everything random is drawn per language from (seed, language) alone. So a language's sentences stay the same whatever
other languages a corpus has, and a smaller cap takes a subset of what a larger one takes.

Selection works on numbers only (`pool.Columns`): sentences are rows of the pool, equal where their words are.
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
"""Rows of sentences, int64."""
Reason = Literal["overlaps", "duplicates"]


@dataclass
class Dropped:
    """The dropped sentences, counted by part."""

    overlaps: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TRAINING, 0))
    """Sentences whose text is also in dev or test."""
    duplicates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TRAINING, 0))
    """Sentences whose text was read before in the same language."""
    rows: dict[Reason, dict[str, list[Rows]]] = field(
        default_factory=lambda: {"overlaps": {}, "duplicates": {}}, compare=False
    )

    def record(self, reason: Reason, part: str, rows: Rows) -> None:
        """Record dropped rows of a part."""
        getattr(self, reason)[part] += len(rows)
        self.rows[reason].setdefault(part, []).append(rows)


def select(columns: Columns, config: SourceConfig) -> tuple[dict[str, Rows], Dropped]:
    """Select the sentences of a corpus.

    A training sentence whose text also occurs in dev or test, of any language, is dropped before the caps are filled,
    unless `overlaps` is "keep". A sentence whose text its language already has is dropped too, unless `duplicates` is
    "keep". Dev and test stay as they are.

    For a language without labels, all training sentences not drawn for the test are unlabelled text. For a zero-shot
    language, only the test is kept. Neither has a dev part. Tags of the unlabelled part are not to be used.

    Args:
        columns: Numbers of the sentences in the pool.
        config: Settings of the corpus.

    Returns:
        Part → rows in reading order, and the dropped sentences.
    """
    return _Selection(columns, config).parts()


def draw_order(count: int, seed: int, language: str) -> np.ndarray:
    """Return the order of drawing for the sentences of a language: a permutation of `count`."""
    return np.random.default_rng([seed, zlib.crc32(language.encode())]).permutation(count)


def split_sizes(count: int, split: Split) -> tuple[int, int, int]:
    """Return the sizes of train, dev and test for `count` sentences; the remainder goes to train."""
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
        candidates = self._without_duplicates(read["train"], "train")
        candidates = self._without_overlaps(candidates, held_out, "train")
        if config.split is None:
            train, rest = self._cap_each(candidates, config.cap, config.cap_per_class)
        else:
            train, rest = self._cap_each(candidates, config.cap)
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
        unlabelled = self._without_duplicates(np.concatenate(text), "unlabelled", earlier=train)
        unlabelled = self._without_overlaps(unlabelled, held_out, "unlabelled")
        unlabelled, _ = self._cap_each(unlabelled, config.unlabelled_cap)
        return {"train": train, "unlabelled": unlabelled, **held_out}, self.dropped

    def _by_role(self) -> dict[str, Rows]:
        """Rows by part, for languages whose role allows the part.

        Train sentences of a language without labels count as unlabelled text. With a drawn split, all languages keep
        their train sentences, as the test is drawn from them.
        """
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
        is_selected = np.array([name in languages for name in self.columns.languages], dtype=bool)
        return rows[is_selected[self.columns.language[rows]]] if len(is_selected) else rows

    def _drawing_orders(self, rows: Rows) -> Iterator[tuple[str, np.ndarray]]:
        """Languages, each with positions in `rows` in the order of drawing."""
        codes = self.columns.language[rows]
        for code in np.unique(codes).tolist():
            places, language = np.flatnonzero(codes == code), self.columns.languages[code]
            yield language, places[draw_order(len(places), self.config.seed, language)]

    def _cap_each(self, rows: Rows, cap: Cap | None, per_class: Cap | None = None) -> tuple[Rows, Rows]:
        """Up to `cap` sentences per language, and `per_class` per class, then the remaining rows; in reading order."""
        is_taken = np.zeros(len(rows), dtype=bool)
        for language, order in self._drawing_orders(rows):
            drawn, class_cap = order[: for_language(cap, language)], for_language(per_class, language)
            is_taken[drawn if class_cap is None else self._first_of_each_class(rows, drawn, class_cap)] = True
        return rows[is_taken], rows[~is_taken]

    def _first_of_each_class(self, rows: Rows, drawn: np.ndarray, class_cap: int) -> np.ndarray:
        groups = self.columns.group[rows[drawn]]
        order = np.argsort(groups, kind="stable")
        firsts = np.searchsorted(groups[order], groups[order], side="left")
        return drawn[order[np.arange(len(order)) - firsts < class_cap]]

    def _split_each(self, rows: Rows, split: Split) -> tuple[Rows, dict[str, Rows]]:
        masks = np.zeros((3, len(rows)), dtype=bool)
        for _, order in self._drawing_orders(rows):
            train, dev, _ = split_sizes(len(order), split)
            for mask, drawn in zip(masks, np.split(order, [train, train + dev]), strict=True):
                mask[drawn] = True
        train, dev, test = (rows[mask] for mask in masks)
        return train, {"dev": dev, "test": test}

    def _without_duplicates(self, rows: Rows, part: str, *, earlier: Rows | None = None) -> Rows:
        """Rows without repeated texts of a language; texts in `earlier` count as read before."""
        if self.config.duplicates == "keep":
            return rows
        keys = self._text_keys(rows)
        fresh = (
            np.arange(len(rows))
            if earlier is None
            else np.flatnonzero(~np.isin(keys, self._text_keys(earlier)))
        )
        is_kept = np.zeros(len(rows), dtype=bool)
        is_kept[fresh[first_occurrences(keys[fresh])]] = True
        self.dropped.record("duplicates", part, rows[~is_kept])
        return rows[is_kept]

    def _text_keys(self, rows: Rows) -> np.ndarray:
        """Keys of text and language, int64."""
        languages = max(len(self.columns.languages), 1)
        return self.columns.sentence[rows].astype(np.int64) * languages + self.columns.language[rows]

    def _without_overlaps(self, rows: Rows, parts: dict[str, Rows], part: str) -> Rows:
        if self.config.overlaps == "keep":
            return rows
        overlap = find_overlaps(self.columns, rows, parts)
        self.dropped.record("overlaps", part, rows[overlap])
        return rows[~overlap]


def find_overlaps(columns: Columns, rows: Rows, parts: Mapping[str, Rows]) -> np.ndarray:
    """Return the rows with the text of a dev or test sentence, bool.

    Args:
        columns: Numbers of the sentences in the pool.
        rows: Rows to check.
        parts: Rows of dev and test.
    """
    held_out = np.concatenate([parts[part] for part in HELD_OUT])
    return np.isin(columns.sentence[rows], columns.sentence[held_out])
