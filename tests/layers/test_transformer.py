"""The Transformer encoder against the layers of torch, and its positions against their definition."""

import math

import pytest
import torch
from torch import nn

from raykd.layers.transformer import EncoderLayer, Positions, Transformer


def make(inputs=12, size=12, **settings):
    torch.manual_seed(0)
    return Transformer(inputs, size, **{"layers": 2, "heads": 3, "feed_forward": 20, **settings})


def torch_layer(layer: EncoderLayer, size: int) -> nn.TransformerEncoderLayer:
    """Return PyTorch's layer with the same weights."""
    inner = layer.inner.out_features
    reference = nn.TransformerEncoderLayer(
        size, layer.heads, inner, dropout=0.0, activation="gelu", batch_first=True, dtype=torch.float64
    )
    counterparts = {
        "self_attn.in_proj": layer.queries_keys_values, "self_attn.out_proj": layer.output,
        "linear1": layer.inner, "linear2": layer.outer, "norm1": layer.attention_norm, "norm2": layer.norm,
    }  # fmt: skip
    reference.load_state_dict(
        {
            f"{name}{'_' if name.endswith('in_proj') else '.'}{part}": getattr(module, part)
            for name, module in counterparts.items()
            for part in ("weight", "bias")
        }
    )
    return reference


@pytest.mark.parametrize("lengths", [(4, 1, 3), (4, 4), (1,)])
def test_outputs_and_gradients_are_those_of_torchs_layers(lengths):
    model = make().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    torch_layers = [torch_layer(layer, 12) for layer in model.layers]
    lengths_B = torch.tensor(lengths)
    padding_BT = torch.arange(max(lengths)) >= lengths_B[:, None]
    inputs_BTD = torch.randn(len(lengths), max(lengths), 12, dtype=torch.float64)
    weight_BTD = torch.randn_like(inputs_BTD).masked_fill(padding_BT[:, :, None], 0.0)

    def reference(vectors_BTD):
        states_BTD = model.norm(vectors_BTD) + model.positions(max(lengths))
        for layer in torch_layers:
            states_BTD = layer(states_BTD, src_key_padding_mask=padding_BT)
        return states_BTD

    results = []
    for run in (lambda x: model(x, lengths_B), reference):
        leaf_BTD = inputs_BTD.clone().requires_grad_()
        output_BTD = run(leaf_BTD)
        (output_BTD * weight_BTD).sum().backward()
        results.append((output_BTD[~padding_BT], leaf_BTD.grad))
    torch.testing.assert_close(results[0], results[1])


def test_what_stands_on_padding_is_never_read():
    model, lengths_B = make(), torch.tensor([2, 4])
    inputs_BTD = torch.randn(2, 4, 12)
    disturbed_BTD = inputs_BTD.clone()
    disturbed_BTD[0, 2:] = 1e4
    output, disturbed = model(inputs_BTD, lengths_B), model(disturbed_BTD, lengths_B)
    assert torch.equal(output[0, :2], disturbed[0, :2])
    assert torch.equal(output[1], disturbed[1])
    single = model(inputs_BTD[:1, :2], lengths_B[:1])
    torch.testing.assert_close(single, output[:1, :2])
    states = model.states(inputs_BTD, lengths_B)
    mean_BTD = model.sentence_state(states[-1], lengths_B)
    torch.testing.assert_close(mean_BTD[0, 0], states[-1][0, :2].mean(0))


@pytest.mark.parametrize("size", [6, 7])
def test_positions_are_sines_and_cosines(size):
    positions_TE = Positions(size)(1500)
    for time in (0, 1, 37, 1499):
        for place in range(size):
            angle = time / 10_000 ** (2 * (place // 2) / size)
            expected = (math.cos if place % 2 else math.sin)(angle)
            assert float(positions_TE[time, place]) == pytest.approx(expected, abs=2e-4)
    assert not Positions(size).state_dict()


def test_the_order_of_words_is_read_and_the_scale_of_vectors_is_not():
    model, lengths_B = make(), torch.tensor([3])
    inputs_BTD = torch.randn(1, 3, 12)
    forward, backward = model(inputs_BTD, lengths_B), model(inputs_BTD.flip(1), lengths_B)
    assert not torch.allclose(forward.flip(1), backward, atol=0.1)
    torch.testing.assert_close(model(100 * inputs_BTD, lengths_B), forward, rtol=1e-3, atol=1e-3)


def test_inputs_of_another_size_are_projected():
    model = make(inputs=5)
    states = model.states(torch.randn(2, 4, 5), torch.tensor([4, 2]))
    assert [state.shape[2] for state in states] == [5, 12, 12]
    assert (model.input_size, model.output_size, model.depth) == (5, 12, 2)
    size = {name.partition(".")[0] for name, _ in make().named_parameters()}
    assert size == {"norm", "layers"}


def test_half_precision_gives_nearly_the_same():
    model, lengths_B = make(), torch.tensor([3, 2])
    inputs_BTD = torch.randn(2, 3, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model(inputs_BTD, lengths_B)
    torch.testing.assert_close(half.float(), model(inputs_BTD, lengths_B), rtol=0.05, atol=0.05)


def test_dropout_acts_in_training_only():
    model, lengths_B = make(dropout=0.5), torch.tensor([3, 2])
    inputs_BTD = torch.randn(2, 3, 12)
    assert not torch.equal(model(inputs_BTD, lengths_B), model(inputs_BTD, lengths_B))
    model.eval()
    assert torch.equal(model(inputs_BTD, lengths_B), model(inputs_BTD, lengths_B))
