import numpy as np
import pytest
import torch

from raykd.errors import SignalError, StoreError
from raykd.precompute.plan import PrecomputePlan
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.structures import Chain, kbest
from raykd.transfer import TeacherRows, Text, TransferSet
from tests.transfer.samples import FakeTeacher, School, Source, compute, sentences

EVERYTHING = (Need("emissions"), Need("transitions"), Need("kbest", 3))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two teachers with different sentences, joined over one table in which the two languages alternate."""
    folder = tmp_path_factory.mktemp("store")
    school = School(FakeTeacher("english"), FakeTeacher("deutsch!"))
    parts = {"english": sentences(23, seed=1), "deutsch!": sentences(15, seed=2)}
    compute(school.plan(folder, {name: Text.from_tokens(part) for name, part in parts.items()}, k=4))
    rows = {"english": np.arange(38)[np.arange(38) % 5 != 3][:23]}
    rows["deutsch!"] = np.setdiff1d(np.arange(38), rows["english"])
    table: list = [None] * 38
    for name, part in parts.items():
        for row, sentence in zip(rows[name], part, strict=True):
            table[row] = (school.teachers[name], sentence)
    covered = [
        TeacherRows(Source.of(name, Text.from_tokens(part)), rows[name]) for name, part in parts.items()
    ]
    return folder, covered, table


def teacher_chain(teacher: FakeTeacher, sentence: list[str]) -> Chain:
    scores = teacher.scores(sentence)
    rounded = (scores - scores.max(1, keepdims=True)).astype(np.float16).astype(np.float32)
    square, start, end = (torch.from_numpy(part) for part in teacher.transitions)
    return Chain(torch.from_numpy(rounded)[None], torch.tensor([len(sentence)]), square, start, end)


def test_a_batch_holds_what_each_sentences_own_teacher_gave(stored):
    folder, covered, table = stored
    batch_rows = np.array([3, 37, 0, 8, 20, 1, 3])
    opened = TransferSet.open(Storage(str(folder)), covered, EVERYTHING)
    batch = opened.gather(batch_rows)
    width = max(len(table[row][1]) for row in batch_rows)
    assert batch.chain.emissions_BTY.shape == (7, width, 5)
    assert batch.paths_BKT.shape == (7, 3, width)
    assert (batch.chain.emissions_BTY.dtype, batch.paths_BKT.dtype) == (torch.float32, torch.int64)
    for place, row in enumerate(batch_rows):
        chain = teacher_chain(*table[row])
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
    folder, covered, _ = stored
    store = Storage(str(folder))
    paths = TransferSet.open(store, covered, [Need("kbest", 1)]).gather(np.array([0, 3]))
    assert paths.chain is None
    assert paths.paths_BKT.shape[1] == paths.scores_BK.shape[1] == 1
    emissions = TransferSet.open(store, covered, [Need("emissions")]).gather(np.array([0, 3]))
    assert emissions.paths_BKT is None
    assert emissions.chain.transitions is None
    marginals = TransferSet.open(store, covered, [Need("marginals")]).gather(np.array([0, 3]))
    assert marginals.chain.transitions.shape == (2, 5, 5)


def test_a_table_may_stop_before_the_text_does(stored):
    folder, covered, table = stored
    shorter = [TeacherRows(part.source, part.rows[:4]) for part in covered]
    first = covered[0].rows[:4]
    batch = TransferSet.open(Storage(str(folder)), shorter, [Need("emissions")]).gather(first)
    expected = teacher_chain(*table[first[3]]).emissions_BTY[0]
    assert torch.equal(batch.chain.emissions_BTY[3, : len(expected)], expected)


def equal(first, second) -> bool:
    """Return True if two batches are equal to the last bit."""
    parts = [(*batch.chain.parts(), batch.paths_BKT, batch.scores_BK) for batch in (first, second)]
    return all(torch.equal(a, b) for a, b in zip(*parts, strict=True))


def test_a_smaller_text_is_served_by_a_larger_one(tmp_path):
    """Signals of the union of several texts give the same batches as those of a single text."""
    school = School(FakeTeacher("en"))
    small, large = (
        Text.from_tokens(sentences(12, seed=4)),
        Text.from_tokens(sentences(30, seed=5) + sentences(5, seed=4)),
    )
    union = Text.union([small, large])
    assert len(union) == len(large) + len(small) - 5
    store, rows = Storage(str(tmp_path)), np.array([11, 0, 7, 3])
    compute(school.plan(tmp_path, {"en": small}, k=3))
    direct = TransferSet.open(store, [TeacherRows(Source.of("en", small), np.arange(12))], EVERYTHING)
    compute(school.plan(tmp_path, {"en": union}, k=3))
    source, text_rows = Source.of("en", union), union.rows(small.hashes)
    served = TransferSet.open(store, [TeacherRows(source, np.arange(12), text_rows)], EVERYTHING)
    assert equal(direct.gather(rows), served.gather(rows))
    half = TransferSet.open(store, [TeacherRows(source, np.arange(3), text_rows[:3])], EVERYTHING)
    assert equal(direct.gather(np.array([2, 1])), half.gather(np.array([2, 1])))


def test_rows_of_another_text_are_refused_beyond_its_end(stored):
    folder, covered, _ = stored
    beyond = [TeacherRows(covered[1].source, np.arange(2), np.array([0, 15]))]
    with pytest.raises(SignalError, match="covers 15 sentences, fewer than 16"):
        TransferSet.open(Storage(str(folder)), beyond, [Need("emissions")])


def test_teachers_that_store_another_number_of_paths_are_joined(tmp_path):
    """One teacher's paths were computed for a larger K, in an earlier sweep; they serve the smaller K too."""
    school = School(FakeTeacher("en"), FakeTeacher("de"))
    texts = {name: Text.from_tokens(sentences(6, seed=seed)) for seed, name in enumerate(school.teachers)}
    for k, name in ((5, "en"), (2, "de")):
        compute(school.plan(tmp_path, {name: texts[name]}, k=k))
    covered = [
        TeacherRows(Source.of(name, text), np.arange(6) * 2 + place)
        for place, (name, text) in enumerate(texts.items())
    ]
    batch = TransferSet.open(Storage(str(tmp_path)), covered, [Need("kbest", 2)]).gather(np.arange(12))
    assert batch.paths_BKT.shape[:2] == batch.scores_BK.shape == (12, 2)
    for row in range(12):
        name = ("en", "de")[row % 2]
        chain = teacher_chain(school.teachers[name], texts[name].sentences(np.array([row // 2]))[0])
        paths, scores = kbest(chain, 2)
        torch.testing.assert_close(batch.scores_BK[row], scores[0])
        exists = torch.isfinite(scores[0])
        assert torch.equal(batch.paths_BKT[row, exists, : chain.time], paths[0, exists])


def test_more_paths_than_are_stored_are_refused_with_what_is(stored):
    folder, covered, _ = stored
    with pytest.raises(StoreError, match=r"no finished K-best with K ≥ 5 \(finished: 4\).*raykd precompute"):
        TransferSet.open(Storage(str(folder)), covered, [Need("kbest", 5)])


def test_rows_that_no_teacher_or_two_teachers_cover_are_refused(stored):
    folder, covered, _ = stored
    store = Storage(str(folder))
    first_teacher = TransferSet.open(store, covered[:1], [Need("emissions")])
    with pytest.raises(SignalError, match="row 3 "):
        first_teacher.gather(np.array([0, 3]))
    twice = [covered[0], TeacherRows(covered[1].source, covered[0].rows[:3])]
    with pytest.raises(SignalError, match="two teachers"):
        TransferSet.open(store, twice, [Need("emissions")])
    with pytest.raises(SignalError, match="covers 15 sentences, fewer than 16"):
        TransferSet.open(store, [TeacherRows(covered[1].source, np.arange(16))], [Need("emissions")])


def test_teachers_with_unlike_tags_are_refused(tmp_path):
    school = School(FakeTeacher("five"), FakeTeacher("six", tags=6))
    text = Text.from_tokens(sentences(3))
    for name, tags in (("five", 5), ("six", 6)):
        compute(PrecomputePlan(str(tmp_path), (school.task(tmp_path, name, text, tags=tags),)))
    covered = [
        TeacherRows(Source.of(name, text), rows)
        for name, rows in (("five", np.array([0, 1])), ("six", np.array([2])))
    ]
    with pytest.raises(SignalError, match=r"same tags, got \[5, 6\]"):
        TransferSet.open(Storage(str(tmp_path)), covered, [Need("emissions")])
