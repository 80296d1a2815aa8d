from dataclasses import dataclass

import numpy as np
import pytest
import torch

from raykd.errors import SignalError, StoreError
from raykd.runs.precompute import PrecomputePlan, PrecomputeTask
from raykd.signals import Need
from raykd.storage import Storage
from raykd.structures import Chain, kbest
from raykd.transfer import Text, TransferSet, signal_ids
from tests.transfer.samples import FakeTeacher, School, compute, sentences

EVERYTHING = (Need("emissions"), Need("transitions"), Need("kbest", 3))


@dataclass(frozen=True)
class Source:
    signals: dict[str, str]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two teachers, each of its own sentences, joined over one table in which the two languages alternate."""
    folder = tmp_path_factory.mktemp("store")
    school = School(FakeTeacher("english"), FakeTeacher("deutsch!"))
    parts = {"english": sentences(23, seed=1), "deutsch!": sentences(15, seed=2)}
    compute(school.plan(folder, {name: Text.of(part) for name, part in parts.items()}, k=4))
    rows = {"english": np.arange(38)[np.arange(38) % 5 != 3][:23]}
    rows["deutsch!"] = np.setdiff1d(np.arange(38), rows["english"])
    table: list = [None] * 38
    for name, part in parts.items():
        for row, sentence in zip(rows[name], part, strict=True):
            table[row] = (school.teachers[name], sentence)
    sources = [(Source(signal_ids(name, Text.of(part).id)), rows[name]) for name, part in parts.items()]
    return folder, sources, table


def said(teacher: FakeTeacher, sentence: list[str]) -> Chain:
    scores = teacher.scores(sentence)
    rounded = (scores - scores.max(1, keepdims=True)).astype(np.float16).astype(np.float32)
    square, start, end = (torch.from_numpy(part) for part in teacher.transitions)
    return Chain(torch.from_numpy(rounded)[None], torch.tensor([len(sentence)]), square, start, end)


@pytest.mark.parametrize("verify", [True, False])
def test_a_batch_holds_what_each_sentences_own_teacher_said(stored, verify):
    folder, sources, table = stored
    batch_rows = np.array([3, 37, 0, 8, 20, 1, 3])
    opened = TransferSet.open(Storage(str(folder)), sources, EVERYTHING, verify=verify)
    batch = opened.gather(batch_rows)
    width = max(len(table[row][1]) for row in batch_rows)
    assert batch.chain.emissions_BTY.shape == (7, width, 5)
    assert batch.paths_BKT.shape == (7, 3, width)
    assert (batch.chain.emissions_BTY.dtype, batch.paths_BKT.dtype) == (torch.float32, torch.int64)
    for place, row in enumerate(batch_rows):
        chain = said(*table[row])
        length = chain.time
        assert batch.chain.lengths_B[place] == length
        torch.testing.assert_close(
            batch.chain.emissions_BTY[place, :length], chain.emissions_BTY[0], rtol=0, atol=0
        )
        assert not batch.chain.emissions_BTY[place, length:].any()
        for name in ("transitions", "start", "end"):
            torch.testing.assert_close(
                getattr(batch.chain, name)[place], getattr(chain, name), rtol=0, atol=0
            )
        paths, scores = kbest(chain, 3)
        exists = torch.isfinite(scores[0])
        torch.testing.assert_close(batch.scores_BK[place], scores[0])
        assert torch.equal(batch.paths_BKT[place, exists, :length], paths[0, exists])
        assert not batch.paths_BKT[place, :, length:].any()


def test_only_what_is_needed_is_read(stored):
    folder, sources, _ = stored
    store = Storage(str(folder))
    paths = TransferSet.open(store, sources, [Need("kbest", 1)]).gather(np.array([0, 3]))
    assert paths.chain is None
    assert paths.paths_BKT.shape[1] == paths.scores_BK.shape[1] == 1
    emissions = TransferSet.open(store, sources, [Need("emissions")]).gather(np.array([0, 3]))
    assert emissions.paths_BKT is None
    assert emissions.chain.transitions is None
    marginals = TransferSet.open(store, sources, [Need("marginals")]).gather(np.array([0, 3]))
    assert marginals.chain.transitions.shape == (2, 5, 5)


def test_a_table_may_stop_before_the_text_does(stored):
    folder, sources, table = stored
    shorter = [(source, rows[:4]) for source, rows in sources]
    batch = TransferSet.open(Storage(str(folder)), shorter, [Need("emissions")]).gather(sources[0][1][:4])
    expected = said(*table[sources[0][1][3]]).emissions_BTY[0]
    assert torch.equal(batch.chain.emissions_BTY[3, : len(expected)], expected)


def test_more_paths_than_are_stored_are_refused_with_what_is(stored):
    folder, sources, _ = stored
    with pytest.raises(StoreError, match=r"no finished K-best with K ≥ 5 \(finished: 4\).*raykd precompute"):
        TransferSet.open(Storage(str(folder)), sources, [Need("kbest", 5)])


def test_rows_that_no_teacher_or_two_teachers_cover_are_refused(stored):
    folder, sources, _ = stored
    store = Storage(str(folder))
    only = TransferSet.open(store, sources[:1], [Need("emissions")])
    with pytest.raises(SignalError, match="row 3 "):
        only.gather(np.array([0, 3]))
    with pytest.raises(SignalError, match="two teachers"):
        TransferSet.open(store, [sources[0], (sources[1][0], sources[0][1][:3])], [Need("emissions")])
    with pytest.raises(SignalError, match="covers 15 sentences, fewer than 16"):
        TransferSet.open(store, [(sources[1][0], np.arange(16))], [Need("emissions")])


def test_teachers_with_unlike_tags_are_refused(tmp_path):
    school = School(FakeTeacher("five"), FakeTeacher("six", tags=6))
    text = Text.of(sentences(3))
    for name, tags in (("five", 5), ("six", 6)):
        task = PrecomputeTask(school.handle(tmp_path, name, tags=tags), text)
        compute(PrecomputePlan(str(tmp_path), (task,)))
    sources = [
        (Source(signal_ids(name, text.id)), rows)
        for name, rows in (("five", np.array([0, 1])), ("six", np.array([2])))
    ]
    with pytest.raises(SignalError, match=r"same tags, got \[5, 6\]"):
        TransferSet.open(Storage(str(tmp_path)), sources, [Need("emissions")])
