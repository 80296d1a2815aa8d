"""Conformance of all signals: from a model's output into a shard, through the store, and back into a batch.

A new signal is tested as soon as it is in the table; one that needs a `k` or a layer is listed in `NEEDS` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raykd.corpora.encoded_text import TokenBatch
from raykd.layers.model import Output
from raykd.needs import ARCS, CHAIN
from raykd.signals import SIGNALS, Need, Sizes, TeacherBatch
from raykd.storage.rounding import encode_int8, encode_log_scores
from raykd.storage.store import Storage
from raykd.structures import Chain, WeightedPaths, kbest
from raykd.transfer import (
    Origin,
    RowRange,
    ShardEntry,
    TeacherRows,
    Text,
    TransferSet,
    decode_columns,
    encode_columns,
    find_coverage,
    origin_folder,
    write_shard,
)
from tests.transfer.samples import TAGS, FakeParser, FakeTeacher, Source, sentences

NEEDS = {
    "kbest": Need("kbest", 1), "hidden": Need("hidden", layer=1), "hidden_int8": Need("hidden_int8", layer=1)
}  # fmt: skip
# What has no place of its own in a batch is read beside this signal.
BESIDE = {"transitions": "emissions", "arcs": "relations", "relations": "arcs"}
TAKEN = [NEEDS.get(name, Need(name)) for name in SIGNALS]
DERIVED = [Need(name, 3) for name, signal in SIGNALS.items() if signal.derive is not None]
TAKEN_ONES = pytest.mark.parametrize("need", TAKEN, ids=lambda need: need.name)
EVERY = pytest.mark.parametrize("need", TAKEN + DERIVED, ids=lambda need: f"{need.name}-{need.k}")
UNITS = pytest.mark.parametrize("unit", ["word", "sentence"])
SIZES = Sizes(TAGS, {0: TAGS, 1: TAGS}, samples=3)
SENTENCES = sentences(14, seed=3)
SHARDS = (RowRange(0, 9), RowRange(9, 14))


def outputs(
    need: Need, sentences: list[list[str]], unit: str, *, padding: int = 0
) -> tuple[TokenBatch, Output]:
    """Output of a chain teacher, one label per word or per sentence, with more padding.

    For arcs it is that of a parser, for samples that of an annotator.
    """
    _, batch, output = next(FakeTeacher("t").outputs(sentences, 1, layers=tuple(SIZES.hidden)))
    chain, lengths_B = output.distribution, batch.lengths_B
    emissions_BTY = torch.nn.functional.pad(chain.emissions_BTY, (0, 0, 0, padding), value=-3.0)
    if unit == "sentence":
        emissions_BTY, lengths_B = emissions_BTY[:, :1], torch.ones_like(lengths_B)
    hidden = {
        n: torch.nn.functional.pad(states, (0, 0, 0, padding), value=9.0)
        for n, states in output.hidden.items()
    }
    chain = Chain(emissions_BTY, lengths_B, chain.transitions, chain.start, chain.end)
    if need.signal in ARCS:
        parser = FakeParser("p")
        chain = parser.labelled_arcs([parser.scores(words) for words in sentences], padding=padding).chain()
    if unit == "sentence" and need.signal != "features":
        hidden = {layer: states[:, :1] for layer, states in hidden.items()}
    if need.signal == "samples":
        paths_BKT, log_weights_BK = kbest(chain, SIZES.samples)
        return batch, Output(WeightedPaths(paths_BKT, log_weights_BK, chain.lengths_B, TAGS))
    return batch, Output(chain, hidden)


def taken(need: Need, batch: TokenBatch, output: Output, unit: str) -> list[list[np.ndarray]]:
    """Values of the columns [rows, V] by sentence, without padding."""
    signal, words, result = SIGNALS[need.signal], batch.lengths_B.tolist(), []
    for column, part in zip(signal.columns, signal.take(output, need), strict=True):
        values = part.numpy()
        if column.rows == "teacher":
            result.append([values[None]])
        else:
            result.append(
                [column.strip_padding(value, n, unit) for value, n in zip(values, words, strict=True)]
            )
    return result


def words_of(sentences: list[list[str]]) -> np.ndarray:
    """Words per sentence [N]."""
    return np.array([len(words) for words in sentences])


def values_of(need: Need, sentences: list[list[str]], unit: str) -> list[np.ndarray]:
    """The values [R, V] of each column: taken from the outputs, or derived from stored columns."""
    if need not in DERIVED:
        return [np.concatenate(part) for part in taken(need, *outputs(need, sentences, unit), unit)]
    signal = SIGNALS[need.signal]
    stored = {
        name: decode_columns(Need(name), encoded(Need(name), sentences, unit)[0]) for name in signal.sources
    }
    return list(signal.derive(stored, signal.columns[0].row_counts(words_of(sentences), unit), need, 20))


def encoded(
    need: Need, sentences: list[list[str]], unit: str, rows_N: np.ndarray | None = None
) -> tuple[pa.RecordBatch, float]:
    """Content of a shard, for sentences that are sorted by length."""
    signal = SIGNALS[need.signal]
    rows_N = np.arange(len(sentences)) if rows_N is None else rows_N
    lengths_N = signal.columns[0].row_counts(words_of(sentences), unit)
    if signal.once_per_teacher:
        rows_N, lengths_N = rows_N[:0], lengths_N[:0]
    return encode_columns(need, SIZES, rows_N, lengths_N, values_of(need, sentences, unit))


def shard_of(need: Need, unit: str, rows: RowRange) -> tuple[pa.RecordBatch, float]:
    """The content of one shard of `SENTENCES`: its rows, shortest first."""
    order = sorted(range(rows.first, rows.last), key=lambda row: len(SENTENCES[row]))
    return encoded(need, [SENTENCES[row] for row in order], unit, np.array(order))


def stored(folder, need: Need, unit: str) -> tuple[Storage, Origin, list[ShardEntry]]:
    """All of `SENTENCES` in the store, committed."""
    store, once = Storage(str(folder)), SIGNALS[need.signal].once_per_teacher
    text_id = "" if once else Text.from_tokens(SENTENCES).id
    stated = {"teacher_id": "t", "weights_sha256": "w", "text_id": text_id, "tags": TAGS}
    origin = Origin(signal=need.signal, layer=need.layer, k=need.k, **stated)
    entries = []
    for rows in [RowRange(0, 1)] if once else SHARDS:
        content, error = shard_of(need, unit, rows)
        target = origin_folder(store, origin)
        entries.append(write_shard(target, content, origin=origin, rows=rows, largest_error=error))
    words_N = words_of(SENTENCES)
    rows_N = SIGNALS[need.signal].columns[0].row_counts(words_N, unit)
    find_coverage(store, origin, SHARDS).commit(entries, words_N, rows_N)
    return store, origin, entries


@TAKEN_ONES
@UNITS
def test_what_is_stored_is_what_was_taken_within_the_stated_error(need, unit):
    content, error = shard_of(need, unit, SHARDS[0])
    values = values_of(need, sorted(SENTENCES[:9], key=len), unit)
    for column, inputs, back in zip(
        SIGNALS[need.signal].columns, values, decode_columns(need, content), strict=True
    ):
        assert back.dtype == column.dtype(SIZES)
        assert back.shape == (len(inputs), column.width(SIZES, need))
        # Log-scores are stored relative to the best of their row, 8-bit numbers relative to its scale.
        exact = inputs - inputs.max(1, keepdims=True) if column.encode is encode_log_scores else inputs
        scale = values[1] if column.encode is encode_int8 else np.float32(1)
        assert np.abs(back.astype(exact.dtype) * scale - exact).max() <= (
            0 if column.encode is None else error
        )
    assert error == 0 or any(column.encode for column in SIGNALS[need.signal].columns)
    tolerance = np.abs(values[0]).max() / 254 if need.signal == "hidden_int8" else 0.01
    assert error <= tolerance * (1 + 1e-4)


def expected_value(need: Need, unit: str, rows: list[int]) -> Any:
    """Expected content of a batch of `rows`, from one shard per sentence."""
    signal, sentence_columns = SIGNALS[need.signal], []
    for row in rows:
        sentence_columns.append(decode_columns(need, encoded(need, [SENTENCES[row]], unit)[0]))
    columns = []
    for column, parts in zip(signal.columns, zip(*sentence_columns, strict=True), strict=True):
        tensors = [torch.from_numpy(np.array(part)) for part in parts]
        columns.append(pad_sequence(tensors, batch_first=True) if column.is_list else torch.cat(tensors))
    words_B = words_of([SENTENCES[row] for row in rows])
    lengths_B = torch.from_numpy(signal.columns[0].row_counts(words_B, unit))
    return signal.read(lengths_B, *columns)


def parts_of(value) -> list[Tensor]:
    """All tensors of a batch."""
    if isinstance(value, Tensor):
        return [value]
    if is_dataclass(value):
        value = [getattr(value, item.name) for item in fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.values())
    return [part for item in value for part in parts_of(item)] if isinstance(value, (list, tuple)) else []


@EVERY
@UNITS
def test_a_batch_holds_what_was_stored_of_each_sentence(tmp_path, need, unit):
    beside = [Need(BESIDE[need.signal])] if need.signal in BESIDE else []
    stores = [stored(tmp_path, signal_need, unit)[0] for signal_need in (need, *beside)]
    source = Source.of("t", Text.from_tokens(SENTENCES), [need, *beside], offers=(*SIGNALS,))
    opened = TransferSet.open(stores[0], [TeacherRows(source, np.arange(14))], [need, *beside])
    rows = [13, 0, 4, 4, 9, 2]
    batch = opened.gather(np.array(rows))
    if SIGNALS[need.signal].once_per_teacher:
        inputs = decode_columns(need, shard_of(need, unit, SHARDS[0])[0])
        columns = [torch.from_numpy(np.repeat(part, len(rows), axis=0)) for part in inputs]
        expected = SIGNALS[need.signal].read(torch.ones(len(rows)), *columns)
        assert all(torch.equal(a, b) for a, b in zip(batch.chain.parts()[2:], expected, strict=True))
        return
    values = {signal_need: expected_value(signal_need, unit, rows) for signal_need in (need, *beside)}
    actual, expected = parts_of(batch), parts_of(TeacherBatch.from_signals(values))
    assert actual
    assert len(actual) == len(expected)
    for first, second in zip(actual, expected, strict=True):
        assert first.dtype == second.dtype
        torch.testing.assert_close(first, second)


@EVERY
@UNITS
def test_stated_bytes_are_those_of_the_file_within_arrows_bookkeeping(tmp_path, need, unit):
    signal, once = SIGNALS[need.signal], SIGNALS[need.signal].once_per_teacher
    _, _, entries = stored(tmp_path, need, unit)
    for entry in entries:
        inputs = SENTENCES[:1] if once else SENTENCES[entry.first : entry.last]
        stated = sum(
            column.bytes_per_row(SIZES, need)
            * (1 if once else int(column.row_counts(words_of(inputs), unit).sum()))
            for column in signal.columns
        )
        columns = decode_columns(need, shard_of(need, unit, RowRange(entry.first, entry.last))[0])
        assert stated == sum(values.nbytes for values in columns)
        # Row number, length and list offset of each sentence; schema, metadata and footer of the file.
        bookkeeping = 0 if once else (8 + 4 + 4) * len(inputs)
        assert 0 < entry.bytes - stated - bookkeeping < 2500


@TAKEN_ONES
@UNITS
def test_padding_and_neighbours_change_nothing(need, unit):
    inputs = SENTENCES[:5]
    together, padded = (taken(need, *outputs(need, inputs, unit, padding=n), unit) for n in (0, 2))
    alone = [taken(need, *outputs(need, [words], unit), unit) for words in inputs]
    for number, column in enumerate(SIGNALS[need.signal].columns):
        for place in range(1 if column.rows == "teacher" else len(inputs)):
            for values in (padded[number][place], alone[place][number][0]):
                torch.testing.assert_close(
                    torch.from_numpy(together[number][place]), torch.from_numpy(values)
                )


def test_only_a_chain_teacher_gives_scores():
    *_, output = next(FakeTeacher("t", chain=False).outputs(SENTENCES[:2], 1))
    for name in (*CHAIN, *ARCS):
        with pytest.raises(TypeError, match="a chain teacher gives a Chain, got Mixture"):
            SIGNALS[name].take(output, Need(name))
    for need in (Need("token_marginals"), Need("kbest", 1)):
        assert SIGNALS[need.signal].take(output, need)[0].shape[0] == 2
