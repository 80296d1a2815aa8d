"""The files of a model: what they hold, how near their labels are, and what is refused."""

import numpy as np
import onnx
import pytest
import torch

from raykd.deploy import onnx_files as module
from raykd.deploy.onnx_files import Session, onnx_files
from raykd.errors import ExportError
from raykd.layers.ensemble import Ensemble
from raykd.layers.tagger import Tagger, TaggerShape
from raykd.structures import viterbi
from tests.layers.batches import CHARACTERS, PIECES, make_batch

SPELLING = {"characters": CHARACTERS.size, "character_dim": 4, "character_hidden": 3}


@pytest.fixture(scope="module")
def tagger():
    torch.manual_seed(0)
    shape = TaggerShape(
        pieces=PIECES.size, tags=5, embedding_dim=32, hidden_dim=32, projection=48, **SPELLING
    )
    tagger = Tagger(shape).eval()
    with torch.no_grad():
        tagger.head.emissions.weight.mul_(20)  # labels of an untrained model are ties, nearly
    return tagger


@pytest.fixture(scope="module")
def files(tagger):
    return onnx_files(tagger)


def test_both_files_label_a_batch(tagger, files):
    batch = make_batch()
    with torch.inference_mode():
        labels_BT = viterbi(tagger(batch).distribution)[0].numpy()
    assert np.array_equal(Session(files.float32).labels(batch), labels_BT)
    rounded_BT = Session(files.int8).labels(batch)
    assert rounded_BT.shape == labels_BT.shape
    assert (rounded_BT == labels_BT).mean() > 0.9


def test_every_matrix_is_stored_in_8_bits(tagger, files):
    weights = onnx.load_from_string(files.int8).graph.initializer
    whole = [
        tensor
        for tensor in weights
        if tensor.data_type == onnx.TensorProto.FLOAT and "scale" not in tensor.name
    ]
    biases = 2 * 8 * 32 + 2 * 8 * 3 + 48 + 5  # two LSTMs of two directions, and two linear layers
    assert sum(np.prod(tensor.dims) for tensor in whole) == biases + 5 * 5 + 2 * 5 + 1, "transitions, a zero"
    matrices = sum(tensor.numel() for tensor in tagger.parameters() if tensor.dim() > 1) - 5 * 5
    stored = [
        tensor for tensor in weights if tensor.data_type in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
    ]
    assert sum(np.prod(tensor.dims) for tensor in stored if "quantized" in tensor.name) == matrices
    assert len(files.int8) < len(files.float32) / 2


def test_the_same_model_gives_the_same_files(tagger, files):
    assert onnx_files(tagger) == files


def test_a_batch_without_the_spelling_that_is_read_is_refused(files):
    with pytest.raises(ValueError, match="reads characters"):
        Session(files.float32).labels(make_batch(characters=False))


def test_what_one_file_cannot_hold_is_refused(tagger, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 1000)
    with pytest.raises(ExportError, match=r"the weights are 0\.0 GiB, and one ONNX file holds at most 2"):
        onnx_files(tagger)


def test_several_models_have_no_file(tagger):
    with pytest.raises(ExportError, match="export one of its members"):
        onnx_files(Ensemble([tagger, tagger], combine="scores"))
