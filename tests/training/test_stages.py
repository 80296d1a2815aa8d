"""Stages: each starts from the best state of the one before, on its own text, training its own layers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load

from raykd.corpora.batching import sample_by_language
from raykd.errors import RunError
from raykd.figures.results import Score
from raykd.layers.stage_schedule import TO_CONVERGENCE
from raykd.objectives import OBJECTIVES
from raykd.objectives.losses import Loss
from raykd.signals import Sizes
from raykd.storage.layout import WEIGHTS
from raykd.training import execute as module
from raykd.training.execute import training_plan
from raykd.training.model_folder import build_model
from raykd.training.stages import labelled_share, split_held_out
from tests.training.loops import changed, distiller, opened, same, weights_of
from tests.training.projected import with_projection
from tests.training.small import executed, student_of

POSTERIOR = {"objective": {"kind": "posterior"}}
GOLD = {"objective": {"kind": "gold"}}
DROPOUT_FREE = {"training": {"dropout": 0.0}}


def with_scores(loop, scores):
    """The loop, its epochs scored by these numbers instead of the dev score."""
    remaining_scores = iter(scores)
    loop._evaluate = lambda model: Score.from_languages({"en": next(remaining_scores)})
    return loop


def trained(loop) -> tuple[list, list[dict[str, torch.Tensor]]]:
    """The reports of all epochs, and the weights at the end of each."""
    reports, weights = [], []

    def report(epoch):
        reports.append(epoch)
        weights.append(weights_of(loop.model))

    loop.train(report)
    return reports, weights


def build_loss(kind: str, tags: int) -> Loss:
    """The loss of an objective with default settings."""
    return OBJECTIVES[kind]().build(Sizes(tags), Sizes(tags))


def started(loop) -> list[dict[str, torch.Tensor]]:
    """Trains, and collects the weights with which each stage or unfreezing step starts."""
    starts, open_stage_step = [], loop._open_stage_step

    def opening(*args):
        starts.append(weights_of(loop.model))
        open_stage_step(*args)

    loop._open_stage_step = opening
    loop.weights_seen = trained(loop)[1]
    return starts


def test_each_stage_starts_from_the_best_state_of_the_one_before(small):
    stages = ({**POSTERIOR, "schedule": {"epochs": 3}}, GOLD, {**GOLD, "schedule": {"epochs": 1}})
    run = student_of(small, stages=stages)
    loop = with_scores(distiller(small.storage, run, folder="stages"), [0.1, 0.9, 0.2, 0.5, 0.4, 0.0])
    starts = started(loop)
    ends = loop.weights_seen
    assert len(ends) == 6
    assert same(starts[0], weights_of(build_model(small.storage, run)))
    assert same(starts[1], ends[1])
    # The score of an earlier stage is no bar for a later one.
    assert same(starts[2], ends[3])
    assert same(weights_of(loop.model), ends[5])
    assert loop.progress.best_epoch == 5
    history = loop.progress.history
    assert [epoch["stage"] for epoch in history] == [0, 0, 0, 1, 1, 2]
    assert [epoch["epoch"] for epoch in history] == list(range(6))
    assert {(epoch["step"], epoch["layers"]) for epoch in history} == {(0, "all")}
    # λ is a function of the stage's own epochs; the horizon of 3 is that of the file's own schedule.
    assert [epoch["lambda"] for epoch in history] == pytest.approx([1, 2 / 3, 1 / 3, 0, 0, 0])


def test_optimiser_steps_end_a_stage_inside_an_epoch(small):
    run = student_of(small, stages=({**GOLD, "schedule": {"epochs": None, "max_steps": 1}}, GOLD))
    single_loop = distiller(small.storage, run, folder="steps-1")
    single_loop.train(lambda _: None)
    assert [epoch["steps"] for epoch in single_loop.progress.history if epoch["stage"] == 0] == [1]
    # The second stage counts its own; an epoch has as many steps as batches.
    in_an_epoch = single_loop.progress.history[1]["steps"] - 1
    assert in_an_epoch > 1
    limit = 2 * in_an_epoch + 1
    run = student_of(small, stages=({**GOLD, "schedule": {"epochs": None, "max_steps": limit}},))
    loop = distiller(small.storage, run, folder="steps")
    loop.train(lambda _: None)
    assert [epoch["steps"] for epoch in loop.progress.history] == [in_an_epoch, 2 * in_an_epoch, limit]


def test_patience_alone_ends_a_stage(small):
    run = student_of(small, stages=({**GOLD, "schedule": {"epochs": None, "patience": 2}},))
    loop = with_scores(distiller(small.storage, run, folder="patience-alone"), [0.1, 0.3, 0.2, 0.3, 0.2, 0.9])
    loop.train(lambda _: None)
    assert (len(loop.progress.history), loop.progress.best_epoch) == (4, 1)


def test_where_nothing_is_said_of_the_end_it_trains_to_convergence(small):
    length = {"epochs": None, "max_steps": None, "patience": None}
    (stage,) = student_of(small, schedule={**length, "anneal_horizon": 3}).stages
    assert {name: stage["schedule"][name] for name in length} == {"epochs": None, **TO_CONVERGENCE}
    (stage,) = student_of(small, schedule={**length, "epochs": 7, "anneal_horizon": 3}).stages
    assert {name: stage["schedule"][name] for name in length} == {**length, "epochs": 7}


def test_only_the_named_layers_move(small):
    for layers in (("head",), ("encoder", "embeddings")):
        run = student_of(small, stages=({**GOLD, "layers": layers, "schedule": {"epochs": 1}},))
        loop = distiller(small.storage, run, folder=f"layers-{'-'.join(layers)}")
        before = weights_of(loop.model)
        loop.train(lambda _: None)
        moved = {
            "embeddings" if name == "embedding" else name for name in changed(before, weights_of(loop.model))
        }
        assert moved == set(layers)
        assert all(parameter.requires_grad for parameter in loop.model.parameters())


def test_unfreezing_goes_from_the_top_down_each_step_from_the_best_state(small):
    stage = {**GOLD, "layers": "unfreeze", "schedule": {"epochs": 2}}
    loop = with_scores(
        distiller(small.storage, student_of(small, stages=(stage,)), folder="unfreeze"),
        [0.9, 0.1, 0.2, 0.3, 0.7, 0.6],
    )
    starts = started(loop)
    ends = loop.weights_seen
    assert len(starts) == 3
    assert len(ends) == 6
    assert same(starts[1], ends[0])
    assert same(starts[2], ends[3])
    assert same(weights_of(loop.model), ends[4])
    assert changed(starts[0], ends[1]) == {"head"}
    assert changed(starts[1], ends[3]) == {"head", "encoder"}
    assert changed(starts[2], ends[5]) == {"head", "encoder", "embedding"}
    assert loop.progress.best_epoch == 4
    groups = ["head", "encoder", "embeddings"]
    assert [(epoch["step"], epoch["layers"]) for epoch in loop.progress.history] == [
        (step, groups[: step + 1]) for step in range(3) for _ in range(2)
    ]


def test_a_stage_may_begin_with_a_new_head(small):
    stages = (GOLD, {**GOLD, "head": "new"}, {**GOLD, "head": "keep"})
    run = student_of(small, stages=stages, schedule={"epochs": 1})
    assert [stage.get("head") for stage in run.stages] == [None, "new", None]
    loop = distiller(small.storage, run, folder="new-head")
    starts = started(loop)
    ends = loop.weights_seen
    assert changed(ends[0], starts[1]) == {"head"}
    assert same(ends[1], starts[2])
    # Drawn by the seed and the stage, as the untrained head is: transitions begin at 0.
    second_loop = started(distiller(small.storage, run, folder="new-head-again"))
    assert same(starts[1], second_loop[1])
    assert not torch.equal(starts[1]["head.emissions.weight"], starts[0]["head.emissions.weight"])
    assert not starts[1]["head.transitions"].any()


def test_an_unknown_layer_group_is_refused_by_name(small):
    run = student_of(small, stages=(GOLD,))
    plan = training_plan(small.storage.uri, run)
    plan = replace(plan, stages=[replace(plan.stages[0], layers=["tail"])])
    with pytest.raises(RunError, match="no layer group 'tail'; it has head, encoder, embeddings"):
        distiller(small.storage, run, folder="tail", plan=plan).train(lambda _: None)


def test_unfreezing_omits_a_head_that_the_objective_does_not_read(small):
    hidden = {"objective": {"kind": "representation", "layer": 1}, "layers": "unfreeze"}
    loop = distiller(small.storage, student_of(small, stages=(hidden,)), folder="unread-head")
    reports, _ = trained(loop)
    assert [report.layers for report in reports[:: len(reports) // 2]] == [
        ("encoder",),
        ("encoder", "embeddings"),
    ]


def test_layers_without_effect_are_named(small):
    stages = ({"objective": {"kind": "representation", "layer": 1}},)
    run = student_of(small, stages=stages, student={"projection": "teacher"})
    plan = training_plan(small.storage.uri, run)
    plan = replace(plan, stages=[replace(plan.stages[0], layers=["head"])])
    loop = distiller(small.storage, run, folder="no-effect", plan=plan)
    with pytest.raises(RunError, match=r"stage 1: the trained layers \(head\) have no effect"):
        loop.train(lambda _: None)


def test_patience_ends_a_stage_or_an_unfreezing_step_early(small):
    stages = (
        {**GOLD, "schedule": {"epochs": 6, "patience": 2}},
        {**GOLD, "layers": "unfreeze", "schedule": {"epochs": 4, "patience": 1}},
    )
    scores = [0.5, 0.6, 0.1, 0.6, 0.3, 0.2, 0.1, 0.2, 0.1, 0.1, 0.2, 0.3, 0.4]
    loop = with_scores(distiller(small.storage, student_of(small, stages=stages), folder="patience"), scores)
    reports, _ = trained(loop)
    assert [report.dev.mean for report in reports] == scores
    assert [report.stage for report in reports] == [0] * 4 + [1] * 9
    assert loop.progress.best_epoch == 12


@pytest.mark.parametrize("text", ["labelled", "unlabelled", "all"])
def test_a_stage_is_trained_on_its_text(small, text):
    run = student_of(small, stages=({**POSTERIOR, "text": text}, GOLD))
    loop = opened(distiller(small.storage, run))
    labelled = loop.data.part.labels.labelled
    of_text = {"labelled": labelled, "unlabelled": ~labelled, "all": np.ones_like(labelled)}[text]
    rows = np.sort(np.concatenate(loop._batches(0)))
    assert rows.tolist() == np.flatnonzero(of_text).tolist()
    assert len(rows) > 0
    # Where there are no labels, the teacher's best labelling takes their place.
    reports, _ = trained(distiller(small.storage, run, folder=f"text-{text}"))
    labels = "gold" if text == "labelled" else "top_1"
    assert [set(report.losses) for report in reports] == [{"posterior", labels}] * 2 + [{"gold"}] * 2


@pytest.mark.parametrize("average", ["sentence", "token"])
def test_the_losses_of_both_texts_are_means_over_their_own(small, average):
    """Mukherjee & Awadallah 2020, Eq. 7, whatever the shares of the texts and however batches are cut."""
    parts = ({**GOLD, "weight": 3.0, "text": "labelled"}, {**POSTERIOR, "weight": 0.5, "text": "unlabelled"})
    still = {"optimiser": "sgd", "learning_rate": 1e-12, "dropout": 0.0, "loss_average": average}
    run = student_of(
        small,
        stages=({"objective": {"kind": "mix", "parts": parts}, "schedule": {"epochs": 1}},),
        training=still,
    )
    loop = opened(distiller(small.storage, run, folder=f"joint-{average}"))
    part = loop.data.part
    batch = loop.data.gather(loop.data.rows, torch.device("cpu"))
    gold_B, posterior_B = (
        build_loss(kind, loop.plan.tags)(loop.model.eval()(batch.text), batch.targets, batch.teacher)
        .total_B.detach()
        .numpy()
        for kind in ("gold", "posterior")
    )
    labelled = part.labels.labelled
    assert 0.5 < labelled.mean() < 0.9
    size = part.text.lengths if average == "token" else np.ones(len(part))
    expected = 3 * gold_B[labelled].sum() / size[labelled].sum()
    expected += 0.5 * posterior_B[~labelled].sum() / size[~labelled].sum()
    weight = size.sum() / len(part)
    (report,), _ = trained(distiller(small.storage, run, folder=f"joint-{average}"))
    # Losses are reported as means per sentence.
    assert report.loss / weight == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0])
def test_the_share_of_labelled_text_is_that_of_what_is_drawn(alpha):
    draw = np.random.default_rng(0)
    lengths, languages = draw.integers(1, 20, 400), draw.choice(["en", "de", "nl"], 400, p=[0.7, 0.2, 0.1])
    labelled = draw.random(400) < np.where(languages == "en", 0.9, 0.2)
    part = SimpleNamespace(
        text=SimpleNamespace(lengths=lengths), languages=languages, labels=SimpleNamespace(labelled=labelled)
    )
    rows = np.arange(20, 400)
    for per_token in (False, True):
        size = lengths if per_token else np.ones(400)
        drawn = [
            rows[sample_by_language(languages[rows], alpha=alpha, seed=0, epoch=epoch)]
            for epoch in range(200)
        ]
        drawn_rows = np.concatenate(drawn)
        share = labelled_share(part, rows, per_token=per_token, alpha=alpha)
        assert share == pytest.approx(
            size[drawn_rows][labelled[drawn_rows]].sum() / size[drawn_rows].sum(), rel=0.02
        )


def test_a_stages_own_training_replaces_what_it_names(small):
    stage_training = {"learning_rate": 5e-3, "optimiser": "sgd", "batch_tokens": 100}
    run = student_of(
        small, stages=(GOLD, {**GOLD, "training": stage_training}), training={"gradient_clip": 3.0}
    )
    first, second = training_plan(small.storage.uri, run).stages
    assert (first.training.learning_rate, first.training.optimiser) == (1e-2, "adam")
    assert second.training == first.training.model_copy(update=stage_training)
    loop = distiller(small.storage, run, folder="training")
    reports, _ = trained(loop)
    assert [report.learning_rate for report in reports] == [1e-2, 1e-2, 5e-3, 5e-3]
    assert isinstance(loop._optimiser, torch.optim.SGD)
    assert len(opened(loop, 1)._batches(0)) > len(opened(loop, 0)._batches(0))


def test_selection_by_loss_is_on_text_that_is_not_trained_on(small):
    stage = {**POSTERIOR, "text": "all", "select": "loss", "held_out": 0.25, "schedule": {"epochs": 4}}
    run = student_of(small, stages=(stage,), training={"learning_rate": 0.3})
    loop = opened(distiller(small.storage, run, folder="by-loss"))
    rows, held_out = split_held_out(loop.data.rows, loop.stage)
    assert len(held_out) == round(0.25 * len(loop.data.rows))
    assert sorted([*rows, *held_out]) == loop.data.rows.tolist()
    assert np.sort(np.concatenate(loop._batches(0))).tolist() == rows.tolist()
    reports, weights = trained(loop)
    losses = [report.held_out_loss for report in reports]
    best = int(np.argmin(losses))
    assert best < 3, "the last epoch is the best one, so this shows nothing"
    assert same(weights_of(loop.model), weights[best])
    assert loop.progress.best_epoch == best
    # The loss is the objective's own, at λ = 1.
    data = opened(distiller(small.storage, run)).data
    batch = data.gather(held_out, torch.device("cpu"))
    loss_B = loop.loss(loop.model.eval()(batch.text), batch.targets, batch.teacher, kd_weight=1.0).total_B
    assert losses[best] == pytest.approx(float(loss_B.detach().mean()), rel=1e-4)
    second_run = student_of(small, stages=(stage,), training={"seed": 1})
    other_held_out = opened(distiller(small.storage, second_run))._held_out
    assert other_held_out.tolist() != held_out.tolist(), "the seed draws it"


def test_something_is_always_trained_on(small):
    (stage,) = training_plan(
        small.storage.uri, student_of(small, stages=({**GOLD, "select": "loss", "held_out": 0.99},))
    ).stages
    rows, held_out = split_held_out(np.arange(3), stage)
    assert (len(rows), len(held_out)) == (1, 2)


def test_an_objectives_own_parameters_are_trained_and_do_not_ship(small, monkeypatch):
    run = student_of(small, stages=({"objective": {"kind": "emission"}, "text": "labelled"}, GOLD))
    plan = training_plan(small.storage.uri, run)
    plan = replace(plan, stages=[with_projection(plan.stages[0]), *plan.stages[1:]])
    loop = opened(distiller(small.storage, run, folder="projected", plan=plan))
    drawn = weights_of(loop.loss)
    assert set(drawn) == {"losses.0.projection.weight", "losses.0.projection.bias"}
    assert same(drawn, weights_of(opened(distiller(small.storage, run, plan=plan)).loss)), (
        "the seed draws them"
    )
    close, weights = loop._close_stage_step, []
    loop._close_stage_step = lambda **options: (
        weights.append((loop.loss, weights_of(loop.loss))),
        close(**options),
    )
    reports, _ = trained(loop)
    assert reports[1].losses["projected"] < reports[0].losses["projected"]
    assert not any(torch.equal(weights[0][1][name], drawn[name]) for name in drawn)
    assert len(weights[1][1]) == 0, "the second stage has none"
    monkeypatch.setattr(module, "training_plan", lambda *_: plan)
    result = executed(small, run)
    shipped = load(small.storage.child(*run.folder).read(WEIGHTS))
    assert set(shipped) == set(build_model(small.storage, run).state_dict())
    assert result.epochs[0]["losses"]["projected"] > 0
