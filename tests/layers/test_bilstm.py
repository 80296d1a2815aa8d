import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from raykd.layers.bilstm import BiLSTM, reversal


def packed_reference(encoder, inputs_BTD, lengths_B):
    """Return the outputs of packed sequences, layer by layer."""
    states = inputs_BTD
    for layer in encoder.layers:
        packed = pack_padded_sequence(states, lengths_B, batch_first=True, enforce_sorted=False)
        states = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=states.shape[1])[0]
    return states


@pytest.mark.parametrize("lengths", [(4, 1, 3), (4, 4), (1,), (2, 4, 4)])
@pytest.mark.parametrize("layers", [1, 2])
def test_outputs_and_gradients_are_those_of_packed_sequences(lengths, layers):
    torch.manual_seed(0)
    encoder = BiLSTM(5, 3, layers=layers).double()
    lengths_B = torch.tensor(lengths)
    inputs_BTD = torch.randn(len(lengths), 4, 5, dtype=torch.float64)
    weight_BTD = torch.randn(len(lengths), 4, 6, dtype=torch.float64)
    outputs, gradients = [], []
    for run in (encoder, lambda x, n: packed_reference(encoder, x, n)):
        encoder.zero_grad()
        leaf_BTD = inputs_BTD.clone().requires_grad_()
        outputs.append(run(leaf_BTD, lengths_B))
        (outputs[-1] * weight_BTD).sum().backward()
        gradients.append([leaf_BTD.grad, *(p.grad.clone() for p in encoder.parameters())])
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_what_stands_on_padding_is_never_read():
    torch.manual_seed(0)
    encoder, lengths_B = BiLSTM(5, 3, layers=2), torch.tensor([2, 4])
    inputs_BTD = torch.randn(2, 4, 5)
    disturbed_BTD = inputs_BTD.clone()
    disturbed_BTD[0, 2:] = 1e4
    torch.testing.assert_close(encoder(inputs_BTD, lengths_B), encoder(disturbed_BTD, lengths_B))
    assert (encoder(inputs_BTD, lengths_B)[0, 2:] == 0).all()


def test_reversal_is_its_own_inverse_and_leaves_padding():
    index_BT = reversal(torch.tensor([3, 1, 4]), 4)
    assert index_BT.tolist() == [[2, 1, 0, 3], [0, 1, 2, 3], [3, 2, 1, 0]]
    assert (index_BT.gather(1, index_BT) == torch.arange(4)).all()


def test_dropout_between_layers_acts_in_training_only():
    torch.manual_seed(0)
    encoder, lengths_B = BiLSTM(5, 3, layers=2, dropout=0.5), torch.tensor([3, 2])
    inputs_BTD = torch.randn(2, 3, 5)
    assert not torch.equal(encoder(inputs_BTD, lengths_B), encoder(inputs_BTD, lengths_B))
    encoder.eval()
    assert torch.equal(encoder(inputs_BTD, lengths_B), encoder(inputs_BTD, lengths_B))
