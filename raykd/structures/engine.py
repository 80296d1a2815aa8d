"""Selection of the implementation: compiled kernels on the CPU, Triton on CUDA, plain PyTorch elsewhere.

There is no setting. Sentences with possible underflow in float32 are computed again in float64, and in log space if
float64 underflows too.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from raykd.structures import independent, reference, scaled
from raykd.structures.chain import Chain
from raykd.structures.device import all_true
from raykd.structures.scaled import Sums

if TYPE_CHECKING:
    from types import ModuleType

    from raykd.structures.arcs import Arcs

Result = TypeVar("Result")

log = logging.getLogger(__name__)


@functools.cache
def _module(name: str) -> ModuleType | None:
    """Import a kernel module; None if the import fails (no numba, no Triton)."""
    try:
        return importlib.import_module(f"raykd.structures.{name}")
    except Exception:  # a compiler can fail to load in many ways; PyTorch computes instead
        return None


_broken: set[str] = set()


def kernels(chain: Chain | Arcs, operation: str) -> ModuleType | None:
    """Return the compiled module with an operation for the device of a chain or of arcs, or None."""
    kind = {"cpu": "compiled.launch", "cuda": "triton_kernels"}.get(chain.device.type)
    if kind is None or kind in _broken or chain.batch == 0:
        return None
    module = _module(kind)
    return module if hasattr(module, operation) else None


def attempt(
    chain: Chain | Arcs, operation: str, plain: Callable[[], Result], *inputs: object, **options: bool
) -> Result:
    """Run the compiled operation if the device has one, else `plain`; only `plain` once a compiler has failed.

    Args:
        chain: First argument of the compiled operation.
        operation: Name of the operation in the module of `kernels`.
        plain: The same operation in plain PyTorch, with its arguments bound.
        *inputs: Further arguments of the compiled operation.
        **options: Parts that the compiled operation is to compute.
    """
    module = kernels(chain, operation)
    if module is None:
        return plain()
    try:
        return getattr(module, operation)(chain, *inputs, **options)
    except NotImplementedError:
        return plain()
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        # chains and arcs check their inputs, so this is a fault of the machine's compiler
        _broken.add(module.KIND)
        log.warning(
            "%s: compiled kernels failed and are off, plain PyTorch computes instead: %r", module.KIND, error
        )
        return plain()


def sums(chain: Chain, *, token: bool = True, pair: bool = True, sides: bool = False) -> Sums:
    """Compute log Z, token marginals and expected transitions of a chain, without gradients, repaired after underflow.

    With `sides` also the pairs' factors. These are not repaired: do not use them for sentences where `ok` is False.
    """
    if chain.transitions is None and not sides:
        return independent.sums(chain.detach(), pair=pair)
    result = attempt(
        chain,
        "sum_product",
        lambda: scaled.sum_product(chain.detach(), pair=pair, sides=sides),
        token=token,
        pair=pair,
        sides=sides,
    )
    _repair(
        chain.detach(),
        result.ok_B,
        result.parts,
        lambda some, _: sums(some, token=token, pair=pair).parts,
        lambda some, _: reference.sums(some, pair=pair),
    )
    return result


Recompute = Callable[[Chain, Tensor], tuple[Tensor, ...]]
"""Function of a chain of some sentences and their numbers in the batch [N]: the parts of these sentences."""


def _repair(
    chain: Chain, ok_B: Tensor, parts: tuple[Tensor, ...], wide: Recompute, in_logs: Recompute
) -> None:
    """Compute again, in place, the sentences that are not `ok`: float32 by `wide` in float64, float64 by `in_logs`.

    Empty parts were not requested, and stay empty.
    """
    if all_true(ok_B):
        return
    bad_N = (~ok_B).nonzero().squeeze(1)
    some = chain.select(bad_N)
    repaired = wide(some.double(), bad_N) if chain.dtype == torch.float32 else in_logs(some, bad_N)
    for part, new in zip(parts, repaired, strict=True):
        if part.numel():
            part[bad_N] = new.to(part.dtype)


def covariance(chain: Chain, along_BTY: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Hessian of log Z times a direction of the emissions [B, T, Y], repaired after underflow.

    The result has a token part [B, T, Y] and a transition part [B, Y, Y], empty for a chain without transitions.
    """
    chain = chain.detach()
    if chain.transitions is None:
        return independent.covariance(chain, along_BTY), along_BTY.new_empty(0)
    *parts, ok_B = attempt(chain, "covariance", lambda: scaled.covariance(chain, along_BTY), along_BTY)
    _repair(
        chain,
        ok_B,
        tuple(parts),
        lambda some, bad_N: covariance(some, along_BTY[bad_N].double()),
        lambda some, bad_N: reference.covariance(some, along_BTY[bad_N]),
    )
    return parts[0], parts[1]


def posterior(
    chain: Chain, teacher_BTY: Tensor, *, token: bool = True, pair: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ_t KL(q_t ‖ p_t) [B] in float64 and its gradient, repaired after underflow.

    The gradient has the parts of `covariance`; `teacher_BTY` is q.
    """
    chain = chain.detach()
    if chain.transitions is None:
        return *independent.posterior(chain, teacher_BTY), chain.emissions_BTY.new_empty(0)
    *parts, ok_B = attempt(
        chain, "posterior", lambda: _posterior(chain, teacher_BTY), teacher_BTY, token=token, pair=pair
    )
    _repair(
        chain,
        ok_B,
        tuple(parts),
        lambda some, bad_N: posterior(some, teacher_BTY[bad_N].double()),
        lambda some, bad_N: reference.posterior(some, teacher_BTY[bad_N]),
    )
    return parts[0], parts[1], parts[2]


def _posterior(chain: Chain, teacher_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    student_BTY = sums(chain, pair=False).token_BTY
    teacher_BTY = teacher_BTY.to(chain.dtype).masked_fill(~chain.mask_BT[:, :, None], 0)
    clamped_BTY = student_BTY.clamp(min=torch.finfo(chain.dtype).tiny)
    value_B = (torch.xlogy(teacher_BTY, teacher_BTY) - teacher_BTY * clamped_BTY.log()).sum(
        (1, 2), dtype=torch.float64
    )
    # the divergence has the derivative −q/p in p, and the derivative of p in the scores is the Hessian of log Z
    ratio_BTY = torch.where(student_BTY == clamped_BTY, teacher_BTY / clamped_BTY, 0)
    token_BTY, pair_BYY, ok_B = scaled.covariance(chain, -ratio_BTY)
    # the marginal of a tag that the teacher allows underflowed: its log-probability is unknown in this precision
    lost_BTY = (student_BTY < clamped_BTY) & (teacher_BTY > torch.finfo(chain.dtype).eps * 1e-2)
    return value_B, token_BTY, pair_BYY, ok_B & ~lost_BTY.flatten(1).any(1)


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best labellings [B, K, T] and their scores [B, K]."""
    paths_BKT, scores_BK = attempt(chain, "k_best", lambda: reference.k_best(chain.detach(), k), k)
    return paths_BKT, scores_BK.to(chain.dtype)
