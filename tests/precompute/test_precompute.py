"""The precompute pipeline without Ray: what is computed, what is found again, what is refused."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.exceptions import ActorDiedError, RayError

from raykd.cluster.topology import Node, Topology
from raykd.errors import RunError, StoreError
from raykd.needs import ARCS
from raykd.precompute import pipeline as module
from raykd.precompute.pipeline import Placement, launch_on_ray
from raykd.precompute.plan import PrecomputePlan, estimate, precompute
from raykd.precompute.shard_writer import ShardWriter, TeacherHandle
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.structures import token_marginals, viterbi
from raykd.structures.labelled_arcs import FORBIDDEN
from raykd.transfer import TeacherRows, Text, TransferSet, read_manifest, signal_id
from tests.transfer.samples import (
    NON_CHAIN,
    TAGS,
    FakeParser,
    FakeTeacher,
    School,
    Source,
    compute,
    here,
    sentences,
)

ENGLISH, GERMAN = Text.from_tokens(sentences(35, seed=1)), Text.from_tokens(sentences(21, seed=2))


@pytest.fixture
def school():
    return School(FakeTeacher("en"), FakeTeacher("de"))


def files(store: Path, ending: str = ".arrow") -> dict[str, tuple[int, int]]:
    """All files, with what changes when it is written again."""
    paths = (path for path in sorted(store.rglob(f"*{ending}")) if path.name != "text.arrow")
    return {str(path.relative_to(store)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def folder_of(store: Path, name: str, text: Text, signal: str = "emissions") -> Path:
    return store / "transfer" / signal_id(Need(signal), teacher_id=name, text_id=text.id)


def opened(store: Path, *needs: Need, offers=("emissions", "transitions"), **options) -> TransferSet:
    """The English signals of the store."""
    covered = TeacherRows(Source.of("en", ENGLISH, needs, offers=offers), np.arange(35))
    return TransferSet.open(Storage(str(store)), [covered], needs, **options)


def test_every_sentence_is_asked_once_and_the_manifests_say_what_stands(tmp_path, school):
    reported = []
    plan = school.plan(tmp_path, {"en": ENGLISH, "de": GERMAN}, k=3)
    outcome = compute(
        plan, on_range=lambda row: reported.append((row["task"], row["first"], row["sentences"]))
    )
    assert reported == [
        *((0, first, size) for first, size in ((0, 10), (10, 10), (20, 10), (30, 5))),
        *((1, first, size) for first, size in ((0, 10), (10, 10), (20, 1))),
    ]
    assert school.loaded == ["en", "de"]
    # The first one is asked once more, for what is stored once.
    text = sentences(35, seed=1)
    assert sorted(school.teachers["en"].labelled) == sorted([text[0], *text])
    manifest = read_manifest(Storage(str(folder_of(tmp_path, "en", ENGLISH))))
    assert (manifest.rows, manifest.tokens) == (35, int(ENGLISH.lengths.sum()))
    assert manifest.bytes == sum(
        path.stat().st_size for path in folder_of(tmp_path, "en", ENGLISH).glob("*.arrow")
    )
    assert 0 < manifest.largest_error < 0.01
    assert (outcome.computed_shards, outcome.tokens) == (7, int(ENGLISH.lengths.sum() + GERMAN.lengths.sum()))
    assert outcome.largest_error >= manifest.largest_error


def test_a_second_sweep_shares_what_stands_and_loads_no_teacher(tmp_path, school):
    compute(school.plan(tmp_path, {"en": ENGLISH}, k=3))
    before = files(tmp_path)
    second_school = School(FakeTeacher("en"), FakeTeacher("de"))
    outcome = compute(second_school.plan(tmp_path, {"en": ENGLISH, "de": GERMAN}, k=2))
    assert second_school.loaded == ["de"]
    assert before.items() <= files(tmp_path).items()
    assert outcome.computed_shards == 3


@pytest.mark.parametrize("changes", [{"k": 3}, {"k": 1}, {"k": 0}, {"k": 3, "shard_sentences": 7}])
def test_nothing_is_launched_when_all_stands(tmp_path, school, changes):
    compute(school.plan(tmp_path, {"en": ENGLISH}, k=3))
    before = files(tmp_path, "")
    plan = school.plan(tmp_path, {"en": ENGLISH}, **changes)
    expected_cost = estimate(plan)
    assert (expected_cost.missing_shards, expected_cost.missing_bytes, expected_cost.cached_sets) == (0, 0, 1)
    precompute(plan, launch=lambda *_: pytest.fail("launched"))
    assert files(tmp_path, "") == before


def test_more_paths_are_derived_from_stored_emissions_with_the_same_bytes(tmp_path, school):
    compute(school.plan(tmp_path / "later", {"en": ENGLISH}, k=2))
    task = school.task(tmp_path / "later", "en", ENGLISH, k=6)
    unused = replace(task.teacher, loader=lambda *_: pytest.fail("loaded"))
    compute(PrecomputePlan(unused.store, (replace(task, teacher=unused),), token_budget=25))
    compute(School(FakeTeacher("en")).plan(tmp_path / "once", {"en": ENGLISH}, k=6))
    derived, direct = (
        {
            path.name: path.read_bytes()
            for path in (folder_of(tmp_path / name, "en", ENGLISH, "kbest") / "k6").iterdir()
        }
        for name in ("later", "once")
    )
    assert len(direct) == 6
    assert derived == direct


def test_an_interrupted_run_finishes_the_missing_shards_only(tmp_path, school):
    def interrupted(plan, rows, placement):
        actor = ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget)
        for number, row in enumerate(rows):
            if number == 3:
                raise KeyboardInterrupt
            yield actor(row)

    plan = school.plan(tmp_path, {"en": ENGLISH, "de": GERMAN}, k=3)
    with pytest.raises(KeyboardInterrupt):
        compute(plan, launch=interrupted)
    assert not list(tmp_path.rglob("manifest.json"))
    with pytest.raises(StoreError, match="manifest is missing"):
        opened(tmp_path, Need("emissions"))
    before = files(tmp_path)
    second_school = School(FakeTeacher("en"), FakeTeacher("de"))
    assert compute(second_school.plan(tmp_path, {"en": ENGLISH, "de": GERMAN}, k=3)).computed_shards == 4
    assert before.items() <= files(tmp_path).items()
    assert sorted(second_school.teachers["en"].labelled) == sorted(sentences(35, seed=1)[30:])
    undisturbed = tmp_path / "undisturbed"
    compute(
        School(FakeTeacher("en"), FakeTeacher("de")).plan(undisturbed, {"en": ENGLISH, "de": GERMAN}, k=3)
    )
    for path in undisturbed.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / path.relative_to(undisturbed)).read_bytes(), path


def test_a_shard_that_is_not_in_the_store_though_it_was_computed_is_named_and_computed_again(
    tmp_path, school
):
    """The actor's node has lost the store, and has written into a folder of its own."""
    plan = school.plan(tmp_path, {"en": ENGLISH}, k=3)
    lost = folder_of(tmp_path, "en", ENGLISH) / "shard-00000010-00000020.arrow"

    def launch(*arguments):
        yield from here(*arguments)
        lost.unlink()

    with pytest.raises(
        StoreError, match=rf"{lost.stem}.*: was computed and is not in the store \(2 shards in all\)"
    ):
        precompute(plan, launch=launch)
    assert [row["first"] for task in plan.coverage() for row in task.rows()] == [10], "its paths follow it"
    compute(plan)
    assert lost.exists()


