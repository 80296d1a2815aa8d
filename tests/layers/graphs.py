"""ONNX graphs run by ONNX Runtime, for the tests of models."""

import numpy as np
import onnx
import onnxruntime
import torch

from raykd.layers.graph import LABELS, SCORES, graph_inputs
from raykd.structures import viterbi


def session_of(model):
    """Return a session of a graph; the graph must pass ONNX's own check."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def assert_same_as(model, session, batch):
    """Compare the labels and scores of a graph with those of the model."""
    names = [graph_input.name for graph_input in session.get_inputs()]
    labels_BT, scores_BTY = session.run([LABELS, SCORES], graph_inputs(batch, names))
    with torch.inference_mode():
        output = model(batch)
    chain = output.distribution
    assert np.array_equal(labels_BT, viterbi(chain, output.legal)[0].numpy())
    mask_BT = chain.mask_BT.numpy()
    np.testing.assert_allclose(
        scores_BTY[mask_BT], chain.emissions_BTY.numpy()[mask_BT], atol=1e-3, rtol=1e-3
    )
