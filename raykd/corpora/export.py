"""A corpus part as CoNLL columns that any reader opens: word, tab, tag in IOB2 (flat tags as they are)."""

from __future__ import annotations

import pyarrow as pa

from raykd.corpora.tags import TagSet, from_bioes


def conll_text(table: pa.Table, tag_set: TagSet) -> str:
    """The sentences of `table`, each followed by an empty line; unlabelled sentences have words only."""
    blocks = []
    for tokens, numbers in zip(table["tokens"].to_pylist(), table["tags"].to_pylist(), strict=True):
        if numbers is None:
            blocks.append("".join(f"{token}\n" for token in tokens))
            continue
        tags = [tag_set.tags[number] for number in numbers]
        written = from_bioes(tags, "iob2") if tag_set.scheme == "bioes" else tags
        blocks.append("".join(f"{token}\t{tag}\n" for token, tag in zip(tokens, written, strict=True)))
    return "".join(f"{block}\n" for block in blocks)