def test_killed_before_the_manifest_only_the_manifest_is_written(tmp_path, school):
    plan = school.plan(tmp_path, {"en": ENGLISH}, k=2)
    compute(plan)
    for path in tmp_path.rglob("manifest.json"):
        path.unlink()
    before = files(tmp_path)
    precompute(plan, launch=lambda *_: pytest.fail("launched"))
    assert files(tmp_path) == before
    assert len(list(tmp_path.rglob("manifest.json"))) == 3


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("signal", ["emissions", "kbest", "transitions"])
def test_a_flipped_byte_is_refused_by_name_and_computed_again_once_removed(tmp_path, school, signal):
    plan = school.plan(tmp_path, {"en": ENGLISH}, k=2)
    compute(plan)
    needs = [Need("emissions"), Need("transitions"), Need("kbest", 2)]
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    damaged = sorted(folder_of(tmp_path, "en", ENGLISH, signal).rglob("*.arrow"))[-1]
    _flip(damaged)
    with pytest.raises(StoreError, match=f"{damaged.name}: the shard is damaged.*remove .*{damaged.name}"):
        opened(tmp_path, *needs).gather(np.arange(35))
    damaged.unlink()
    with pytest.raises(StoreError, match=damaged.name):
        opened(tmp_path, *needs).gather(np.arange(35))
    assert compute(plan).computed_shards == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == whole
    opened(tmp_path, *needs).gather(np.arange(35))


