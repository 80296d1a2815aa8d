"""A tiny treebank: sentences of three kinds whose trees follow from their words, as CoNLL-U files."""

from __future__ import annotations

import random
from pathlib import Path

NOUNS, VERBS, DETERMINERS, ADJECTIVES = (
    ("rain", "dog", "town"),
    ("falls", "sees"),
    ("the", "a"),
    ("old", "wet"),
)
Row = tuple[str, str, int, str]
"""Word, part of speech, head (0 the root), relation."""


def sentence(draw: random.Random) -> list[Row]:
    """A subject with or without an adjective, a verb, an object or none, punctuation or none."""
    rows: list[Row] = []

    def phrase(verb: int, relation: str) -> None:
        adjective = draw.random() < 0.4
        noun = len(rows) + 2 + adjective
        rows.append((draw.choice(DETERMINERS), "DET", noun, "det"))
        if adjective:
            rows.append((draw.choice(ADJECTIVES), "ADJ", noun, "amod"))
        rows.append((draw.choice(NOUNS), "NOUN", verb, relation))

    phrase(-1, "nsubj")
    verb = len(rows) + 1
    rows[-1] = (*rows[-1][:2], verb, "nsubj")
    rows.append((draw.choice(VERBS), "VERB", 0, "root"))
    if draw.random() < 0.6:
        phrase(verb, "obj")
    if draw.random() < 0.5:
        rows.append((".", "PUNCT", verb, "punct"))
    return rows


def conllu(sentences: list[list[Row]]) -> str:
    """In the ten columns of CoNLL-U."""
    blocks = [
        "".join(
            f"{number}\t{word}\t_\t{pos}\t_\t_\t{head}\t{relation}\t_\t_\n"
            for number, (word, pos, head, relation) in enumerate(rows, start=1)
        )
        for rows in sentences
    ]
    return "\n".join(blocks) + "\n"


def write_treebank(
    root: Path,
    languages: tuple[str, ...] = ("en",),
    *,
    train: int = 24,
    dev: int = 8,
    test: int = 8,
    seed: int = 0,
) -> Path:
    """Files `{lang}/train.conllu`, `dev`, `test` and `text` (as many sentences as in train) below `root`."""
    for number, language in enumerate(languages):
        draw, sentences = random.Random(seed + number), set()
        for part, count in (("train", train), ("dev", dev), ("test", test), ("text", train)):
            trees: list[list[Row]] = []
            while len(trees) < count:
                rows = sentence(draw)
                if (words := tuple(row[0] for row in rows)) not in sentences:
                    sentences.add(words)
                    trees.append(rows)
            path = root / language / f"{part}.conllu"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(conllu(trees))
    return root


def corpus(root: Path, languages: tuple[str, ...] = ("en",), **more: object) -> dict[str, object]:
    """The section `corpus` for the files."""
    parts = {part: f"{{lang}}/{part}.conllu" for part in ("train", "dev", "test")}
    return {"source": "conllu", "tag": "tree", "root": str(root), "languages": languages, **parts, **more}
