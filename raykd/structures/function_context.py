"""What autograd keeps of a call between `forward` and `backward`."""

from torch import Tensor
from torch.autograd.function import FunctionCtx


class FunctionContext(FunctionCtx):
    """PyTorch's context, with the fields that its own declaration lacks. A function that keeps more than tensors
    declares what in a subclass; autograd makes the object.
    """

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
