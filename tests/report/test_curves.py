"""The curves of a run: its stages, their steps, the best epoch of each, and the picture of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.report.curve_labels import CHARACTER, NARROW, Rows
from raykd.report.curve_picture import curve_picture
from raykd.report.curves import Step, curves_of
from raykd.results import RunResult
from raykd.runs.run import Run
from tests.report.fake_epochs import MIX, epoch, run_of, trained


def result_of(run: Run, epochs: list, languages: tuple[str, ...] = ("en",)) -> tuple[Run, RunResult]:
    run_and_result = trained(run, epochs=1, languages=languages)
    return run, replace(run_and_result[1], epochs=tuple(epochs))


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


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


def test_the_picture_shows_scores_of_every_seed_and_the_losses_of_the_first():
    curves = curves_of(
        [trained(run_of("representation", "logits", "gold", seed=s), epochs=5) for s in range(3)]
    )
    figure = curve_picture(curves, label="F1")
    lines = [trace for trace in figure.data if trace.x0 is not None]
    scores = {trace.hovertemplate.partition(" %")[0]: trace for trace in lines}
    for seed in range(3):
        trace = scores[f"dev F1, seed {seed}"]
        assert (trace.x0, trace.dx) == (1, 1)
        assert trace.y == pytest.approx([100 * value for value in curves[seed].dev], rel=1e-3)
    faint = [scores[f"dev F1, seed {seed}"].line.color for seed in (1, 2)]
    assert faint[0] == faint[1] != scores["dev F1, seed 0"].line.color
    assert len(traces(figure, "training loss")) == 1


def test_each_stage_has_a_scale_of_its_own_and_shows_the_exact_loss():
    (curve,) = curves_of([trained(run_of("representation", "logits", "gold"), epochs=6, steps=2)])
    figure = curve_picture([curve], label="F1")
    (loss,), (held_out,) = traces(figure, "training loss"), traces(figure, "held-out loss")
    for stage in range(3):
        epochs = range(12 * stage, 12 * stage + 12)
        both = [
            (height, exact)
            for trace in (loss, held_out)
            for x, height, exact in zip(trace.x, trace.y, trace.customdata, strict=True)
            if x is not None and x - 1 in epochs
        ]
        heights, exact = zip(*sorted(both), strict=True)
        assert (heights[0], heights[-1]) == (0, 1)
        # The same loss is as high on either curve, and a factor is a distance.
        for height, value in both:
            assert height == pytest.approx(
                math.log(value / exact[0]) / math.log(exact[-1] / exact[0]), abs=0.01
            )
    known = [value for x, value in zip(loss.x, loss.customdata, strict=True) if x is not None]
    assert known == pytest.approx(curve.loss, rel=1e-3)
    gaps = [place for place, x in enumerate(loss.x) if x is None]
    assert gaps == [12, 25, 38], "the loss of one stage does not go on as that of the next"
    texts = {note.text for note in figure.layout.annotations}
    assert {"stage 1 representation", "stage 2 logits", "stage 3 gold", "head", "+ projection"} <= texts


def test_a_single_stage_has_a_real_axis_and_no_labels():
    (curve,) = curves_of([trained(run_of("structural"), epochs=3)])
    figure = curve_picture([curve], label="accuracy")
    (loss,) = traces(figure, "training loss")
    assert [value for value in loss.y if value is not None] == pytest.approx(curve.loss, rel=1e-3)
    assert figure.layout.yaxis2.type == "log"
    assert not figure.layout.annotations
    assert not figure.layout.shapes
    zero = curve_picture([replace(curve, loss=(1.0, 0.5, 0.0))], label="accuracy")
    assert zero.layout.yaxis2.type == "linear", "0 is on no logarithmic axis"


def test_losses_that_are_equal_or_zero_are_drawn_too():
    (curve,) = curves_of([trained(run_of("posterior", "gold"), epochs=2)])
    flat = replace(curve, loss=(0.0, 2.0, 3.0, 3.0), held_out=(None,) * 4)
    (loss,) = traces(curve_picture([flat], label="F1"), "training loss")
    assert list(loss.y) == [0.0, 1.0, None, 0.5, 0.5, None]


def test_the_best_epoch_of_each_step_is_marked_on_the_score_and_on_the_loss_that_chose_it():
    (curve,) = curves_of([trained(run_of("representation", "gold"), epochs=5, steps=2)])
    on_score, on_loss = traces(curve_picture([curve], label="F1"), "best epochs")
    assert list(on_score.x) == [step.best + 1 for step in curve.steps]
    assert on_score.y == pytest.approx([100 * curve.dev[step.best] for step in curve.steps], rel=1e-3)
    assert list(on_loss.x) == [step.best + 1 for step in curve.steps[:2]]
    assert (
        on_score.hovertext[1]
        == f"best epoch of stage 1 representation, + projection: {curve.steps[1].best + 1}"
    )


@given(st.lists(st.tuples(st.integers(0, 199), st.text("abc", max_size=16)), max_size=14))
def test_labels_do_not_touch(labels):
    rows, placed = Rows(200), []
    for at, text in labels:
        label = rows.label(at, text)
        left = at * NARROW / 200 - (CHARACTER * len(text) if label.leftwards else 0)
        placed.append((label.row, left, left + CHARACTER * len(text)))
    assert all(0 <= row < len(labels) and right <= NARROW for row, _, right in placed)
    for i, (row, left, right) in enumerate(placed):
        for other, a, b in placed[:i]:
            assert row != other or right <= a or b <= left
