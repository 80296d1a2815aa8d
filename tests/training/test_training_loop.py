"""The loss optimised by one step of the training loop: labels, λ, the mean, precision and the plan of an epoch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

from raykd.errors import RunError
from raykd.precompute.open_teacher import load_teacher
from raykd.storage.store import Storage
from raykd.structures import log_partition, score, viterbi
from raykd.training.data import cached_corpus
from raykd.training.prepare import prepare
from tests.training.loops import distiller, first_batches, opened, same, stage_data, weights_of
from tests.training.small import executed, recipe, student_of

CPU = torch.device("cpu")


def first_gradient(loop) -> torch.Tensor:
    """The gradient of the first step."""
    collected = []

    def watch(optimiser, args, kwargs):
        collected.append(torch.cat([p.grad.flatten() for g in optimiser.param_groups for p in g["params"]]))

    watching = register_optimizer_step_pre_hook(watch)
    try:
        loop.train(lambda _: None)
    finally:
        watching.remove()
    return collected[0]


def best_path(small, language: str, words: list[str]) -> list[int]:
    """The best path of the language's teacher, asked of the teacher itself."""
    (planned,) = (teacher for teacher in small.teachers if teacher.languages == (language,))
    ((_, _, output),) = load_teacher(small.storage, planned.run.id).outputs([words], 1000)
    return viterbi(output.distribution, output.legal)[0][0].tolist()


@pytest.mark.parametrize("objective", [{"kind": "structural"}, {"kind": "top_wk", "k": 3}, {"kind": "top_1"}])
def test_labels_are_gold_and_where_there_are_none_the_teachers_best_path(small, objective):
    run = student_of(small, objective=objective)
    data = stage_data(small.storage, run)
    parts = cached_corpus(small.storage.uri, run.corpus_id).parts
    labelled = parts["train"].num_rows
    assert len(data.part) == len(data.rows) == labelled + parts["unlabelled"].num_rows
    rows = np.array([labelled - 1, labelled, 0, len(data.part) - 1, labelled + 3])
    batch = data.gather(rows, CPU)
    assert batch.targets.labelled_B.tolist() == [row < labelled for row in rows]
    expected = []
    for place, (row, length) in enumerate(zip(rows, batch.text.lengths_B, strict=True)):
        if row < labelled:
            expected.append(parts["train"]["tags"][int(row)].as_py())
            assert batch.targets.tags_BT[place, :length].tolist() == expected[-1]
        else:
            sentence = parts["unlabelled"].slice(row - labelled, 1).to_pylist()[0]
            expected.append(best_path(small, sentence["language"], sentence["tokens"]))
            assert batch.teacher.paths_BKT[place, 0, :length].tolist() == expected[-1]
    # The loss of labels is that of these paths.
    loop = opened(distiller(small.storage, run))
    output = loop.model.eval()(batch.text)
    parts_B = loop.loss(output, batch.targets, batch.teacher, kd_weight=0.5).parts
    labels_BT = torch.zeros_like(batch.text.first_BT)
    for place, path in enumerate(expected):
        labels_BT[place, : len(path)] = torch.tensor(path)
    likelihood_B = log_partition(output.distribution) - score(output.distribution, labels_BT)
    torch.testing.assert_close(parts_B["top_1"], likelihood_B)


def test_lambda_falls_as_scheduled_and_weighs_the_two_losses(small):
    schedule = {"epochs": 5, "anneal_rate": 1.5, "anneal_horizon": 5}
    run = student_of(small, schedule=schedule, objective={"kind": "posterior"})
    reports = []
    distiller(small.storage, run, folder="lambda").train(reports.append)
    assert [report.kd_weight for report in reports] == pytest.approx([1.0, 0.7, 0.4, 0.1, 0.0])
    for report in reports:
        mixed = report.kd_weight * report.losses.get("posterior", 0.0)
        mixed += (1 - report.kd_weight) * report.losses["top_1"]
        assert report.loss == pytest.approx(mixed, rel=1e-5)
    assert [set(report.losses) for report in reports] == [{"posterior", "top_1"}] * 4 + [{"top_1"}]
    assert all(report.losses["posterior"] > 0 for report in reports[:-1])


def test_gold_alone_has_no_lambda_and_no_unlabelled_text(small):
    run = student_of(small, objective={"kind": "gold"})
    loop, reports = distiller(small.storage, run, folder="gold"), []
    loop.train(reports.append)
    assert {report.kd_weight for report in reports} == {0.0}
    assert [dict(report.losses) for report in reports] == [{"gold": report.loss} for report in reports]
    assert len(loop.data.part) == cached_corpus(small.storage.uri, run.corpus_id).parts["train"].num_rows