def test_paths_follow_when_their_emissions_are_computed_anew(tmp_path, school):
    plan = school.plan(tmp_path, {"en": ENGLISH}, k=2)
    compute(plan)
    folder = folder_of(tmp_path, "en", ENGLISH)
    lost = min(folder.glob("*.arrow"))
    lost.unlink()
    school.teachers["en"].scale = 1.0
    assert compute(plan).computed_shards == 1
    kbest = read_manifest(Storage(str(folder_of(tmp_path, "en", ENGLISH, "kbest") / "k2")))
    emissions = read_manifest(Storage(str(folder)))
    assert [entry.source for entry in kbest.shards] == [entry.sha256 for entry in emissions.shards]


def test_paths_of_other_emissions_are_refused_beside_these(tmp_path, school):
    compute(school.plan(tmp_path / "one", {"en": ENGLISH}, k=2))
    school.teachers["en"].scale = 1.0
    compute(school.plan(tmp_path / "two", {"en": ENGLISH}, k=2))
    swapped = folder_of(tmp_path / "one", "en", ENGLISH, "kbest") / "k2"
    shutil.rmtree(swapped)
    shutil.copytree(folder_of(tmp_path / "two", "en", ENGLISH, "kbest") / "k2", swapped)
    with pytest.raises(
        StoreError, match=r"k2/shard-00000000-00000010\.arrow: it was computed from emissions"
    ):
        opened(tmp_path / "one", Need("emissions"), Need("kbest", 2))
    assert opened(tmp_path / "one", Need("kbest", 2)).gather(np.arange(3)).chain is None


def test_paths_are_never_derived_from_a_damaged_emission_shard(tmp_path, school):
    compute(school.plan(tmp_path, {"en": ENGLISH}))
    damaged = min(folder_of(tmp_path, "en", ENGLISH).glob("*.arrow"))
    _flip(damaged)
    with pytest.raises(StoreError, match=f"{damaged.name}: the shard is damaged"):
        compute(school.plan(tmp_path, {"en": ENGLISH}, k=2))


def test_a_teacher_trained_anew_is_asked_anew(tmp_path, school):
    def plan(weights):
        task = school.task(tmp_path, "en", ENGLISH, k=2, weights_sha256=weights)
        return PrecomputePlan(str(tmp_path), (task,), shard_sentences=10)

    compute(plan("old"))
    assert estimate(plan("old")).missing_shards == 0
    assert estimate(plan("")).missing_shards == 0
    assert estimate(plan("new")).cached_shards == 0
    school.teachers["en"].scale = 1.0
    compute(plan("new"))
    assert read_manifest(Storage(str(folder_of(tmp_path, "en", ENGLISH)))).origin.weights_sha256 == "new"
    opened(tmp_path, Need("emissions"), Need("kbest", 2))


