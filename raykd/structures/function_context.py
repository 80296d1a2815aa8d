"""Typed context of autograd functions."""

from torch import Tensor
from torch.autograd.function import FunctionCtx


class FunctionContext(FunctionCtx):
    """PyTorch's context, with the fields that its declaration lacks; autograd makes the object.

    A function that keeps more than tensors between `forward` and `backward` declares the fields in a subclass.
    """

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
