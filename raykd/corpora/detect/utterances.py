"""Files of utterances with their intents and slots, by their first lines (`corpora/utterances.py` reads them)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from raykd.corpora.column_files import cut_at_tabs
from raykd.corpora.detect.columns import ALMOST
from raykd.corpora.detect.seen import Seen, Unclear
from raykd.forms.tag_schemes import has_span_form
from raykd.metrics.bioes import OUTSIDE

ATIS = re.compile(r"BOS .* EOS\t *\S+( \S+)+ *")
MULTIATIS = {"utterance", "slot_labels", "intent"}


def look_at_utterances(name: str, lines: Sequence[str]) -> Seen | Unclear | None:
    """The file, where it is one of intents and slots."""
    filled = [line for line in lines if line.strip()]
    if sum("\t[IN:" in line for line in filled) >= ALMOST * len(filled):
        return Unclear(name, "trees of intents and slots: docs/SEMANTIC_PARSING.md says how they are read")
    first = {cell.strip() for cell in filled[0].split("\t")}
    if first >= MULTIATIS:
        return Seen(
            name=name, format="multiatis", why="columns utterance, slot_labels and intent: MultiATIS++"
        )
    if sum(bool(ATIS.fullmatch(line)) for line in filled) >= ALMOST * len(filled):
        return Seen(
            name=name, format="atis", why="utterances between BOS and EOS with slots and an intent: ATIS"
        )
    blocks = list(_blocks(lines))
    if blocks and sum(map(_is_xsid, blocks)) >= ALMOST * len(blocks):
        return Seen(
            name=name, format="xsid", why="one word per line with its utterance's intent and its slot: xSID"
        )
    return None


def _blocks(lines: Sequence[str]) -> Iterator[list[list[str]]]:
    """The words of each utterance, cut at tabs, without comments."""
    for filled, block in groupby(lines, lambda line: bool(line.strip())):
        if filled and (rows := [cut_at_tabs(line) for line in block if not line.startswith("#")]):
            yield rows


def _is_xsid(rows: list[list[str]]) -> bool:
    """Whether words are numbered from 1, have one intent, which is no tag of a span, and slots."""
    if any(len(row) < 4 for row in rows):
        return False
    numbers, intents, slots = ([row[place] for row in rows] for place in (0, 2, 3))
    return (
        numbers == [str(place) for place in range(1, len(rows) + 1)]
        and len(set(intents)) == 1
        and intents[0] not in ("_", OUTSIDE)
        and all(slot == OUTSIDE or has_span_form(slot, "BI") for slot in slots)
    )
