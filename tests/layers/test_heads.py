import numpy as np
import pytest
import torch

from raykd.forms import UTTERANCES
from raykd.layers.heads import CRFHead, MaxEntHead, head_builder
from raykd.layers.tagger import Tagger, TaggerShape
from raykd.structures import log_partition, score, token_marginals, viterbi
from tests.layers.batches import PIECES, make_batch
from tests.layers.graphs import assert_same_as, session_of


def test_crf_head_gives_its_parameters_from_to():
    head = CRFHead(4, 3)
    head.transitions.data[0, 2] = 5.0
    chain = head(torch.randn(2, 3, 4), torch.tensor([3, 1]))
    assert chain.emissions_BTY.shape == (2, 3, 3)
    assert chain.transitions[0, 2] == 5.0
    assert chain.transitions[2, 0] == 0.0
    assert chain.start.shape == chain.end.shape == (3,)


def test_maxent_head_has_no_transitions():
    chain = MaxEntHead(4, 3)(torch.randn(2, 3, 4), torch.tensor([3, 1]))
    assert (chain.transitions, chain.start, chain.end) == (None, None, None)


@pytest.mark.parametrize("head", [CRFHead(4, 3), MaxEntHead(4, 3)])
def test_emissions_are_float32_under_autocast(head):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert head.emissions(torch.randn(1, 2, 4)).dtype == torch.bfloat16
        assert head(torch.randn(1, 2, 4), torch.tensor([2])).emissions_BTY.dtype == torch.float32


def test_float64_stays():
    assert CRFHead(4, 3).double()(torch.randn(1, 2, 4).double(), torch.tensor([2])).dtype == torch.float64


@pytest.mark.parametrize("decoder", ["crf", "maxent"])
def test_only_the_first_word_has_the_labels_that_only_it_may_have(decoder):
    """For any weights: in the best labelling, in every marginal, and in the exported graph."""
    tags = UTTERANCES.tag_set(["city", "intent:fare", "intent:flight"])
    torch.manual_seed(0)
    shape = TaggerShape(pieces=PIECES.size, tags=len(tags), embedding_dim=3, hidden_dim=4, decoder=decoder)
    tagger = Tagger(shape, head=head_builder(decoder, len(tags), tags.allowed_places())).eval()
    with torch.no_grad():
        for parameter in tagger.parameters():
            parameter.copy_(10 * torch.randn_like(parameter))
    batch = make_batch(characters=False)
    chain = tagger(batch).distribution
    forbidden_TY = torch.from_numpy(~tags.allowed_places())[[0] + [1] * (chain.time - 1)]
    assert (token_marginals(chain)[:, forbidden_TY] == 0).all()
    # All other scores are those of the linear layer.
    plain = Tagger(shape).eval()
    plain.load_state_dict(tagger.state_dict())
    plain_BTY = plain(batch).distribution.emissions_BTY
    torch.testing.assert_close(chain.emissions_BTY[:, ~forbidden_TY], plain_BTY[:, ~forbidden_TY])
    for path, length in zip(viterbi(chain)[0].tolist(), chain.lengths_B.tolist(), strict=True):
        first, *later_tags = tags.decode(path[:length])
        assert first.startswith("intent:")
        assert not [tag for tag in later_tags if tag.startswith("intent:")]
    assert_same_as(tagger, session_of(tagger.to_onnx()), batch)


@pytest.mark.parametrize("head", [CRFHead, MaxEntHead])
def test_what_may_not_be_is_not_trained(head):
    allowed = np.array([[True, True, False], [False, False, True]])
    masked_head = head(4, 3, allowed)
    chain = masked_head(torch.randn(2, 3, 4), torch.tensor([3, 2]))
    (log_partition(chain) - score(chain, torch.tensor([[1, 2, 2], [0, 2, 0]]))).sum().backward()
    assert masked_head.emissions.weight.grad.isfinite().all()
    assert masked_head.emissions.weight.grad[:2].any()
    # Every later word has the only label that it may have.
    assert not masked_head.emissions.weight.grad[2].any()
