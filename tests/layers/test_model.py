import pytest
import torch
from torch import nn

from raykd.errors import StoreError
from raykd.layers.model import load_weights, save_weights


def make_model(seed=0, size=3):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"lstm": nn.LSTM(2, size, bidirectional=True), "norm": nn.BatchNorm1d(size)})
    model["tied"] = model["norm"]
    return model


def test_weights_come_back_exactly():
    trained, fresh = make_model(0), make_model(1)
    load_weights(fresh, save_weights(trained))
    assert all(
        torch.equal(a, b)
        for a, b in zip(trained.state_dict().values(), fresh.state_dict().values(), strict=True)
    )
    assert save_weights(fresh) == save_weights(trained)


def test_damaged_bytes_are_refused():
    with pytest.raises(StoreError, match="damaged"):
        load_weights(make_model(), save_weights(make_model())[:-5])


def test_another_shape_is_refused_by_name():
    with pytest.raises(StoreError, match=r"the first is lstm\.bias_hh_l0: stored \(16,\), model \(12,\)"):
        load_weights(make_model(size=3), save_weights(make_model(size=4)))


def test_another_models_weights_are_refused():
    with pytest.raises(StoreError, match=r"the first is bias: stored \(2,\), model None"):
        load_weights(make_model(), save_weights(nn.Linear(2, 2)))
