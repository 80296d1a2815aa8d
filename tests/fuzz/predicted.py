"""Damaged files to be labelled, in every form that `raykd predict` reads, with a model that says O of every word."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from raykd.deploy.label_files import Request, read_file_lines, recognise_form
from raykd.serving.labeller import Labelled
from tests.fuzz.corpora import ENDINGS, PARTS, TEXT, made
from tests.fuzz.damage import ANYWHERE


class Outside:
    """An exported model of names without any name found."""

    pairs = utterances = needs_pos = False
    has_spans = True
    trees = tagger = None
    unit = "word"

    def label(self, sentences: Iterable[Sequence[str]], *, batch: int) -> list[list[str]]:
        return [["O"] * len(words) for words in sentences]

    def __call__(self, texts: Iterable[str], *, batch: int) -> Iterator[Labelled]:
        return (Labelled(text) for text in texts)


def cases(seed: int) -> Iterator[tuple[str, Callable[[], None], bool]]:
    """Damaged files without end; every twentieth is undamaged, and must be labelled."""
    random, files = Random(seed), made()
    del files["parquet"], files["array"]  # which are not labelled
    folder = Path(tempfile.mkdtemp(prefix="raykd-fuzz-"))
    number = 0
    while True:
        number += 1
        kind = random.choice(tuple(files))
        name, damage = random.choice(tuple((ANYWHERE if kind in ENDINGS else TEXT).items()))
        data, whole = files[kind][random.choice(PARTS)], number % 20 == 0
        ending = {"gzip": "conll.gz", "spaces": "txt"}.get(kind, kind)
        file = folder / f"in.{ending}"
        file.write_bytes(data if whole else damage(random, data))
        yield f"{kind}: {'undamaged' if whole else name}", partial(_label, str(file)), whole


def _label(file: str) -> None:
    labeller: Any = Outside()
    form, settings = recognise_form(file, labeller, "auto")
    lines = read_file_lines(file, keep_marks=form.keep_marks)
    for line in form.label(Request(labeller=labeller, lines=lines, name=file, settings=settings)):
        line.encode()
