"""Graphs against the models that they are made from: of any shape, on any batch, ties included."""

import logging
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from raykd.errors import ExportError
from raykd.forms import SPANS, UTTERANCES
from raykd.layers.ensemble import Ensemble
from raykd.layers.graph import IR_VERSION, OPSET, Graph, graph_inputs, quiet_export
from raykd.layers.graph_viterbi import add_viterbi_to
from raykd.layers.tagger import Tagger, TaggerShape
from raykd.layers.transformer import Transformer
from raykd.structures import Chain, viterbi
from tests.layers.batches import CHARACTERS, PIECES, make_batch
from tests.layers.graphs import assert_same_as, session_of

sizes = st.fixed_dictionaries(
    {
        "tags": st.integers(1, 6),
        "embedding_dim": st.integers(1, 7),
        "hidden_dim": st.integers(1, 7),
        "layers": st.integers(1, 3),
        "projection": st.sampled_from([0, 5]),
        "decoder": st.sampled_from(["crf", "maxent"]),
        "unit": st.sampled_from(["word", "sentence"]),
    }
)
spelling = st.sampled_from([{}, {"characters": CHARACTERS.size, "character_dim": 3, "character_hidden": 2}])
encoders = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "size": st.sampled_from([3, 4, 6]),
            "layers": st.integers(1, 2),
            "feed_forward": st.integers(1, 8),
            "heads": st.just(1),
        }
    ),
    st.just({"size": 6, "layers": 2, "feed_forward": 5, "heads": 3}),
)
batches = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def random_tagger(seed, encoder=None, **shape):
    torch.manual_seed(seed)
    transformer = encoder and (lambda inputs: Transformer(inputs, **encoder))
    tagger = Tagger(TaggerShape(pieces=PIECES.size, **shape), encoder=transformer).eval()
    with torch.no_grad():
        for parameter in tagger.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return tagger


@settings(max_examples=60, deadline=None)
@given(sizes, encoders, spelling, st.booleans(), batches, st.integers(0, 99))
def test_any_tagger(shape, encoder, character_sizes, without_pieces, rows, seed):
    if character_sizes and without_pieces:
        shape = shape | {"embedding_dim": 0}
    tagger = random_tagger(seed, encoder, **shape, **character_sizes)
    assert_same_as(tagger, session_of(tagger.to_onnx()), make_batch(rows))


@settings(max_examples=30, deadline=None)
@given(sizes, batches, st.integers(0, 99))
def test_any_tagger_whose_labels_are_spans(shape, rows, seed):
    tags = SPANS.tag_set(["A", "B"]) if seed % 2 else UTTERANCES.tag_set(["A", "intent:x", "intent:y"])
    tagger = random_tagger(seed, **shape | {"tags": len(tags), "unit": "word"})
    tagger.legal = tags.legal()
    batch = make_batch(rows)
    assert_same_as(tagger, session_of(tagger.to_onnx()), batch)
    if shape["decoder"] == "maxent":
        inputs = graph_inputs(batch, ("pieces", "piece_lengths", "first", "lengths"))
        (labels_BT,) = session_of(tagger.to_onnx()).run(["labels"], inputs)
        for row, length in zip(labels_BT, batch.lengths_B.tolist(), strict=True):
            labels = tags.decode(row[:length])
            assert tags.form.read(tags.form.write(labels, tags.form.scheme), tags.form.scheme) == (labels, 0)


def viterbi_session(transitions, start, end):
    graph, float32 = Graph(), TensorProto.FLOAT
    labels = add_viterbi_to(graph, "emissions", "lengths", *map(graph.constant, (transitions, start, end)))
    inputs = {"emissions": (float32, ("B", "T", len(start))), "lengths": (TensorProto.INT64, ("B",))}
    built = graph.graph_proto("viterbi", inputs, {labels: (TensorProto.INT64, ("B", "T"))})
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from([1.0, 0.1, 1e-3]),
    st.integers(0, 999),
)
def test_of_equal_labellings_the_same_one(B, T, Y, unit, seed):
    """With scores from a few multiples of a unit, most sentences have several best labellings."""
    draw = torch.Generator().manual_seed(seed)

    def few(*shape):
        return torch.randint(-2, 3, shape, generator=draw) * unit

    emissions_BTY, transitions, start, end = few(B, T, Y), few(Y, Y), few(Y), few(Y)
    lengths_B = torch.randint(1, T + 1, (B,), generator=draw)
    expected_BT, _ = viterbi(Chain(emissions_BTY, lengths_B, transitions, start, end))
    session = viterbi_session(transitions, start, end)
    (labels_BT,) = session.run(None, {"emissions": emissions_BTY.numpy(), "lengths": lengths_B.numpy()})
    assert np.array_equal(labels_BT, expected_BT.numpy())


def test_spelling_that_the_batch_lacks_is_an_error():
    with pytest.raises(ValueError, match="reads characters, character_lengths, which the batch lacks"):
        graph_inputs(make_batch(characters=False))
    assert set(graph_inputs(make_batch(characters=False), ["pieces"])) == {"pieces"}


def test_what_has_no_graph_is_refused():
    tagger = random_tagger(0, tags=3, embedding_dim=2, hidden_dim=2)
    with pytest.raises(ExportError, match="it is the mean of several models; export one"):
        Ensemble([tagger], combine="scores").to_onnx()
    tagger.context = torch.nn.Identity()
    with pytest.raises(ExportError, match="reads frozen encoders"):
        tagger.to_onnx()


def test_libraries_are_silent_while_they_export(capfd):
    handlers = list(logging.root.handlers)
    with quiet_export():
        warnings.warn("of an exporter", stacklevel=1)
        logging.warning("of an exporter")
        logging.getLogger("torch.onnx").warning("of an exporter")
    assert logging.root.handlers == handlers
    assert capfd.readouterr() == ("", "")
    assert logging.root.manager.disable == logging.NOTSET
