"""A simulated GPU: its tensors compute on the CPU, and each wait of the program for the GPU is counted.

A tensor on it is an `OnGPU`, which says that its device is `cuda:0`. The program waits where it reads a value back
(`item`, `tolist`, `nonzero`, an index of booleans, a copy to the CPU), and where it sends one from memory that is not
pinned (a copy to the device, a list as an index, a tensor made from a list). Kernels are not timed; waits are counted.

While a CUDA graph is captured nothing may wait, as on a GPU. A replayed graph computes from the current values of its
inputs.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_leaves, tree_map, tree_map_only

import raykd
from raykd.structures import Chain, engine, scaled

PACKAGE = f"{Path(raykd.__file__).parent}/"
GPU = torch.device("cuda", 0)
CPU = torch.device("cpu")
_ATEN = torch.ops.aten
READS = {
    _ATEN._local_scalar_dense.default: "a value is read",
    _ATEN.nonzero.default: "the size of a result is read",
    _ATEN.masked_select.default: "the size of a result is read",
    _ATEN.unique_dim.default: "the size of a result is read",
    _ATEN._unique2.default: "the size of a result is read",
    _ATEN.repeat_interleave.Tensor: "the size of a result is read",
    _ATEN.equal.default: "a value is read",
}
INDEXED = {
    _ATEN.index.Tensor,
    _ATEN.index_put.default,
    _ATEN.index_put_.default,
    _ATEN._unsafe_index.Tensor,
    _ATEN._index_put_impl_.default,
}


class OnGPU(torch.Tensor):
    """A tensor on the simulated GPU; `cpu_tensor` holds its values."""

    cpu_tensor: torch.Tensor

    @staticmethod
    def __new__(cls, cpu_tensor: torch.Tensor, *, requires_grad: bool = False) -> OnGPU:
        tensor = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, cpu_tensor.shape, strides=cpu_tensor.stride(), storage_offset=cpu_tensor.storage_offset(),
            dtype=cpu_tensor.dtype, device=CPU, requires_grad=requires_grad,
        )  # fmt: skip
        tensor.cpu_tensor = cpu_tensor
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: GPU)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["cpu_tensor"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], *_: Any) -> OnGPU:
        return OnGPU(inner["cpu_tensor"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} outside `gpu()`")

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnGPU({self.cpu_tensor!r})"


class _Gpu(TorchDispatchMode):
    def __init__(self, note: Callable[[str], None]):
        super().__init__()
        self._note, self.backward = note, False
        self.captured: list[Callable[[], None]] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        on_gpu = tree_any(lambda value: isinstance(value, OnGPU), (args, kwargs))
        device = kwargs.get("device")
        if func is _ATEN._to_copy.default:
            on_gpu = self._note_copy(args[0], device, kwargs)
        elif func is _ATEN.copy_.default:
            self._note_write(*args[:2], later=args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        elif device is not None:
            # In a backward pass C++ makes tensors where it sees those of the GPU.
            on_gpu = on_gpu or self.backward or torch.device(device).type == "cuda"
        elif on_gpu:
            self._note_reads(func, args)
        if device is not None:
            kwargs["device"] = CPU
        cpu_arguments = tree_map(_unwrapped, args), tree_map(_unwrapped, kwargs)
        result = func(*cpu_arguments[0], **cpu_arguments[1])
        if self.captured is not None and on_gpu:
            self.captured.append(partial(_recompute, func, *cpu_arguments, result))
        if not on_gpu:
            return result
        if func._schema.is_mutable and not func._schema.name.endswith(".out"):
            return _in_place_result(func, args, kwargs, result)
        return tree_map_only(torch.Tensor, OnGPU, result)

    def _note_copy(self, source: Any, device: Any, kwargs: dict[str, Any]) -> bool:
        """Note a copy to the GPU that waits; return True if the copy is on the GPU."""
        if isinstance(source, OnGPU):
            return True
        to_gpu = device is not None and torch.device(device).type == "cuda"
        if to_gpu and not (getattr(source, "pinned", False) and kwargs.get("non_blocking")):
            self._note("a tensor is sent")
        return to_gpu

    def _note_write(self, into: Any, source: Any, later: bool) -> None:
        pinned = later and (getattr(into, "pinned", False) or getattr(source, "pinned", False))
        if isinstance(into, OnGPU) != isinstance(source, OnGPU) and not pinned:
            self._note("a tensor is sent" if isinstance(into, OnGPU) else "a tensor is read")

    def _note_reads(self, func: Any, args: Any) -> None:
        if func in READS:
            self._note(READS[func])
        elif func in INDEXED:
            for index in args[1]:
                if index is not None and index.dtype in (torch.bool, torch.uint8):
                    self._note("the size of a result is read")
                elif index is not None and not isinstance(index, OnGPU):
                    self._note("a tensor is sent")
        else:
            strays = [
                tensor
                for tensor in args
                if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.dim() > 0
            ]
            if strays:
                raise RuntimeError(f"{func}: tensors on the CPU and on {GPU}")


def _recompute(func: Any, args: Any, kwargs: Any, result: Any) -> None:
    """Repeat an operation with its current arguments and write into the tensors of the earlier result."""
    now = tree_leaves(func(*args, **kwargs))
    for old, new in zip(tree_leaves(result), now, strict=True):
        if isinstance(old, torch.Tensor) and old is not new:
            old.copy_(new)


def _unwrapped(value: Any) -> Any:
    return value.cpu_tensor if isinstance(value, OnGPU) else value


def _in_place_result(func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """The result of an operation in place: its argument tensors."""
    wrappers = {
        id(argument.cpu_tensor): argument
        for argument in [*args, *kwargs.values()]
        if isinstance(argument, OnGPU)
    }
    for argument in args:
        if isinstance(argument, (list, tuple)):
            wrappers |= {id(member.cpu_tensor): member for member in argument if isinstance(member, OnGPU)}
    return tree_map(
        lambda value: wrappers.get(id(value), OnGPU(value)) if isinstance(value, torch.Tensor) else value,
        result,
    )


class _Calls(TorchFunctionMode):
    """Answers of PyTorch's C++ code before any operation is reached: where a tensor is made, and what asks for one."""

    def __init__(self, gpu: _Gpu, note: Callable[[str], None]):
        super().__init__()
        self._gpu, self._note = gpu, note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__) and isinstance(
            args[0], OnGPU
        ):
            if func is not torch.Tensor.tolist:
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            self._note("a tensor is read")
            return args[0].cpu_tensor.tolist()
        if func is torch.Tensor.backward:
            self._gpu.backward = True
            try:
                return func(*args, **kwargs)
            finally:
                self._gpu.backward = False
        if func is torch.Tensor.pin_memory:
            pinned = args[0].clone()
            pinned.pinned = True
            return pinned
        if func is torch.empty and kwargs.pop("pin_memory", False):
            pinned = func(*args, **kwargs)
            pinned.pinned = True
            return pinned
        if func is torch.Tensor.is_pinned:
            return getattr(args[0], "pinned", False)
        if func in (torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu):
            return self._to(func, args, kwargs)
        device = kwargs.get("device")
        if (
            device is None
            or torch.device(device).type != "cuda"
            or tree_any(lambda value: isinstance(value, OnGPU), args)
        ):
            return func(*args, **kwargs)
        if func in (torch.tensor, torch.as_tensor):
            self._note("a tensor is sent")
        requires_grad = kwargs.pop("requires_grad", False)
        return OnGPU(func(*args, **kwargs | {"device": CPU}).detach(), requires_grad=requires_grad)

    def _to(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """`.to` asks for CUDA itself before it copies."""
        source, *rest = args
        device = kwargs.pop("device", None)
        dtype = kwargs.pop("dtype", None)
        for argument in rest:
            if isinstance(argument, torch.dtype):
                dtype = argument
            elif isinstance(argument, (str, torch.device, int)) and not isinstance(argument, bool):
                device = torch.device("cuda", argument) if isinstance(argument, int) else argument
            elif isinstance(argument, torch.Tensor):
                device, dtype = argument.device, argument.dtype
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            device = GPU if func is torch.Tensor.cuda else CPU
        # PyTorch groups gradients by the device that C++ sees.
        if device is None or sys._getframe(2).f_code.co_filename.endswith("clip_grad.py"):
            device = source.device
        device = torch.device(device)
        if device.type == source.device.type:
            return source if dtype is None or dtype == source.dtype else func(source, dtype)
        if isinstance(source, OnGPU):
            if source.requires_grad and torch.is_grad_enabled():
                raise NotImplementedError("a gradient through a copy to the CPU")
            self._note("a tensor is read")
            return source.cpu_tensor.to(dtype or source.dtype, copy=True)
        options = {"device": device, "non_blocking": kwargs.get("non_blocking", False)}
        return torch.ops.aten._to_copy.default(source, dtype=dtype or source.dtype, **options)


def place() -> str:
    """Return the file and the line of raykd, or else of another library, that is being executed."""
    frames = traceback.extract_stack()[:-2]  # without this function and what asks it
    package_frames = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    last = (package_frames or frames)[-1]
    return f"{last.filename.removeprefix(PACKAGE)}:{last.lineno}"


@contextlib.contextmanager
def gpu() -> Iterator[Counter[tuple[str, str]]]:
    """Make `cuda` a device in the body; yields how often what waited for it, by place and reason."""
    waits: Counter[tuple[str, str]] = Counter()

    def note(reason: str) -> None:
        if device.captured is not None:
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({reason})")
        waits[place(), reason] += 1

    @contextlib.contextmanager
    def capturing(graph: Graph) -> Iterator[None]:
        device.captured = graph.operations
        try:
            yield
        finally:
            device.captured = None

    modules, kernels, device = engine._module, Kernels(), _Gpu(note)
    stream = SimpleNamespace(wait_stream=lambda stream_: None)
    answers = {
        "synchronize": lambda *_: note("all is waited for"),
        "_lazy_init": lambda: None,  # asked for in a backward pass, where `_Calls` does not answer
        "get_device_name": lambda *_: "a GPU that is not there",
        "is_available": lambda: True,
        "is_bf16_supported": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: device.captured is not None,
        "empty_cache": lambda: None,
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": contextlib.nullcontext,
        "CUDAGraph": Graph,
        "graph": capturing,
    }
    with contextlib.ExitStack() as patched:
        for name, answer in answers.items():
            patched.enter_context(patch.object(torch.cuda, name, answer))
        patched.enter_context(
            patch.object(
                engine, "_module", lambda name: kernels if name == "triton_kernels" else modules(name)
            )
        )
        patched.enter_context(device)
        patched.enter_context(_Calls(device, note))
        yield waits


class Graph:
    """A CUDA graph: its operations, one after the other."""

    def __init__(self) -> None:
        self.operations: list[Callable[[], None]] = []

    def replay(self) -> None:
        for operation in self.operations:
            operation()


class Kernels:
    """In the place of Triton's: what they compute, in one step that waits for nothing."""

    KIND = "triton_kernels"

    def sum_product(self, chain: Chain, **options: bool) -> scaled.Sums:
        options.pop("token")
        return scaled.Sums(*map(OnGPU, scaled.sum_product(_chain_on_cpu(chain), **options)))

    def covariance(self, chain: Chain, along_BTY: OnGPU) -> tuple[OnGPU, ...]:
        return tuple(map(OnGPU, scaled.covariance(_chain_on_cpu(chain), along_BTY.cpu_tensor)))

    def posterior(self, chain: Chain, teacher_BTY: OnGPU, **_: bool) -> tuple[OnGPU, ...]:
        return tuple(map(OnGPU, engine._posterior(_chain_on_cpu(chain), teacher_BTY.cpu_tensor)))


def _chain_on_cpu(chain: Chain) -> Chain:
    return Chain.unchecked(*(None if part is None else _unwrapped(part.detach()) for part in chain.parts()))
