"""A shape's cost: measured once for all runs that share the shape, and a function of the shape alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from raykd.cluster.connection import topology
from raykd.deploy.onnx_files import float32_file, onnx_files
from raykd.figures import figure_values
from raykd.figures.results import Cost
from raykd.figures.sizes import parameters
from raykd.figures.table import EXPORTED, PARAMETERS, SIZES
from raykd.precompute import latency, measurement, model_cost
from raykd.precompute.latency import synthetic_batch
from raykd.precompute.measurement import measure_shapes
from raykd.precompute.model_cost import find_cost, measure_cost
from raykd.precompute.processor import processor_name
from raykd.recipes.resources import Resources
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.store import Storage
from raykd.sweep.settings import joined_cost
from raykd.training.execute import build_model
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs, with_seed_offset
from tests.silent import Silent
from tests.training.small import recipe, student_of


@pytest.fixture
def timed(monkeypatch):
    """The exports and the models with timed batches, each once for each batch, with the threads of PyTorch."""
    calls = []
    for name in ("PASSES", "WARM_UP"):
        monkeypatch.setattr(latency, name, 1)
    honest, session = model_cost.labelling_call, model_cost.Session

    def noted(call, name):
        first = [True]
        return lambda *args: (
            first and first.pop() and calls.append((name, torch.get_num_threads())),
            call(*args),
        )

    class Noted(session):
        def __init__(self, file):
            super().__init__(file)
            self.labels = noted(super().labels, len(file))

    monkeypatch.setattr(
        model_cost, "labelling_call", lambda model, batch: noted(honest(model, batch), "torch")
    )
    monkeypatch.setattr(model_cost, "Session", Noted)
    return calls


def test_runs_of_one_shape_are_measured_once_by_what_ships(tmp_path, timed):
    run_recipe = recipe()
    preparation = prepare(run_recipe, Storage(str(tmp_path)))
    run, storage = student_of(preparation, run_recipe), preparation.storage
    assert find_cost(storage, run) is None
    threads = torch.get_num_threads()
    first = measure_cost(storage.uri, run)
    file = float32_file(build_model(storage, run, dropout=0.0).eval())
    assert timed == [(len(file), 1)], "of one session, whatever the batch"
    assert torch.get_num_threads() == threads
    longer = student_of(preparation, schedule={"epochs": 9})
    for second_run in (
        student_of(preparation, run_recipe.on_gold_labels()),
        with_seed_offset(run, 3),
        longer,
    ):
        assert second_run.id != run.id
        assert measure_cost(storage.uri, second_run) == first == find_cost(storage, second_run)
    assert len(timed) == 1
    model = build_model(storage, run)
    assert first["parameters"] == sum(p.numel() for p in model.parameters())
    assert (first["bytes"], first["bytes_torch"]) == (len(file), 4 * first["parameters"])
    assert 0 < first["latency_ms"] <= first["latency_ms_p90"]
    assert 0 < first["latency_ms_batch32"] <= first["latency_ms_batch32_p90"]
    assert not [
        name for name in first.figures if name.startswith("latency") and name.endswith(("int8", "torch"))
    ]


def test_other_forms_are_measured_where_they_are_asked_for(tmp_path, timed):
    preparation = prepare(recipe(), Storage(str(tmp_path)))
    run, storage = student_of(preparation), preparation.storage
    measure_cost(storage.uri, run)
    assert find_cost(storage, run, runtimes=["int8"]) is None
    both = measure_cost(storage.uri, run, ("int8", "torch"))
    assert both["bytes_int8"] == len(onnx_files(build_model(storage, run, dropout=0.0).eval()).int8)
    for name in ("latency_ms", "latency_ms_int8", "latency_ms_torch", "latency_ms_batch32_torch"):
        assert both[name] > 0
    assert find_cost(storage, run) == both, "what is known is not forgotten"


def test_where_a_size_is_new_stored_shapes_are_measured_again(tmp_path, timed, monkeypatch):
    preparation = prepare(recipe(), Storage(str(tmp_path)))
    run, storage = student_of(preparation), preparation.storage
    before = measure_cost(storage.uri, run)
    twice = replace(PARAMETERS, name="twice", of_shape=lambda shape: 2 * parameters(shape))
    for module in (figure_values, model_cost):
        monkeypatch.setattr(module, "SIZES", (*SIZES, twice))
    assert find_cost(storage, run) is None
    after = measure_cost(storage.uri, run)
    assert after["twice"] == 2 * before["parameters"]


@pytest.mark.parametrize(
    "student",
    [{"hidden_dim": 7}, {"decoder": "maxent"}, {"vocabulary": {"kind": "wordpiece", "size": 201}}],
    ids=str,
)
def test_another_shape_is_measured_anew(tmp_path, timed, student):
    storage = Storage(str(tmp_path))
    for run_recipe in (recipe(), recipe(student=student)):
        measure_cost(storage.uri, student_of(prepare(run_recipe, storage), run_recipe))
    assert len(timed) == 2
    assert len(storage.names("costs/")) == 4, "the sizes of each, and what was timed"


def test_a_student_that_reads_characters_is_measured_with_them(tmp_path, timed):
    run_recipe = recipe(student={"character_dim": 4, "character_hidden": 4})
    preparation = prepare(run_recipe, Storage(str(tmp_path)))
    run = student_of(preparation, run_recipe)
    plain = measure_cost(str(tmp_path), student_of(preparation))
    measured = measure_cost(str(tmp_path), run)
    assert measured.shape["characters"] > 0 == plain.shape["characters"]
    model = build_model(preparation.storage, run)
    assert measured["parameters"] == sum(p.numel() for p in model.parameters()) > plain["parameters"]


def test_a_teacher_that_reads_characters_is_measured_with_them(tmp_path, timed):
    preparation = prepare(recipe(), Storage(str(tmp_path)))
    measured = measure_cost(str(tmp_path), preparation.teachers[0].run)
    assert measured.shape["characters"] > 0
    vocabulary = open_vocabulary(preparation.storage, preparation.teachers[0].run.vocabulary_id)
    batch = synthetic_batch(3, vocabulary)
    assert batch.pieces_BP.shape == (3, 32)
    assert batch.characters_BTC is not None
    assert batch.characters_BTC.shape == (3, 24, 6)
    assert batch.first_BT[0].tolist() == sorted(set(batch.first_BT[0].tolist()))


def test_a_model_without_a_deployed_form_has_the_other_figures(tmp_path, timed):
    run_recipe = recipe(teachers={"count": 2})
    measured = measure_cost(str(tmp_path), prepare(run_recipe, Storage(str(tmp_path))).teachers[0].run)
    assert measured["parameters"] > 0
    assert not {figure.name for figure in EXPORTED} & measured.figures.keys()
    assert measured["latency_ms_torch"] > 0, "what is known of its speed"
    assert measured.no_export == "it is the mean of several models"
    assert find_cost(
        Storage(str(tmp_path)), prepare(run_recipe, Storage(str(tmp_path))).teachers[0].run, None, ["int8"]
    )


def test_one_student_per_language_costs_the_sum_in_size_and_the_mean_in_time(tmp_path, timed):
    run_recipe = recipe(student={"scope": "language"})
    preparation = prepare(run_recipe, Storage(str(tmp_path)))
    costs = [measure_cost(str(tmp_path), run) for run in student_runs(run_recipe, preparation)]
    assert len(costs) == 2
    both = joined_cost(costs)
    for name in ("parameters", "bytes"):
        assert both[name] == costs[0][name] + costs[1][name]
    assert both["latency_ms"] == pytest.approx((costs[0]["latency_ms"] + costs[1]["latency_ms"]) / 2)
    assert both.figures.keys() == costs[0].figures.keys()
    assert joined_cost(costs[:1]) == costs[0]
    assert Cost.from_plain(both.to_plain()) == both


class Counted(Silent):
    """Keeps the number of finished units at the beginning of a phase, and how often it advanced."""

    def __init__(self) -> None:
        self.began: list[tuple[int, int]] = []
        self.advanced = 0

    def begin(self, phase: str, total: int, *, done_before: int = 0) -> None:
        self.began.append((total, done_before))

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None:
        self.advanced += units


def test_shapes_are_measured_beside_slots_that_sleep_and_found_by_where_they_were_measured(
    full_ray_cluster, tmp_path, monkeypatch
):
    """Seen: a driver with another processor than its workers did not find what they had measured."""
    monkeypatch.setattr(latency, "processor_name", lambda: "the driver's")
    # What was timed while others worked would be timed again as soon as they do not.
    monkeypatch.setattr(measurement, "current_load", lambda: 1.0)
    preparation = prepare(recipe(), Storage(str(tmp_path)))
    runs = [preparation.teachers[0].run, student_of(preparation)]
    options = {"resources": Resources(), "cluster": replace(topology(), slots_asleep=True)}
    for began in ((2, 0), (2, 2)):
        listener = Counted()
        on = measure_shapes(str(tmp_path), runs, listener=listener, **options)
        assert on["processor"] == processor_name() != "the driver's"
        assert (listener.began, listener.advanced) == ([began], 2 - began[1])
    for run in runs:
        cost = find_cost(preparation.storage, run, on)
        assert cost is not None
        assert cost.hardware == on
        assert {"parameters", "bytes", "latency_ms"} <= cost.figures.keys()
        assert find_cost(preparation.storage, run) is None, "the driver's processor timed nothing"
