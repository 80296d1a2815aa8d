"""What one step of the training loop optimises: references, λ, the mean, precision and the plan of an epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from raykd.errors import RunError
from raykd.runs.data import TrainingData, corpus_of, training_data
from raykd.runs.distil import Worker
from raykd.runs.execute import execute, needs_of
from raykd.runs.prepare import student_run
from raykd.runs.teachers import load_teacher
from raykd.structures import Chain, viterbi
from tests.runs.loops import distiller, weights_of
from tests.runs.small import prepared, recipe

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A prepared store that also holds three best paths."""
    folder = str(tmp_path_factory.mktemp("distil") / "store")
    return prepared(folder, recipe(), recipe(objective={"kind": "top_wk", "k": 3}))


def run_of(small, **changes):
    return student_run(recipe(**changes), small)


def first_gradient(loop) -> torch.Tensor:
    """The gradient of the first step."""
    found = []

    def watch(optimiser, args, kwargs):
        found.append(torch.cat([p.grad.flatten() for g in optimiser.param_groups for p in g["params"]]))

    watching = register_optimizer_step_pre_hook(watch)
    try:
        loop.train(lambda _: None)
    finally:
        watching.remove()
    return found[0]


def best_path(small, language: str, words: list[str]) -> list[int]:
    """The path that the language's teacher likes best, asked of the teacher itself."""
    (planned,) = (teacher for teacher in small.teachers if teacher.languages == (language,))
    teacher = load_teacher(small.storage, planned.run.id)
    (emissions_TY,) = teacher.emit([words], 1000)
    parts = [torch.from_numpy(part) for part in teacher.transitions]
    chain = Chain(torch.from_numpy(emissions_TY)[None], torch.tensor([len(words)]), *parts)
    return viterbi(chain)[0][0].tolist()


@pytest.mark.parametrize("objective", [{"kind": "structural"}, {"kind": "top_wk", "k": 3}, {"kind": "top_1"}])
def test_gold_tags_are_the_reference_and_where_there_are_none_the_teachers_best_path(small, objective):
    run = run_of(small, objective=objective)
    data = training_data(small.storage.uri, run, needs_of(run), verify=True)
    parts = corpus_of(small.storage.uri, run.corpus_id).parts
    labelled = parts["train"].num_rows
    assert len(data.part) == labelled + parts["unlabelled"].num_rows
    rows = np.array([labelled - 1, labelled, 0, len(data.part) - 1, labelled + 3])
    batch = data.gather(rows, CPU)
    for row, path, length in zip(rows, batch.reference_BT.tolist(), batch.text.lengths_B, strict=True):
        if row < labelled:
            expected = parts["train"]["tags"][int(row)].as_py()
        else:
            sentence = parts["unlabelled"].slice(row - labelled, 1).to_pylist()[0]
            expected = best_path(small, sentence["language"], sentence["tokens"])
        assert path[:length] == expected


def test_lambda_falls_as_scheduled_and_weighs_the_two_losses(small):
    schedule = {"epochs": 5, "anneal_rate": 1.5, "anneal_horizon": 5}
    reports = []
    distiller(small.storage, run_of(small, schedule=schedule), folder="lambda").train(reports.append)
    assert [report.kd_weight for report in reports] == pytest.approx([1.0, 0.7, 0.4, 0.1, 0.0])
    for report in reports:
        mixed = report.kd_weight * report.kd_loss + (1 - report.kd_weight) * report.gold_loss
        assert report.loss == pytest.approx(mixed, rel=1e-5)
    assert reports[-1].kd_loss == 0.0
    assert all(report.kd_loss > 0 for report in reports[:-1])


def test_gold_alone_has_no_lambda_and_no_unlabelled_text(small):
    run = run_of(small, objective={"kind": "gold"})
    loop, reports = distiller(small.storage, run, folder="gold"), []
    loop.train(reports.append)
    assert {report.kd_weight for report in reports} == {0.0}
    assert [report.loss for report in reports] == [report.gold_loss for report in reports]
    assert len(loop.data.part) == corpus_of(small.storage.uri, run.corpus_id).parts["train"].num_rows


