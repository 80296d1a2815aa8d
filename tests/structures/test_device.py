import torch

from raykd.structures.device import index_tensor
from tests.fake_gpu import GPU, gpu


def test_indices_kept_from_labelling_serve_training():
    """A teacher labels under `inference_mode` before the same process trains on the same labels."""
    with gpu():
        with torch.inference_mode():
            index_tensor((2, 0, 1), GPU)
        scores = torch.randn(4, 3).to(GPU).requires_grad_()
        scores.index_select(-1, index_tensor((2, 0, 1), GPU)).square().sum().backward()
        assert scores.grad is not None
