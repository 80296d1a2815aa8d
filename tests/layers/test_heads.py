import pytest
import torch

from raykd.layers import CRFHead, MaxEntHead


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
