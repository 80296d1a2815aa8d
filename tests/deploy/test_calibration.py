"""The temperature of a model: against a grid, on models that are too sure by a known factor, and in an export."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import raykd
from raykd.corpora.encoded_text import TokenBatch
from raykd.deploy.calibration import HIGHEST, _least, calibrate
from raykd.deploy.export import export_run
from raykd.layers.model import Model, Output
from raykd.storage.store import Storage
from raykd.structures import Chain
from raykd.training.data import encoded_part
from raykd.training.load import load_tagger
from raykd.training.prepare import Preparation
from tests.training.small import executed, prepared, recipe, student_of

GOLD = {"objective": {"kind": "gold"}, "schedule": {"epochs": 3}}


@pytest.fixture(scope="module", params=["crf", "maxent"])
def trained(request, tmp_path_factory):
    """The store of a trained student, and its run."""
    run_recipe = recipe(student={"decoder": request.param}, teachers={"kind": "none"}, **GOLD)
    ready = prepared(str(tmp_path_factory.mktemp("calibration") / "store"), run_recipe)
    run = student_of(ready, run_recipe)
    executed(ready, run)
    return ready, run


class Scaled(Model):
    """A model with all scores multiplied by a factor."""

    def __init__(self, model: Model, factor: float):
        super().__init__()
        self.inner, self.factor, self.legal = model, factor, model.legal

    def forward(self, batch: TokenBatch, **requests: object) -> Output:
        output = self.inner(batch)
        assert isinstance(output.distribution, Chain)
        return replace(output, distribution=output.distribution.map(lambda scores: scores * self.factor))


def dev_of(ready: Preparation, run):
    return encoded_part(ready.storage.uri, run, "dev")


def test_a_model_that_is_too_sure_by_a_factor_gets_this_factor(trained):
    ready, run = trained
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    dev = dev_of(ready, run)
    plain = calibrate(tagger, dev)
    tagger.model = Scaled(tagger.model, 3.0).eval()
    sharper = calibrate(tagger, dev)
    assert sharper.temperature == pytest.approx(min(3 * plain.temperature, HIGHEST), rel=0.02)
    assert sharper.after == pytest.approx(plain.after, rel=1e-3)
    assert plain.after <= plain.before
    assert sharper.before > sharper.after
    assert plain.sentences == len(dev)


def test_the_export_carries_it_and_its_probabilities_are_legal(trained, tmp_path):
    ready, run = trained
    export_run(ready.storage.child(*run.folder), Storage(str(tmp_path)), store=ready.storage)
    card = json.loads((tmp_path / "export.json").read_text())
    label = raykd.load(tmp_path)
    assert label.temperature == card["calibration"]["temperature"]
    words = [["Ada", "lives", "in", "Paris", "."], ["Berlin"]]
    for sentence, probabilities_TY in zip(words, label.probabilities(words), strict=True):
        assert probabilities_TY.sum(1) == pytest.approx(1.0)
        inside = [place for place, name in enumerate(label.labels) if name[0] in "IE"]
        assert probabilities_TY[0, inside] == pytest.approx(0)
        assert len(probabilities_TY) == len(sentence)
    (answer,) = label.answers(words[:1], 1)
    assert (answer.lattice(0.1).marginals().max(1) >= label.probabilities(words[:1])[0].max(1) - 1e-9).all()

    export_run(ready.storage.child(*run.folder), Storage(str(tmp_path / "apart")))
    assert "calibration" not in json.loads((tmp_path / "apart/export.json").read_text())
    assert raykd.load(tmp_path / "apart").temperature == 1.0


@pytest.mark.parametrize("least", [0.26, 0.7, 1.0, 3.3, 9.0])
def test_the_least_loss_is_found(least):
    assert _least(lambda temperature: (1 / temperature - 1 / least) ** 2) == pytest.approx(least, rel=1e-3)