def test_top_1_is_gold_where_there_is_gold_and_the_teachers_best_path_elsewhere_at_no_lambda(small):
    run = run_of(small, objective={"kind": "top_1"})
    loop, reports = distiller(small.storage, run, folder="top_1"), []
    loop.train(reports.append)
    assert {report.kd_weight for report in reports} == {0.0}
    assert [report.loss for report in reports] == [report.gold_loss for report in reports]
    parts = corpus_of(small.storage.uri, run.corpus_id).parts
    assert len(loop.data.part) == parts["train"].num_rows + parts["unlabelled"].num_rows
    rates = [
        run_of(small, objective={"kind": "top_1"}, schedule={"anneal_rate": rate}) for rate in (0.5, 1.5)
    ]
    assert {each.id for each in rates} == {run.id}


def test_the_mean_over_tokens_is_the_mean_over_sentences_scaled(small):
    def of(per):
        training = {"loss_average": per, "optimiser": "sgd", "gradient_clip": 1e9, "dropout": 0.0}
        run = run_of(small, training=training, schedule={"epochs": 1})
        return distiller(small.storage, run, folder=f"per-{per}", double=True)

    loop = of("sentence")
    rows = loop._plan(0)[0]
    factor = len(rows) / loop.data.part.text.lengths[rows].sum()
    assert 0 < factor < 0.5
    torch.testing.assert_close(first_gradient(of("token")), factor * first_gradient(loop))


@pytest.mark.parametrize("precision", ["bf16"])
def test_mixed_precision_trains_on_the_cpu(small, precision):
    losses = {}
    for name in ("float32", precision):
        training = {"precision": name, "dropout": 0.0}
        reports = []
        loop = distiller(
            small.storage, run_of(small, training=training, schedule={"epochs": 4}), folder=f"in-{name}"
        )
        loop.train(reports.append)
        losses[name] = [report.gold_loss for report in reports]
        assert {weight.dtype for weight in weights_of(loop.model).values()} == {torch.float32}
    assert losses[precision] != losses["float32"], "nothing was computed in half precision"
    assert losses[precision] == pytest.approx(losses["float32"], rel=0.05)
    assert losses[precision][-1] < 0.8 * losses[precision][0]


class Witness(TrainingData):
    """Writes down which sentences are trained on."""

    def gather(self, rows, device):
        self.rows = [*getattr(self, "rows", []), *rows.tolist()]
        return super().gather(rows, device)


def languages_trained_on(loop) -> list[list[str]]:
    """Languages of the sentences of each epoch."""
    loop.data = Witness(loop.data.part, loop.data._transfer)
    epochs = []

    def close(_):
        epochs.append(sorted(loop.data.part.languages[loop.data.rows].tolist()))
        loop.data.rows = []

    loop.train(close)
    return epochs


def test_an_epoch_takes_every_sentence_once_or_a_smoothed_sample_of_languages(tmp_path):
    corpus = {"cap": {"en": 18, "de": 4}, "unlabelled": 0}
    objective = {"kind": "gold"}
    whole, smoothed = (
        recipe(corpus={**corpus, "sampling_alpha": alpha}, objective=objective) for alpha in (1.0, 0.0)
    )
    small = prepared(str(tmp_path / "store"), whole)
    for asked, expected in ((whole, ["de"] * 4 + ["en"] * 18), (smoothed, ["de"] * 11 + ["en"] * 11)):
        run = student_run(asked, small)
        assert languages_trained_on(distiller(small.storage, run, folder=run.id)) == [expected] * 2


def test_a_gradient_that_is_not_finite_is_told_with_its_place_and_mend(small):
    run = run_of(small, training={"learning_rate": 1e37})
    with pytest.raises(RunError, match=r"epoch 0, step \d+: .* lower training\.learning_rate \(now 1e\+37\)"):
        execute(small.storage.uri, run, worker=Worker(), report=lambda _: None)
