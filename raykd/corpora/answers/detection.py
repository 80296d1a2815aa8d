"""Files of answers beside a corpus, found by the names of their keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from raykd.corpora.answers.answer_records import Form
from raykd.corpora.record_spans import LABELS
from raykd.forms.tag_schemes import has_span_form
from raykd.metrics.bioes import OUTSIDE

ENDINGS = (".jsonl", ".json")
KEYS: Mapping[str, Form] = MappingProxyType(
    {"samples": "samples", "probabilities": "probabilities", "mentions": "mentions"}
)
"""Keys that only answers have; `spans` and `labels` may be gold."""
MOST_RECORDS = 5000
"""Records of a file that are read for their labels."""


@dataclass(frozen=True)
class AnswerFiles:
    """Files of answers in a folder, all of one form.

    Attributes:
        names: Paths of the files.
        form: Form of the answers.
        labels: Labels in them, the commonest first; `O` is none.
    """

    names: tuple[str, ...]
    form: Form
    labels: tuple[str, ...]


def find_answer_files(folder: str) -> AnswerFiles | None:
    """Return the files of answers in a local folder and below it; None without any.

    Args:
        folder: The folder.
    """
    by_form: dict[Form, list[str]] = {}
    labels = Counter[str]()
    for path in sorted(Path(folder).rglob("*")) if Path(folder).is_dir() else ():
        records = list(_records(path)) if path.suffix in ENDINGS else []
        forms: list[Form] = [form for key, form in KEYS.items() if any(key in record for record in records)]
        if forms:
            by_form.setdefault(forms[0], []).append(str(path))
            labels.update(label for record in records for key in KEYS for label in _labels(record.get(key)))
    if not by_form:
        return None
    commonest, names = max(by_form.items(), key=lambda item: len(item[1]))
    ordered = tuple(label for label, _ in labels.most_common() if label != OUTSIDE)
    return AnswerFiles(tuple(names), commonest, ordered)


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in islice(file, MOST_RECORDS):
            try:
                record = json.loads(line)
            except ValueError:
                return  # no JSON Lines: raykd reads other files of answers too, but does not look for them
            if isinstance(record, Mapping):
                yield record


def _labels(value: Any) -> Iterator[str]:
    """Yield the labels in mentions, samples or probabilities, in any of their forms."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item):
                yield item[1]
            else:
                yield from _labels(item)
    elif isinstance(value, Mapping):
        if (
            label := next((value[key] for key in LABELS if isinstance(value.get(key), str)), None)
        ) is not None:
            yield label
        elif value and all(isinstance(number, int | float) for number in value.values()):
            yield from (key[2:] if has_span_form(key) else key for key in value)
        else:
            for key, item in value.items():
                if isinstance(item, list) and item and all(isinstance(name, str) for name in item):
                    yield key
                else:
                    yield from _labels(item)
