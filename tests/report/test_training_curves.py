"""The curves of a run: its stages, their steps, the best epoch of each, and the numbers that the page draws."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.figures.results import RunResult
from raykd.recipes.run import Run
from raykd.report import training_curves as curves_module
from raykd.report.training_curves import Step, drawn_curves, epoch_stride, training_curves
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
    (curve,) = training_curves([result_of(run_of(MIX, "gold"), history)])
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


def test_runs_without_epochs_have_no_curve():
    assert training_curves([result_of(run_of("gold"), [])]) == ()


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
    trained_runs = [
        trained(run_of("gold", seed=seed), epochs=2, languages=(language,)) for seed, language in runs
    ]
    assert [curve.name for curve in training_curves(trained_runs)] == names


def test_the_page_is_given_the_scores_of_every_seed_and_the_losses_of_the_first():
    curves = training_curves(
        [trained(run_of("representation", "logits", "gold", seed=s), epochs=5) for s in range(3)]
    )
    data = drawn_curves(curves)
    assert [run["name"] for run in data["runs"]] == ["seed 0", "seed 1", "seed 2"]
    for run, curve in zip(data["runs"], curves, strict=True):
        assert run["dev"] == pytest.approx([100 * value for value in curve.dev], rel=1e-3)
        assert run["epochs"] == 15
        assert "at" not in run, "all epochs are shown"
    assert data["loss"] == pytest.approx(curves[0].loss, rel=1e-3)
    losses = [loss for loss in curves[0].held_out if loss is not None]
    assert [loss for loss in data["held_out"] if loss is not None] == pytest.approx(losses, rel=1e-3)


def test_the_page_is_given_each_stage_with_its_steps_and_their_best_epochs():
    (curve,) = training_curves([trained(run_of("representation", "gold"), epochs=5, steps=2)])
    data = drawn_curves([curve])
    assert data["stages"] == ("representation", "gold")
    assert [(step["stage"], step["layers"], step["first"], step["by_loss"]) for step in data["steps"]] == [
        (0, "head", 0, True), (0, "+ projection", 5, True), (1, "head", 10, False), (1, "+ projection", 15, False),
    ]  # fmt: skip
    assert [step["best"] for step in data["steps"]] == [step.best for step in curve.steps]


def test_epochs_are_left_out_where_there_are_too_many_but_never_the_best(monkeypatch):
    monkeypatch.setattr(curves_module, "MOST_POINTS", 400)
    two_curves = training_curves(
        [trained(run_of("representation", "gold", seed=s), epochs=50) for s in range(2)]
    )
    curves = {0: two_curves, 1: two_curves}
    # 100 epochs of two runs, the first with two losses too, for two students.
    assert epoch_stride(curves) == 2
    data = drawn_curves(two_curves, stride=2)
    for run, curve in zip(data["runs"], two_curves, strict=True):
        must = {0, 49, 50, 99, *(step.best for step in curve.steps)}
        assert set(run["at"]) == {*range(0, 100, 2), *must}
        assert run["dev"] == pytest.approx([100 * curve.dev[epoch] for epoch in run["at"]], rel=1e-3)
    assert len(data["loss"]) == len(data["runs"][0]["at"])