@pytest.mark.parametrize("k", [0, 4])
def test_the_estimate_made_before_is_close_to_the_bytes_written(tmp_path, school, k):
    text = Text.from_tokens(sentences(200, seed=3, longest=60))
    plan = school.plan(tmp_path, {"en": text}, k=k, shard_sentences=100)
    before = estimate(plan)
    assert not list(tmp_path.iterdir())
    outcome = compute(plan)
    assert before.missing_bytes == pytest.approx(outcome.bytes, rel=0.05)
    assert (before.missing_shards, before.cached_shards) == (outcome.shards, 0)
    after = estimate(plan)
    assert (after.cached_bytes, after.missing_bytes) == (outcome.bytes, 0)
    assert after.signals.keys() == {"emissions", "transitions", *(["kbest"] if k else [])}
    for name, signal in after.signals.items():
        assert signal.sentences == (0 if name == "transitions" else 200)
        assert signal.bytes == pytest.approx(
            before.signals[name].bytes, rel=0.5 if name == "transitions" else 0.05
        )


def test_the_estimate_of_arcs_counts_every_pair_of_a_word_and_a_head(tmp_path):
    text = sentences(120, seed=3, longest=30)
    plan = _parser(tmp_path, Text.from_tokens(text), shard_sentences=100, shard_bytes=2**17)
    before, outcome = estimate(plan), compute(plan)
    pairs = sum(len(words) * (len(words) + 1) for words in text)
    for name, per_pair in {"arcs": 2, "relations": 2 * TAGS}.items():
        # What a file takes beside its values, of which arcs have few, is estimated for each file.
        assert before.signals[name].bytes == pytest.approx(estimate(plan).signals[name].bytes, rel=0.05)
        assert before.signals[name].bytes > pairs * per_pair
    assert before.missing_bytes == pytest.approx(outcome.bytes, rel=0.05)
    assert before.missing_shards == outcome.shards
    # Cut by bytes: the larger signal does not fit into one shard of each hundred sentences.
    sizes = [
        shard.bytes
        for shard in read_manifest(
            Storage(str(folder_of(tmp_path, "en", Text.from_tokens(text), "relations")))
        ).shards
    ]
    assert len(sizes) > 2
    assert max(sizes) < 2**17 + 2500
    assert outcome.tokens == sum(map(len, text))


def test_a_parsers_arcs_and_their_relations_come_back_in_any_batch(tmp_path):
    words_of_text = [["w"] * n for n in (1, 2, 7, 3, 1, 12, 2)] + sentences(20, seed=5)
    text = Text.from_tokens(words_of_text)
    compute(_parser(tmp_path, text))
    source = Source.of("en", text, [Need("marginals")], offers=ARCS)
    assert source.stored_ids.keys() == {"arcs", "relations"}
    opened = TransferSet.open(
        Storage(str(tmp_path)), [TeacherRows(source, np.arange(27))], [Need("kbest", 4)]
    )
    parser = FakeParser("en")
    for rows in ([2, 0, 1], [26, 5, 5, 4, 11], [0, 4], [6]):
        arcs = opened.gather(np.array(rows)).arcs
        expected_arcs = parser.labelled_arcs([parser.scores(words_of_text[row]) for row in rows])
        assert (
            arcs.lengths_B.tolist()
            == expected_arcs.lengths_B.tolist()
            == [len(words_of_text[row]) for row in rows]
        )
        assert arcs.arcs_BTH.shape == expected_arcs.arcs_BTH.shape
        assert arcs.arcs_BTH.dtype == arcs.relations_BTHR.dtype == torch.float32
        for place, words in enumerate(expected_arcs.lengths_B.tolist()):
            # Of every word and every head it may have; under itself a word has no relations.
            off_diagonal = ~torch.eye(words + 1, dtype=torch.bool)[1:]
            for actual, expected in (
                (arcs.arcs_BTH, expected_arcs.arcs_BTH), (arcs.relations_BTHR, expected_arcs.relations_BTHR)
            ):  # fmt: skip
                actual, expected = (
                    part[place, :words, : words + 1][off_diagonal] for part in (actual, expected)
                )
                torch.testing.assert_close(actual, expected, atol=2e-2, rtol=0)
            beyond = torch.ones(arcs.arcs_BTH.shape[1:], dtype=torch.bool)
            beyond[:words, : words + 1] = False
            assert (arcs.arcs_BTH[place][beyond] == FORBIDDEN).all()
            assert (arcs.arcs_BTH[place, :words, : words + 1][~off_diagonal] < FORBIDDEN / 2).all()
        assert torch.isfinite(arcs.relations_BTHR).all()
        inside_BT = arcs.chain().mask_BT
        torch.testing.assert_close(arcs.arcs_BTH.exp().sum(2)[inside_BT], torch.ones(int(inside_BT.sum())))


