"""Several teachers per language: trained once each, averaged, evaluated and distilled from as one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raykd.layers.ensemble import Ensemble
from raykd.precompute import model_cost
from raykd.precompute.model_cost import measure_cost
from raykd.precompute.open_teacher import load_teacher
from raykd.recipes.recipe_faults import recipe_faults
from raykd.storage.store import Storage
from raykd.structures import token_marginals, viterbi
from raykd.training.execute import find_result, is_trained, load_model
from raykd.training.prepare import prepare
from tests.training.loops import stage_data
from tests.training.small import called_once, computed, executed, prepared, recipe, student_of, train_teachers

POSTERIOR = {"kind": "posterior"}


def several(combine="scores", **changes):
    return recipe(teachers={"count": 2, "combine": combine}, **changes)


@pytest.fixture(scope="module")
def ensembles(tmp_path_factory):
    """A store with two trained members per language, averaged in both ways."""
    return prepared(str(tmp_path_factory.mktemp("ensembles")), several(objective=POSTERIOR))


def test_members_are_the_teachers_of_one_seed_each(tmp_path):
    storage = Storage(str(tmp_path))
    alone = recipe()
    seeds = [
        recipe(teachers={"training": {**alone.teachers.training.model_dump(), "seed": i}}) for i in (0, 1)
    ]
    lone = [[teacher.run.id for teacher in prepare(run_recipe, storage).teachers] for run_recipe in seeds]
    both = [prepare(several(combine), storage).teachers for combine in ("scores", "posteriors")]
    for teachers in both:
        members = [tuple(run.id for run in teacher.run.members) for teacher in teachers]
        assert members == [*zip(*lone, strict=True)]
        assert [name for name, _ in teachers[0].members] == ["bilstm_crf en seed 0", "bilstm_crf en seed 1"]
        assert teachers[0].name == "bilstm_crf (mean of 2) en"
        assert not is_trained(teachers[0].run)
    ids = {teacher.run.id for teachers in both for teacher in teachers}
    assert len(ids) == 4
    assert not ids & {run for pair in lone for run in pair}


@pytest.mark.parametrize("combine", ["scores", "posteriors"])
def test_a_student_is_distilled_from_the_mean_of_its_teachers(ensembles, combine):
    run_recipe = several(combine, objective=POSTERIOR)
    ready = prepare(run_recipe, ensembles.storage)
    train_teachers(ready)
    computed(ready, run_recipe)
    storage, teacher = ready.storage, ready.teachers[0]
    run = student_of(ready, run_recipe)
    data = stage_data(storage, run)
    rows = np.flatnonzero(np.isin(data.part.languages, teacher.languages))[:5]
    signals = data.gather(rows, torch.device("cpu")).teacher
    members = [load_model(storage, member) for member in teacher.run.members]
    tokens = ready.corpus.parts["train"]["tokens"].take(rows).to_pylist()
    vocabulary = load_teacher(storage, teacher.run.id)._vocabulary
    batch = vocabulary.encode(tokens).gather(np.arange(5))
    with torch.inference_mode():
        mean = Ensemble(members, combine=combine)(batch).distribution
        expected_BTY, best_BT = token_marginals(mean), viterbi(mean)[0]
    chain = signals.chain if combine == "scores" else signals.marginals
    assert (signals.chain is None) == (combine == "posteriors")
    mask_BT = chain.mask_BT
    torch.testing.assert_close(token_marginals(chain)[mask_BT], expected_BTY[mask_BT], rtol=0, atol=2e-3)
    assert torch.equal(signals.paths_BKT[:, 0][mask_BT], best_BT[mask_BT])
    assert len(executed(ready, run).epochs) == 2


def test_an_ensemble_is_scored_by_itself_and_trains_nothing(ensembles):
    ready = ensembles
    for teacher in ready.teachers:
        result = find_result(ready.storage, teacher.run)
        members = [find_result(ready.storage, run) for run in teacher.run.members]
        assert result.epochs == ()
        assert result.parameters == sum(member.parameters for member in members)
        assert set(result.scores.by_language("dev")) == set(teacher.languages)
        assert result.weights_sha256 not in {member.weights_sha256 for member in members}
        assert not ready.storage.child(*teacher.run.folder).exists("model.safetensors")
        # Found again, also in another process.
        assert executed(ready, teacher.run) == result


def test_it_costs_what_all_its_members_cost(tmp_path, monkeypatch):
    monkeypatch.setattr(model_cost, "time_in_turns", called_once)
    storage = Storage(str(tmp_path))
    single, double = (
        measure_cost(storage.uri, prepare(r, storage).teachers[0].run) for r in (recipe(), several())
    )
    assert double["parameters"] == 2 * single["parameters"]
    assert double.no_export == "it is the mean of several models"
    assert ("latency_ms" in single.figures, "latency_ms_torch" in double.figures) == (True, True)
    assert double.shape["models"] == 2 * single.shape["models"]


@pytest.mark.parametrize(
    ("objective", "decoder", "message"),
    [
        ({"kind": "structural"}, "crf", "give the student decoder: maxent; or set teachers.combine: scores"),
        ({"kind": "top_k", "k": 3}, "crf", "set k: 1"),
        ({"kind": "posterior"}, "crf", None),
        ({"kind": "structural"}, "maxent", None),
    ],
)
def test_a_mixture_is_no_chain(objective, decoder, message):
    run_recipe = several("posteriors", objective=objective, student={"decoder": decoder})
    faults = recipe_faults(run_recipe)
    assert not faults if message is None else message in faults[0][1]
    assert not recipe_faults(several("scores", objective=objective, student={"decoder": decoder}))


def test_ensembles_of_other_seeds_share_members(tmp_path):
    storage, training = Storage(str(tmp_path)), recipe().teachers.training.model_dump()
    run, later = (
        prepare(recipe(teachers={"count": 2, "training": {**training, "seed": seed}}), storage)
        .teachers[0]
        .run
        for seed in (0, 1)
    )
    assert later.members[0].id == run.members[1].id
    assert later.id != run.id
