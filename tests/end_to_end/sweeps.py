"""Sweep files of seconds, and the corpora they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from ruamel.yaml import YAML

from raykd.corpora import PARTS, read_corpus
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import conll_text

SIZES = {"train": 24, "dev": 10, "test": 10, "unlabelled": 8}
TREE: dict[str, Any] = {
    "name": "tiny",
    "corpus": {"source": "builtin", "languages": ["en", "de"], **SIZES},
    "teachers": {
        "kind": "bilstm_crf", "scope": "language", "embedding_dim": 12, "hidden_dim": 12, "character_dim": 6,
        "character_hidden": 6, "epochs": 2, "training": {"batch_tokens": 200, "learning_rate": 0.02},
    },
    "student": {
        "kind": "bilstm", "embedding_dim": 12, "hidden_dim": 12, "vocabulary": {"kind": "wordpiece", "size": 300}
    },
    "objective": {"kind": "structural"},
    "schedule": {"epochs": 6, "anneal_horizon": 8},
    "training": {"batch_tokens": 200, "learning_rate": 0.02, "dropout": 0.2},
    # So small a teacher may learn nothing.
    "teachers_must_learn": False,
    "store": "store",
    # Every process of Ray imports torch first, which takes longer than what it then computes.
    "resources": {"concurrency": 1, "precompute_workers": 1},
}  # fmt: skip


def sweep_file(folder: Path, **sections: Any) -> Path:
    """The tiny sweep with some sections replaced, as a file."""
    path = folder / "tiny.yaml"
    with path.open("w") as file:
        YAML(typ="safe", pure=True).dump({**TREE, **sections}, file)
    return path


def conll_corpus(folder: Path) -> dict[str, Any]:
    """The built-in corpus as CoNLL files, with sentences of one word in train; gives the section that reads it."""
    corpus = read_corpus(BuiltinSource(source="builtin", languages=("en", "de"), **SIZES))
    for language in corpus.languages:
        (folder / language).mkdir(parents=True)
        for part in PARTS:
            table = corpus.parts[part].filter(pc.field("language") == language)
            text = conll_text(table, corpus.tag_set)
            # One word has as many labellings as there are tags: fewer than the K best that are asked for.
            (folder / language / f"{part}.conll").write_text(text + "\nBern\tB-LOC\n" * (part == "train"))
    return {
        "source": "conll", "root": str(folder), "languages": list(corpus.languages),
        **{part: f"{{lang}}/{part}.conll" for part in PARTS},
    }  # fmt: skip