def test_top_1_is_trained_on_all_text_at_no_lambda(small):
    run = student_of(small, objective={"kind": "top_1"})
    loop, reports = distiller(small.storage, run, folder="top_1"), []
    loop.train(reports.append)
    assert {report.kd_weight for report in reports} == {0.0}
    assert [dict(report.losses) for report in reports] == [{"top_1": report.loss} for report in reports]
    parts = cached_corpus(small.storage.uri, run.corpus_id).parts
    assert len(loop.data.part) == parts["train"].num_rows + parts["unlabelled"].num_rows
    rates = [
        student_of(small, objective={"kind": "top_1"}, schedule={"anneal_rate": rate}) for rate in (0.5, 1.5)
    ]
    assert {rate.id for rate in rates} == {run.id}


def test_the_mean_over_tokens_is_the_mean_over_sentences_scaled(small):
    def of(average):
        training = {"loss_average": average, "optimiser": "sgd", "gradient_clip": 1e9, "dropout": 0.0}
        run = student_of(small, training=training, schedule={"epochs": 1}, objective={"kind": "gold"})
        return distiller(small.storage, run, folder=f"per-{average}", double=True)

    loop = of("sentence")
    rows = first_batches(loop)[0]
    factor = len(rows) / loop.data.part.text.lengths[rows].sum()
    assert 0 < factor < 0.5
    torch.testing.assert_close(first_gradient(of("token")), factor * first_gradient(loop))


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        ({"kind": "posterior"}, "top_1"),
        ({"kind": "logits", "head": "own"}, "logits"),
        ({"kind": "representation", "layer": 1}, "representation"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mixed_precision_trains_on_the_cpu(small, objective, loss):
    precision = "bf16"
    losses = {}
    for name in ("float32", precision):
        training = {"precision": name, "dropout": 0.0}
        reports = []
        run = student_of(small, training=training, schedule={"epochs": 4}, objective=objective)
        loop = distiller(small.storage, run, folder=f"{loss}-in-{name}")
        loop.train(reports.append)
        losses[name] = [report.losses[loss] for report in reports]
        assert {weight.dtype for weight in weights_of(loop.model).values()} == {torch.float32}
    if "AVX512" in torch.backends.cpu.get_cpu_capability():  # elsewhere an LSTM is computed in float32
        assert losses[precision] != losses["float32"], "nothing was computed in half precision"
    assert losses[precision] == pytest.approx(losses["float32"], rel=0.05)
    assert losses[precision][-1] < losses[precision][0]


def languages_trained_on(loop) -> list[list[str]]:
    """Languages of the sentences by epoch."""
    calls, gather, epochs = [], opened(loop).data.gather, []

    def watched(rows, device):
        calls.extend(rows.tolist())
        return gather(rows, device)

    def close(_):
        epochs.append(sorted(loop.data.part.languages[calls].tolist()))
        calls.clear()

    loop.plan.stages[0] = replace(loop.plan.stages[0], data=lambda: loop.data)
    loop.data.gather = watched
    loop.train(close)
    return epochs


def test_an_epoch_takes_every_sentence_once_or_a_smoothed_sample_of_languages(tmp_path):
    corpus = {"cap": {"en": 18, "de": 4}, "unlabelled": 0}
    objective = {"kind": "gold"}
    whole, smoothed = (
        recipe(corpus={**corpus, "sampling_alpha": alpha}, objective=objective) for alpha in (1.0, 0.0)
    )
    small = prepare(whole, Storage(str(tmp_path / "store")))
    for run_of_languages, expected in (
        (whole, ["de"] * 4 + ["en"] * 18),
        (smoothed, ["de"] * 11 + ["en"] * 11),
    ):
        run = student_of(small, run_of_languages)
        assert languages_trained_on(distiller(small.storage, run, folder=run.id)) == [expected] * 2


def test_a_gradient_that_is_not_finite_is_refused_with_its_place_and_a_hint(small):
    run = student_of(small, training={"learning_rate": 1e37})
    with pytest.raises(
        RunError, match=r"epoch 0, batch \d+: .* lower training\.learning_rate \(now 1e\+37\)"
    ):
        executed(small, run)


def test_a_process_group_of_one_trains_as_one_without_a_group(small, tmp_path):
    """Under Ray Train a single worker has a group, and goes the way of several."""
    run = student_of(small, objective={"kind": "structural"})
    alone = distiller(small.storage, run, folder="without a group")
    expected = alone.train(lambda _: None)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        loop = distiller(small.storage, run, folder="a group of one")
        progress = loop.train(lambda _: None)
    finally:
        dist.destroy_process_group()
    assert isinstance(loop._learner, DistributedDataParallel)
    assert same(weights_of(loop.model), weights_of(alone.model))
    assert [epoch["loss"] for epoch in progress.history] == [epoch["loss"] for epoch in expected.history]
