"""The curves of a run: its stages, their steps, the best epoch of each, and the numbers that the page draws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.figures.results import RunResult
from raykd.recipes.run import Run
from raykd.report import curve_data as numbers
from raykd.report.curve_data import curve_data, every_nth
from raykd.report.curve_labels import CHARACTER, NARROW, WIDE, Rows
from raykd.report.curves import Step, curves_of
from tests.report.fake_epochs import MIX, epoch, run_of, trained


def result_of(run: Run, epochs: list, languages: tuple[str, ...] = ("en",)) -> tuple[Run, RunResult]:
    run_and_result = trained(run, epochs=1, languages=languages)
    return run, replace(run_and_result[1], epochs=tuple(epochs))


def test_a_step_is_best_by_what_its_stage_is_selected_on():
    history = [
        epoch(0, 0, 0.3, 9.0, step=0, layers="all", held_out_loss=5.0),
        epoch(1, 0, 0.1, 8.0, step=0, layers="all", held_out_loss=3.0),
        epoch(2, 0, 0.2, 7.0, step=0, layers="all", held_out_loss=3.0),
        epoch(3, 1, 0.2, 2.0, step=0, layers=["head"]),
        epoch(4, 1, 0.5, 2.0, step=0, layers=["head"]),
        epoch(5, 1, 0.7, 1.0, step=1, layers=["head", "encoder"]),
        epoch(6, 1, 0.7, 1.0, step=1, layers=["head", "encoder"]),
        epoch(7, 1, 0.6, 1.0, step=2, layers=["head", "encoder", "embeddings"]),
    ]
    (curve,) = curves_of([result_of(run_of(MIX, "gold"), history)])
    assert curve.name == ""
    assert curve.stages == ("representation+logits", "gold")
    # Of equal epochs the first is kept, as in training.
    assert curve.steps == (
        Step(0, "", first=0, best=1, by_loss=True),
        Step(1, "head", first=3, best=4, by_loss=False),
        Step(1, "+ encoder", first=5, best=5, by_loss=False),
        Step(1, "+ embeddings", first=7, best=7, by_loss=False),
    )
    assert curve.held_out == (5.0, 3.0, 3.0, *[None] * 5)


def test_histories_without_steps_and_runs_without_epochs_are_read():
    old = result_of(run_of("posterior", "gold"), [epoch(0, 0, 0.3, 9.0), epoch(1, 1, 0.3, 9.0)])
    given_model = result_of(run_of("gold"), [])
    (curve,) = curves_of([old, given_model])
    assert [(step.stage, step.layers, step.first) for step in curve.steps] == [(0, "", 0), (1, "", 1)]


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ([(4, "en")], [""]),
        ([(4, "en"), (5, "en")], ["seed 0", "seed 1"]),
        ([(4, "en"), (4, "de")], ["en", "de"]),
        ([(4, "en"), (4, "de"), (9, "en"), (9, "de")], ["seed 0 en", "seed 0 de", "seed 1 en", "seed 1 de"]),
    ],
)
def test_curves_are_named_by_what_distinguishes_their_runs(runs, names):
    every = [trained(run_of("gold", seed=seed), epochs=2, languages=(language,)) for seed, language in runs]
    assert [curve.name for curve in curves_of(every)] == names


def test_the_page_is_given_the_scores_of_every_seed_and_the_losses_of_the_first():
    curves = curves_of(
        [trained(run_of("representation", "logits", "gold", seed=s), epochs=5) for s in range(3)]
    )
    data = curve_data(curves)
    assert [run["name"] for run in data["runs"]] == ["seed 0", "seed 1", "seed 2"]
    for run, curve in zip(data["runs"], curves, strict=True):
        assert run["dev"] == pytest.approx([100 * value for value in curve.dev], rel=1e-3)
        assert run["epochs"] == 15
        assert "at" not in run, "all epochs are shown"
    assert data["loss"] == pytest.approx(curves[0].loss, rel=1e-3)
    known = [loss for loss in curves[0].held_out if loss is not None]
    assert [loss for loss in data["held_out"] if loss is not None] == pytest.approx(known, rel=1e-3)


def test_each_stage_has_a_scale_of_its_own_and_a_label():
    (curve,) = curves_of([trained(run_of("representation", "logits", "gold"), epochs=6, steps=2)])
    data = curve_data([curve])
    assert [scale[:2] for scale in data["scales"]] == [[0, 12], [12, 24], [24, 36]]
    for start, end, low, high in data["scales"]:
        losses = [x for own in (curve.loss, curve.held_out) for x in own[start:end] if x is not None]
        assert (low, high) == pytest.approx((min(losses), max(losses)), rel=1e-3)
    for labels in data["labels"]:
        assert {(epoch, text) for epoch, text, *_ in labels} >= {
            (0, "stage 1 representation"), (12, "stage 2 logits"), (24, "stage 3 gold"), (0, "head"),
            (6, "+ projection"),
        }  # fmt: skip
        stages, steps = ([row for _, _, row, _, of in labels if of is kind] for kind in (True, False))
        assert min(stages) > max(steps), "stages stand above their steps"


def test_a_single_stage_has_no_labels():
    (curve,) = curves_of([trained(run_of("structural"), epochs=3)])
    data = curve_data([curve])
    assert "labels" not in data
    assert "held_out" not in data
    assert data["scales"] == [pytest.approx([0, 3, min(curve.loss), max(curve.loss)], rel=1e-3)]


def test_the_best_epoch_of_each_step_is_marked_with_what_chose_it():
    (curve,) = curves_of([trained(run_of("representation", "gold"), epochs=5, steps=2)])
    assert curve_data([curve])["best"] == [
        [curve.steps[0].best, " of stage 1 representation, head", True],
        [curve.steps[1].best, " of stage 1 representation, + projection", True],
        [curve.steps[2].best, " of stage 2 gold, head", False],
        [curve.steps[3].best, " of stage 2 gold, + projection", False],
    ]


def test_epochs_are_left_out_where_there_are_too_many_but_never_the_best(monkeypatch):
    monkeypatch.setattr(numbers, "MOST", 400)
    own = curves_of([trained(run_of("representation", "gold", seed=s), epochs=50) for s in range(2)])
    curves = {0: own, 1: own}
    # 100 epochs of two runs, the first with two losses too, for two students.
    assert every_nth(curves) == 2
    data = curve_data(own, every=2)
    for run, curve in zip(data["runs"], own, strict=True):
        must = {0, 49, 50, 99, *(step.best for step in curve.steps)}
        assert set(run["at"]) == {*range(0, 100, 2), *must}
        assert run["dev"] == pytest.approx([100 * curve.dev[epoch] for epoch in run["at"]], rel=1e-3)
    assert len(data["loss"]) == len(data["runs"][0]["at"])


@pytest.mark.parametrize("width", [WIDE, NARROW])
@given(labels=st.lists(st.tuples(st.integers(0, 199), st.text("abc", max_size=16)), max_size=14))
def test_labels_do_not_touch(width, labels):
    rows, placed = Rows(200, width), []
    for at, text in labels:
        label = rows.label(at, text)
        begin, length = at * width / 200, CHARACTER * len(text)
        left, right = (begin - length, begin) if label.leftwards else (begin, begin + length)
        placed.append((label.row, left, right))
    assert all(0 <= row < len(labels) and right <= width for row, _, right in placed)
    for i, (row, left, right) in enumerate(placed):
        for other, a, b in placed[:i]:
            assert row != other or right <= a or b <= left
