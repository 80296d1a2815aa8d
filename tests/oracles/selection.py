"""Selection on lists of sentences: short, and as large as the corpus. `raykd.corpora.selection` must give the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from raykd.corpora.selection import HELD_OUT, Dropped, draw_order, split_sizes
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import Cap, Role, SourceConfig, Split, for_language

Parts = dict[str, list[Sentence]]


def text_of(sentence: Sentence) -> str:
    """The words of a sentence: sentences with equal words are the same."""
    return "\0".join(sentence.tokens)


def select(parts: Parts, config: SourceConfig) -> tuple[Parts, Dropped]:
    """The sentences selected by `config`, by part, in the order in which they were read.

    A training sentence whose text also occurs in dev or test, of any language, is dropped before the caps are
    filled; so is one whose text its own language already has. Dev and test stay as they are.

    Of a language without labels every training sentence that is not drawn for its test is unlabelled text; of
    a zero-shot language only the test is kept. Neither has a dev.
    """
    dropped, parts = Dropped(), _by_role(parts, config)
    labelled, text_only = _with_role(config, "labelled"), _with_role(config, "unlabelled")
    held_out = {part: _capped(parts[part], part, config) for part in HELD_OUT}
    pool = _distinct(parts["train"], "train", config, dropped)
    pool = _without(pool, _texts(held_out), "train", config, dropped)
    if config.split is None:
        train, rest = _cap_each(pool, config.cap, config, per_class=config.cap_per_class)
    else:
        train, rest = _cap_each(pool, config.cap, config)
        train, held_out = _split_each(train, config.split, config)
        train, beyond = _cap_each(train, None, config, per_class=config.cap_per_class)
        # Nothing is selected on a target: its share of dev is text like the rest.
        rest = [*rest, *beyond, *_of(held_out["dev"], text_only)]
        held_out["dev"] = _of(held_out["dev"], labelled)
    text = _of([*train, *rest], text_only) + parts["unlabelled"]
    # A split is drawn per language: a text may still be in the train part of one and in the test of another.
    train = _without(_of(train, labelled), _texts(held_out), "train", config, dropped)
    text += _of(rest, {language for language in labelled if config.takes_rest(language)})
    unlabelled = [sentence._replace(tags=None) for sentence in text]
    unlabelled = _distinct(unlabelled, "unlabelled", config, dropped, seen=train)
    unlabelled = _without(unlabelled, _texts(held_out), "unlabelled", config, dropped)
    unlabelled, _ = _cap_each(unlabelled, config.unlabelled_cap, config)
    return {"train": train, "unlabelled": unlabelled, **held_out}, dropped


def _by_role(parts: Parts, config: SourceConfig) -> Parts:
    """Sentences of the languages by role. If a split is drawn, it is drawn from targets' train too."""
    labelled, text_only = _with_role(config, "labelled"), _with_role(config, "unlabelled")
    train, text = parts.get("train", []), _of(parts.get("unlabelled", []), labelled | text_only)
    if config.split is None:
        train, text = _of(train, labelled), text + _of(train, text_only)
    return {
        "train": train,
        "unlabelled": text,
        "dev": _of(parts.get("dev", []), labelled),
        "test": parts.get("test", []),
    }


def _capped(sentences: Sequence[Sentence], part: str, config: SourceConfig) -> list[Sentence]:
    cap = {"dev": config.dev_cap, "test": config.test_cap}[part]
    return _cap_each(sentences, cap, config)[0]


def _cap_each(
    sentences: Sequence[Sentence], cap: Cap | None, config: SourceConfig, *, per_class: Cap | None = None
) -> tuple[list[Sentence], list[Sentence]]:
    """Select up to `cap` sentences per language and `per_class` per class of it; return the selected and the rest.

    Both lists are in reading order.
    """
    selected = np.zeros(len(sentences), dtype=bool)
    for language, places in _places(sentences).items():
        order = places[draw_order(len(places), config.seed, language)]
        drawn, class_limit = order[: for_language(cap, language)], for_language(per_class, language)
        selected[drawn if class_limit is None else _first_of_each_class(sentences, drawn, class_limit)] = True
    return _at(sentences, selected), _at(sentences, ~selected)


def _first_of_each_class(sentences: Sequence[Sentence], order: np.ndarray, limit: int) -> list[int]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for place in order.tolist():
        groups.setdefault(tuple(sentences[place].tags or ()), []).append(place)
    return [place for group in groups.values() for place in group[:limit]]


def _split_each(
    sentences: Sequence[Sentence], split: Split, config: SourceConfig
) -> tuple[list[Sentence], dict[str, list[Sentence]]]:
    masks = np.zeros((3, len(sentences)), dtype=bool)
    for language, places in _places(sentences).items():
        order = places[draw_order(len(places), config.seed, language)]
        train, dev, _ = split_sizes(len(order), split)
        for mask, drawn in zip(masks, np.split(order, [train, train + dev]), strict=True):
            mask[drawn] = True
    train, dev, test = (_at(sentences, mask) for mask in masks)
    return train, {"dev": dev, "test": test}


def _distinct(
    sentences: Iterable[Sentence],
    part: str,
    config: SourceConfig,
    dropped: Dropped,
    *,
    seen: Iterable[Sentence] = (),
) -> list[Sentence]:
    if config.duplicates == "keep":
        return list(sentences)
    texts = {(sentence.language, text_of(sentence)) for sentence in seen}
    distinct = []
    for sentence in sentences:
        text = (sentence.language, text_of(sentence))
        if text in texts:
            dropped.duplicates[part] += 1
        else:
            texts.add(text)
            distinct.append(sentence)
    return distinct


def _without(
    sentences: list[Sentence], texts: set[str], part: str, config: SourceConfig, dropped: Dropped
) -> list[Sentence]:
    if config.overlaps == "keep":
        return sentences
    remaining = [sentence for sentence in sentences if text_of(sentence) not in texts]
    dropped.overlaps[part] += len(sentences) - len(remaining)
    return remaining


def _texts(parts: Parts) -> set[str]:
    return {text_of(sentence) for sentences in parts.values() for sentence in sentences}


def _with_role(config: SourceConfig, role: Role) -> set[str]:
    return {language for language in config.languages if config.role(language) == role}


def _of(sentences: Iterable[Sentence], languages: set[str]) -> list[Sentence]:
    return [sentence for sentence in sentences if sentence.language in languages]


def _places(sentences: Iterable[Sentence]) -> dict[str, np.ndarray]:
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        places.setdefault(sentence.language, []).append(place)
    return {language: np.array(result) for language, result in places.items()}


def _at(sentences: Sequence[Sentence], mask: np.ndarray) -> list[Sentence]:
    return [sentences[place] for place in np.flatnonzero(mask).tolist()]
