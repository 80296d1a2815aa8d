"""Figures of a corpus, printed by `raykd corpus show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.corpus import Corpus, corpus_id
from raykd.corpora.label_counts import label_counts
from raykd.corpora.sentence import SEPARATOR
from raykd.forms import TREE
from raykd.forms.form_types import LabelledSentence
from raykd.forms.tree.codes import ENCODINGS, Encoding, encode_part
from raykd.forms.tree.drawing import is_projective
from raykd.identity import PlainObject
from raykd.metrics.bioes import OUTSIDE


def describe_corpus(corpus: Corpus) -> PlainObject:
    """Return figures of a corpus as JSON-able values.

    `parts` has one entry per part and language with sentences: sentences, tokens, mean and largest length in tokens,
    and the number of each label (spans by type, words by tag, or sentences by class). `tags` are in the order of their
    numbers. `pairs` is true if sentences are pairs of texts. For a treebank, `trees` has the source of parts of speech
    and the accuracy of predicted ones, and for each encoding of heads the number of labels in train and the share of
    dev's words with other labels; `parts` then counts projective trees too.

    Args:
        corpus: The corpus.
    """
    return {
        "corpus_id": corpus_id(corpus),
        "languages": list(corpus.languages),
        "roles": {language: corpus.report.role(language) for language in corpus.languages},
        "unit": corpus.unit,
        "pairs": any(SEPARATOR in tokens for tokens in corpus.parts["train"]["tokens"][:1].to_pylist()),
        "scheme": corpus.tag_set.form.scheme,
        "tags": list(corpus.tag_set.tags),
        "labels": list(corpus.labels),
        "parts": [row for part, table in corpus.parts.items() for row in _part_rows(corpus, part, table)],
        "schemes": dict(corpus.report.schemes),
        "tags_in_words": corpus.report.describe_tags(),
        "skipped": {part: dict(counts) for part, counts in corpus.report.skipped.items()},
        "examples": corpus.report.examples,
        "warnings": corpus.report.warnings(),
        **({"trees": _trees(corpus)} if corpus.pos else {}),
    }


def _trees(corpus: Corpus) -> dict[str, Any]:
    encodings = {}
    for encoding in ENCODINGS:
        train_labels = {label for labels in _encode_part(corpus, "train", encoding) for label in labels}
        dev = [label in train_labels for labels in _encode_part(corpus, "dev", encoding) for label in labels]
        encodings[encoding] = {"labels": len(train_labels), "not_in_train": 1 - sum(dev) / max(len(dev), 1)}
    return {"pos": corpus.report.pos_messages(), "encodings": encodings}


def _encode_part(corpus: Corpus, part: str, encoding: Encoding) -> Iterator[list[str]]:
    return encode_part(corpus.parts[part], pos=corpus.pos, relations=corpus.tag_set.tags, encoding=encoding)


def _part_rows(corpus: Corpus, part: str, table: pa.Table) -> list[dict[str, Any]]:
    labels = label_counts(table, corpus.tag_set)
    projective = _projective(table) if corpus.pos and part != "unlabelled" else None
    rows = []
    for language in corpus.languages:
        lengths = _lengths(table, language)
        if len(lengths):
            rows.append(
                {
                    "part": part,
                    "language": language,
                    "sentences": len(lengths),
                    "tokens": int(lengths.sum()),
                    "mean_length": float(lengths.mean()),
                    "longest": int(lengths.max()),
                    "labels": labels[language],
                    **({"projective": projective[language]} if projective is not None else {}),
                }
            )
    return rows


def _projective(table: pa.Table) -> Counter[str]:
    """Return language → sentences with a projective tree."""
    counts: Counter[str] = Counter()
    for batch in table.select(["language", "heads"]).to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            counts[row["language"]] += row["heads"] is not None and is_projective(row["heads"])
    return counts


def _lengths(table: pa.Table, language: str) -> np.ndarray:
    """Return the lengths of sentences of a language, in words."""
    lengths = [np.zeros(0, np.int64)]
    for batch in table.to_batches():
        of_language = pc.call_function("equal", [batch["language"], pa.scalar(language)])
        lengths.append(batch["tokens"].value_lengths().filter(of_language).to_numpy())
    return np.concatenate(lengths)


def example_sentences(corpus: Corpus, words: int = 12) -> dict[str, str]:
    """Return the beginning of a training sentence with labels, for each language.

    The form is `[Angela Merkel]PER besucht …`, `word/TAG …`, the class and the text, or a whole tree: of a treebank a
    line for each word, of intents and slots below the text. The first sentence with a label is taken; of a treebank the
    first short one.

    Args:
        corpus: The corpus.
        words: Most words of a sentence that is not a tree.
    """
    beginnings: dict[str, str] = {}
    for batch in corpus.parts["train"].to_batches(max_chunksize=1000):
        for language in sorted(set(batch["language"].to_pylist()) - set(beginnings)):
            rows = batch.filter(
                pc.call_function("equal", [batch["language"], pa.scalar(language)])
            ).to_pylist()
            candidates = [(row, corpus.tag_set.decode(row["tags"])) for row in rows]
            if corpus.pos:
                # A short one fits the screen, and shows its structure.
                candidates.sort(key=lambda candidate: not 4 <= len(candidate[0]["tokens"]) <= words)
            row, tags = next((pair for pair in candidates if set(pair[1]) - {OUTSIDE}), candidates[0])
            form = TREE if corpus.pos else corpus.tag_set.form
            sentence = LabelledSentence(row["tokens"], tags, corpus.unit, row.get("heads"))
            beginnings[language] = form.format_sentence(sentence, words=words)
        if len(beginnings) == len(corpus.sources):
            break
    return beginnings
