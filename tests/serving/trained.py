"""Small students, trained in seconds, for all kinds of tasks, with exports; and an app behind a real port."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import uvicorn

from raykd.deploy.export import export_run
from raykd.forms.tree.codes import Encoding
from raykd.recipes.recipe import Recipe
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.training.small import TREE, executed, student_of

LEARNS = {"batch_tokens": 60, "learning_rate": 2e-2, "dropout": 0.0}
WORDS = {"DET": ("the", "a"), "NOUN": ("dog", "cat", "house"), "VERB": ("sees", "likes"), "PUNCT": (".",)}
PLAN = ("DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT")


TREES = {
    "DET": ("the", "a"), "ADJ": ("old", "red", "small"), "NOUN": ("dog", "cat", "house"), "VERB": ("sees", "likes"),
    "ADV": ("often", "never"), "PUNCT": (".", "!"),
}  # fmt: skip
SHAPES = (
    ("DET", "NOUN", "VERB", "DET", "ADJ", "NOUN", "PUNCT"), ("ADV", "DET", "ADJ", "ADJ", "NOUN", "VERB", "PUNCT"),
    ("DET", "NOUN", "ADV", "VERB", "NOUN"), ("VERB", "PUNCT"), ("NOUN", "VERB", "DET", "ADJ", "NOUN", "ADV"),
)  # fmt: skip
RELATIONS = {"DET": "det", "ADJ": "amod", "ADV": "advmod", "PUNCT": "punct", "VERB": "root"}


def exported(folder: Path, **changes: Any) -> tuple[str, Path]:
    """(the folder of a student's run on gold labels, of its export), both below `folder`."""
    gold = {"objective": {"kind": "gold"}, "schedule": {"epochs": 8}, "training": LEARNS}
    config = Recipe.model_validate({**TREE, **gold, **changes})
    ready = prepare(config, Storage(str(folder / "store")))
    run = student_of(ready, config)
    executed(ready, run)
    export_run(ready.storage.child(*run.folder), Storage(str(folder / "student")), store=ready.storage)
    return ready.storage.child(*run.folder).uri, folder / "student"


def of_words(folder: Path) -> Path:
    """The export of a student for parts of speech."""
    sentences = [
        [(str(number), "NUM")]
        + [(WORDS[tag][(number + place) % len(WORDS[tag])], tag) for place, tag in enumerate(PLAN)]
        for number in range(60)
    ]
    blocks = ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences]
    return _of_parts(folder, "\n".join(blocks).split("\n\n"), "\n\n", task="pos", source="conll")


def of_texts(folder: Path) -> Path:
    """The export of a student with labels good and bad for texts."""
    words = {"good": ("fine", "nice", "great"), "bad": ("dull", "poor", "weak")}
    lines = [
        f"a {kind[number % 3]} film number {number}\t{name}"
        for number in range(30)
        for name, kind in words.items()
    ]
    return _of_parts(folder, lines, "\n", task="classification", source="tsv")


def tree(number: int) -> list[tuple[str, str, int, str]]:
    """(word, part of speech, head, relation) of each word of a sentence that a small grammar makes."""
    shape = SHAPES[number % len(SHAPES)]
    verb = shape.index("VERB") + 1
    result = []
    for place, pos in enumerate(shape):
        noun = next((h for h in range(place + 1, len(shape)) if shape[h] == "NOUN"), 0) + 1
        head = {"DET": noun, "ADJ": noun, "VERB": 0}.get(pos, verb)
        relation = RELATIONS.get(pos) or ("nsubj" if place + 1 < verb else "obj")
        result.append((TREES[pos][(number // 3 + 2 * place) % len(TREES[pos])], pos, head, relation))
    return result


def conllu(sentences: Sequence[Sequence[tuple[str, str, int, str]]]) -> str:
    """Sentences as CoNLL-U."""
    line = "{}\t{}\t_\t{}\t_\t_\t{}\t{}\t_\t_\n"
    blocks = [
        "".join(line.format(number, *word) for number, word in enumerate(sentence, 1))
        for sentence in sentences
    ]
    return "\n".join(blocks) + "\n"


def treebank(folder: Path) -> dict[str, Any]:
    """A treebank of sentences of the small grammar, written into `folder`: the section `corpus`."""
    folder.mkdir(parents=True)
    parts = {"train": range(60), "dev": range(60, 75), "test": range(75, 100)}
    for name, numbers in parts.items():
        (folder / name).write_text(conllu([tree(number) for number in numbers]))
    return {
        "source": "conllu", "tag": "tree", "root": str(folder), "languages": ("en",), "overlaps": "keep",
        **{name: name for name in parts},
    }  # fmt: skip


def of_trees(folder: Path, *, encoding: Encoding = "relative_pos") -> tuple[str, Path]:
    """(the folder of a run of a student that parses, of its export), both below `folder`."""
    student = {
        "kind": "bilstm",
        "embedding_dim": 8,
        "hidden_dim": 8,
        "decoder": "maxent",
        "encoding": encoding,
    }
    teachers = {"kind": "biaffine_parser"}  # not trained: the student learns from labels
    corpus = treebank(folder / "treebank")
    return exported(folder, task="parsing", corpus=corpus, student=student, teachers=teachers)


def of_tags(folder: Path) -> Path:
    """The export of a student for the parts of speech of the same treebank."""
    student = {"kind": "bilstm", "embedding_dim": 8, "hidden_dim": 8, "decoder": "maxent"}
    return exported(folder, task="pos", corpus={**treebank(folder / "data"), "tag": "upos"}, student=student)[
        1
    ]


def _of_parts(folder: Path, pieces: list[str], between: str, *, task: str, source: str) -> Path:
    data = folder / "data"
    data.mkdir()
    parts = {"train": pieces[:40], "dev": pieces[40:50], "test": pieces[50:]}
    for name, part in parts.items():
        (data / name).write_text(between.join(part) + "\n")
    corpus = {
        "source": source, "root": str(data), "languages": ("en",), "scheme": "flat",
        **{name: name for name in parts},
    }  # fmt: skip
    student = {"kind": "bilstm", "embedding_dim": 8, "hidden_dim": 6, "decoder": "maxent"}
    return exported(folder, task=task, corpus=corpus, student=student)[1]


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve `app` in a thread and yield the address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        (listener,) = server.servers
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def get(url: str) -> str:
    """The answer to a GET request."""
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def post(url: str, body: Any) -> tuple[int, Any]:
    """(status, answer) of a POST of JSON, or of bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())
