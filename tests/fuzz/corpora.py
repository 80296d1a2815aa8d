"""Damaged corpora in all formats: files as they are written today, with bytes, lines, tags and columns changed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from raykd.corpora import CorpusConfig, read_corpus
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import conll_text
from raykd.metrics.bioes import read_spans
from tests.fuzz.damage import ANYWHERE, Damage

CONFIG: TypeAdapter[Any] = TypeAdapter(CorpusConfig)
PARTS = ("train", "dev", "test")
SIGNS = (
    "\t", " ", "\r", "\0", "\u2028", "\ufeff", "#", "# ", "-DOCSTART-", "B-", "B-O", "I-", "O", "", "_", "-", "1-",
    "1.1",     "é", "[/bold]", "x" * 20_000, "\\", '"', "B-PER\tO", "٣", "1e400", "-1",
)  # fmt: skip


def signs(random: Random, data: bytes) -> bytes:
    """A cell, or a place inside of one, is something else."""
    text = data.decode()
    place = random.randrange(len(text))
    end = place
    while random.random() < 0.5 and end < len(text) and text[end] not in "\t\n ":
        end += 1
    return (text[:place] + random.choice(SIGNS) + text[end:]).encode()


def columns(random: Random, data: bytes) -> bytes:
    """The cells of a line are fewer, more, or in another order."""
    lines = data.decode().split("\n")
    place = random.randrange(len(lines))
    cells = lines[place].split("\t")
    random.shuffle(cells)
    lines[place] = "\t".join(random.choice((cells, cells[:-1], cells * 2, ["", *cells])))
    return "\n".join(lines).encode()


TEXT: dict[str, Damage] = {**ANYWHERE, "signs": signs, "columns": columns}


def made() -> dict[str, dict[str, bytes]]:
    """Format → part → an undamaged file."""
    corpus = read_corpus(
        BuiltinSource(source="builtin", languages=("en",), train=30, dev=10, test=10, unlabelled=0)
    )
    conll = {part: conll_text(corpus.parts[part], corpus.tag_set) for part in PARTS}
    sentences = {part: [block.split("\n") for block in conll[part].strip().split("\n\n")] for part in PARTS}
    conllu = {part: "".join(_conllu(lines) for lines in sentences[part]) for part in PARTS}
    tsv = {
        part: "".join(
            f"{' '.join(line.split('	')[0] for line in lines)}\t{len(lines) % 2}\n"
            for lines in texts_by_format
        )
        for part, texts_by_format in sentences.items()
    }
    spans = {
        part: "".join(json.dumps(_spans(lines)) + "\n" for lines in texts_by_format)
        for part, texts_by_format in sentences.items()
    }
    array = {
        part: json.dumps([_spans(lines) for lines in texts_by_format], indent=1)
        for part, texts_by_format in sentences.items()
    }
    texts_by_format = {"conll": conll, "conllu": conllu, "tsv": tsv, "spans": spans, "array": array}
    texts = {
        kind: {part: text.encode() for part, text in parts.items()} for kind, parts in texts_by_format.items()
    }
    texts["csv"] = {part: _csv(text).encode() for part, text in tsv.items()}
    texts["jsonl"] = {part: "".join(map(_json, lines)).encode() for part, lines in sentences.items()}
    texts["spaces"] = {part: text.replace("\t", " ").encode() for part, text in conll.items()}
    texts["gzip"] = {part: gzip.compress(text.encode(), mtime=0) for part, text in conll.items()}
    texts["parquet"] = {part: _parquet(lines) for part, lines in sentences.items()}
    return texts


def _csv(tsv: str) -> str:
    file = io.StringIO()
    rows = (line.split("\t") for line in tsv.splitlines())
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows((f"{text},\nit was", label) for text, label in rows)
    return file.getvalue()


def _json(lines: list[str]) -> str:
    rows = [line.split("\t") for line in lines]
    return json.dumps({"tokens": [word for word, _ in rows], "ner_tags": [tag for _, tag in rows]}) + "\n"


def _conllu(lines: list[str]) -> str:
    rows = [
        f"{i}\t{line.split(chr(9))[0]}\t_\tNOUN\t_\t_\t0\troot\t_\t_" for i, line in enumerate(lines, start=1)
    ]
    return "# text = x\n1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n" + "\n".join(rows) + "\n\n"


def _spans(lines: list[str]) -> dict[str, Any]:
    """A text with names as spans of characters."""
    words, tags = zip(*(line.split("\t") for line in lines), strict=True)
    ends = list(accumulate(len(word) + 1 for word in words))
    spans = [
        [ends[first] - len(words[first]) - 1, ends[behind - 1] - 1, kind]
        for first, behind, kind in read_spans(tags)
    ]
    return {"text": " ".join(words), "label": spans}


def _parquet(sentences: list[list[str]]) -> bytes:
    rows = [[line.split("\t") for line in lines] for lines in sentences]
    names = sorted({row[1] for lines in rows for row in lines})
    feature = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}
    about = {b"huggingface": json.dumps({"info": {"features": {"ner_tags": feature}}}).encode()}
    table = pa.table(
        {
            "tokens": [[row[0] for row in lines] for lines in rows],
            "ner_tags": [[names.index(row[1]) for row in lines] for lines in rows],
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(about), sink)
    return sink.getvalue().to_pybytes()


ENDINGS = {"parquet": "parquet", "gzip": "gz"}


def cases(seed: int) -> Iterator[tuple[str, Callable[[], None], bool]]:
    """Damaged corpora without end; every twentieth is undamaged, and must be read."""
    random, texts = Random(seed), made()
    folder = Path(tempfile.mkdtemp(prefix="raykd-fuzz-"))
    number = 0
    while True:
        number += 1
        kind = random.choice(tuple(texts))
        binary = kind in ENDINGS
        name, damage = random.choice(tuple((ANYWHERE if binary else TEXT).items()))
        part, whole = random.choice(PARTS), number % 20 == 0
        for source_name, data in texts[kind].items():
            changed = damage(random, data) if source_name == part and not whole else data
            (folder / f"{source_name}.{ENDINGS.get(kind, 'txt')}").write_bytes(changed)
        yield f"{kind}: {'undamaged' if whole else name}", partial(_read, folder, kind), whole


def _read(folder: Path, kind: str) -> None:
    source = {"spaces": "conll", "gzip": "conll", "csv": "tsv", "array": "spans"}.get(kind, kind)
    plain: dict[str, Any] = {part: f"{part}.{ENDINGS.get(kind, 'txt')}" for part in PARTS}
    plain |= {"source": source, "root": str(folder), "languages": ["en"]}
    plain |= {"separator": "comma"} if kind == "csv" else {}
    read_corpus(CONFIG.validate_json(json.dumps(plain)))