def test_the_error_of_arcs_is_that_of_heads_a_word_may_have(tmp_path):
    text = Text.from_tokens(sentences(20, seed=5))
    compute(_parser(tmp_path, text))
    for name in ARCS:
        manifest = read_manifest(Storage(str(folder_of(tmp_path, "en", text, name))))
        assert 0 < manifest.largest_error < 0.01


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (lambda emissions: emissions[:-1], "gave emissions of the wrong shape: None where"),
        (
            lambda emissions: [scores[:-1] for scores in emissions],
            r"\(\d+, 5\) where \(\d+, 5\) was expected",
        ),
        (
            lambda emissions: [np.full_like(scores, np.nan) for scores in emissions],
            "without a finite maximum",
        ),
    ],
)
def test_a_teacher_that_gives_nonsense_is_refused(tmp_path, emit, message):
    class Odd(FakeTeacher):
        def emit(self, sentences, token_budget):
            emissions = super().emit(sentences, token_budget)
            # A batch of one token is for what is stored once.
            return emissions if token_budget == 1 else emit(emissions)

    with pytest.raises(RunError, match=message):
        compute(School(Odd("en")).plan(tmp_path, {"en": ENGLISH}))


def test_a_teacher_of_other_tags_is_refused(tmp_path):
    school = School(FakeTeacher("en", tags=4))
    with pytest.raises(RunError, match=r"of the wrong shape: \(\d+, 4\) where \(\d+, 5\) was expected"):
        compute(school.plan(tmp_path, {"en": ENGLISH}))


def test_old_temporaries_are_cleaned_and_young_ones_left_alone(tmp_path, school):
    folder = folder_of(tmp_path, "en", ENGLISH)
    folder.mkdir(parents=True)
    old, young = folder / ".shard-a.arrow.1.tmp", folder / ".shard-b.arrow.2.tmp"
    for path in (old, young):
        path.write_bytes(b"half a shard")
    os.utime(old, (0, 0))
    compute(school.plan(tmp_path, {"en": ENGLISH}))
    assert (old.exists(), young.exists()) == (False, True)


def test_errors_of_actors_arrive_with_class_and_fields(tmp_path):
    class Full(FakeTeacher):
        def emit(self, sentences, token_budget):
            raise StoreError("shard", "cannot be written", "free some space")

    class Broken(FakeTeacher):
        def emit(self, sentences, token_budget):
            raise ZeroDivisionError("by zero")

    with pytest.raises(StoreError) as caught:
        compute(School(Full("en")).plan(tmp_path, {"en": ENGLISH}))
    assert (caught.value.name, caught.value.hint) == ("shard", "free some space")
    with pytest.raises(RunError, match="on sentences 0 to 10: ZeroDivisionError: by zero"):
        compute(School(Broken("en")).plan(tmp_path, {"en": ENGLISH}))


def test_a_non_chain_teacher_gives_marginals_and_its_best_path(tmp_path):
    school = School(FakeTeacher("en", chain=False))
    plan = _non_chain(school, tmp_path)
    before = estimate(plan)
    outcome = compute(plan)
    assert (before.missing_shards, outcome.computed_shards) == (outcome.shards, 4) == (8, 4)
    assert not folder_of(tmp_path, "en", ENGLISH).exists()
    batch = opened(tmp_path, Need("marginals"), Need("kbest", 1), offers=NON_CHAIN).gather(np.arange(35))
    assert batch.chain is None
    (_, _, output), *_ = FakeTeacher("en", chain=False).outputs(sentences(35, seed=1), 1)
    inside_BT = batch.marginals.mask_BT
    emissions_BTY = batch.marginals.emissions_BTY.exp()
    torch.testing.assert_close(emissions_BTY.sum(2)[inside_BT], torch.ones(int(inside_BT.sum())))
    expected_BTY = token_marginals(output.distribution)
    torch.testing.assert_close(emissions_BTY[inside_BT], expected_BTY[inside_BT], atol=2e-3, rtol=0)
    paths_BT, scores_B = viterbi(output.distribution)
    assert torch.equal(batch.paths_BKT[:, 0][inside_BT], paths_BT[inside_BT])
    torch.testing.assert_close(batch.scores_BK[:, 0], scores_B, rtol=1e-5, atol=1e-5)
    assert batch.marginals.lengths_B.tolist() == ENGLISH.lengths.tolist()
    assert compute(_non_chain(school, tmp_path)).computed_shards == 0


def test_a_lost_best_path_is_asked_for_again_and_the_marginals_stay(tmp_path):
    school = School(FakeTeacher("en", chain=False))
    compute(_non_chain(school, tmp_path))
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    marginal_files = files(folder_of(tmp_path, "en", ENGLISH, "token_marginals"))
    lost = min(folder_of(tmp_path, "en", ENGLISH, "kbest").rglob("*.arrow"))
    lost.unlink()
    requests = len(school.teachers["en"].labelled)
    assert compute(_non_chain(school, tmp_path)).computed_shards == 1
    assert school.teachers["en"].labelled[requests:] == sorted(sentences(35, seed=1)[:10], key=len)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == whole
    assert files(folder_of(tmp_path, "en", ENGLISH, "token_marginals")) == marginal_files


def _non_chain(school: School, store: Path) -> PrecomputePlan:
    task = school.task(store, "en", ENGLISH, k=1, offers=NON_CHAIN)
    return PrecomputePlan(str(store), (task,), shard_sentences=10, token_budget=40)


def _parser(store: Path, text: Text, **changes) -> PrecomputePlan:
    task = School(FakeParser("en")).task(store, "en", text, offers=ARCS)
    return PrecomputePlan(str(store), (task,), **{"shard_sentences": 10, "token_budget": 40, **changes})


@pytest.fixture
def pipeline(monkeypatch):
    """Ray's pipeline replaced: it gives the result of one row, then the next of these errors, if any is left."""
    errors, launched = [], []

    def run(plan, rows, placement, actors):
        launched.append([row["first"] for row in rows])
        yield rows[0]
        if errors:
            raise errors.pop(0)
        yield from rows[1:]

    monkeypatch.setattr(module, "_pipeline", run)
    monkeypatch.setattr(module, "_fitting_actors", lambda *_: 2)
    monkeypatch.setattr(module, "topology", lambda **_: Topology((Node({"CPU": 2}),)))
    return errors, launched


ROWS = [{"task": 0, "first": first} for first in (0, 10, 20, 30)]


def test_the_rows_that_a_dead_actor_leaves_go_through_a_new_pool(pipeline):
    errors, launched = pipeline
    errors += [ActorDiedError(), ActorDiedError()]
    assert list(launch_on_ray(None, ROWS, Placement(max_failures=2))) == ROWS
    assert launched == [[0, 10, 20, 30], [10, 20, 30], [20, 30]]


def test_actors_that_die_again_and_again_are_an_error(pipeline):
    errors, launched = pipeline
    errors += [ActorDiedError(), ActorDiedError()]
    with pytest.raises(RunError, match=r"2 actors died.*; what is computed is kept"):
        list(launch_on_ray(None, ROWS, Placement(max_failures=1)))
    assert len(launched) == 2


def test_another_error_of_ray_is_not_tried_again(pipeline):
    errors, launched = pipeline
    errors.append(RayError("first line\n  the reason\n"))
    with pytest.raises(RunError, match=r"could not compute the transfer set: the reason; what is computed"):
        list(launch_on_ray(None, ROWS, Placement()))
    assert len(launched) == 1


def by_name(store: Storage, teacher_id: str, device: torch.device) -> tuple[str, str, str]:
    return store.uri, teacher_id, device.type


def test_a_loader_is_found_by_name(tmp_path):
    handle = TeacherHandle(str(tmp_path), "en", f"{__name__}:by_name", Sizes(1))
    assert handle.load(torch.device("meta")) == (str(tmp_path), "en", "meta")
