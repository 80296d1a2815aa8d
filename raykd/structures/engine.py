"""Selects the code that computes: compiled kernels on the CPU, Triton on CUDA, plain PyTorch elsewhere; no setting.

With all of them, a sentence of which float32 may have lost something to underflow is computed again in float64, and if
that underflows too, in log space.
"""

from __future__ import annotations

import functools
import importlib
import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from raykd.structures import independent, reference, scaled
from raykd.structures.device import holds
from raykd.structures.scaled import Sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.structures.arcs import Arcs
    from raykd.structures.chain import Chain


log = logging.getLogger(__name__)


@functools.cache
def _module(name: str) -> Any:
    """A kernel module, or None where it cannot be imported (no numba, no Triton)."""
    try:
        return importlib.import_module(f"raykd.structures.{name}")
    except Exception:  # a compiler can fail to load in many ways; PyTorch computes instead
        return None


_broken: set[str] = set()


def kernels(chain: Chain | Arcs, operation: str = "sum_product") -> Any:
    """The compiled module for the device of a chain, or of arcs, that has an operation, or None."""
    kind = {"cpu": "compiled.launch", "cuda": "triton_kernels"}.get(chain.device.type)
    if kind is None or kind in _broken or chain.batch == 0:
        return None
    module = _module(kind)
    return module if hasattr(module, operation) else None


def attempt(
    chain: Chain | Arcs, operation: str, plain: Callable[[], Any], *inputs: Any, **options: Any
) -> Any:
    """Run the compiled operation if there is one; after a failure (no compiler, say), plain PyTorch from then on."""
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
    """log Z, token marginals and expected transitions of a chain, without gradients, checked for underflow.

    With `sides` also the pairs' factors, which must not be used in rows where `ok` is False.
    """
    if chain.transitions is None and not sides:
        return independent.sums(chain.detach(), pair=pair)
    found = attempt(
        chain,
        "sum_product",
        lambda: scaled.sum_product(chain.detach(), pair=pair, sides=sides),
        token=token,
        pair=pair,
        sides=sides,
    )
    if not holds(found.ok_B):
        bad_N = (~found.ok_B).nonzero().squeeze(1)
        chain = chain.detach()
        again = _repeat(chain.select(bad_N), token=token, pair=pair)
        for name, wanted in (("log_z_B", True), ("token_BTY", token), ("pair_BYY", pair)):
            if wanted:
                part = getattr(found, name)
                part[bad_N] = getattr(again, name).to(part.dtype)
    return found


def _repeat(chain: Chain, *, token: bool, pair: bool) -> Sums:
    if chain.dtype == torch.float32:
        return sums(chain.double(), token=token, pair=pair)
    log_z_B = reference.log_partition(chain)
    token_BTY = reference.token_marginals(chain)
    pair_BYY = reference.transition_moments(chain) if pair else token_BTY.new_empty(0)
    empty = token_BTY.new_empty(0)
    return Sums(log_z_B, torch.ones_like(log_z_B, dtype=torch.bool), token_BTY, pair_BYY, empty, empty)


def covariance(chain: Chain, along_BTY: Tensor, along_BYY: Tensor | None) -> tuple[Tensor, Tensor]:
    """The Hessian of log Z times a direction, checked for underflow: token and transition parts, the latter empty of a
    chain without transitions."""
    chain = chain.detach()
    if chain.transitions is None and along_BYY is None:
        return independent.covariance(chain, along_BTY), along_BTY.new_empty(0)

    def plain() -> tuple[Tensor, Tensor, Tensor]:
        return scaled.covariance(chain, along_BTY, along_BYY)

    kernels_can = along_BYY is None
    token_BTY, pair_BYY, ok_B = attempt(chain, "covariance", plain, along_BTY) if kernels_can else plain()
    if not holds(ok_B):
        bad_N = (~ok_B).nonzero().squeeze(1)
        again = _covariance_again(
            chain.select(bad_N), along_BTY[bad_N], None if along_BYY is None else along_BYY[bad_N]
        )
        token_BTY[bad_N], pair_BYY[bad_N] = (part.to(chain.dtype) for part in again)
    return token_BTY, pair_BYY


def _covariance_again(chain: Chain, along_BTY: Tensor, along_BYY: Tensor | None) -> tuple[Tensor, Tensor]:
    if chain.dtype == torch.float32:
        wide = None if along_BYY is None else along_BYY.double()
        return covariance(chain.double(), along_BTY.double(), wide)
    return reference.covariance(chain, along_BTY, along_BYY)


def posterior(
    chain: Chain, teacher_BTY: Tensor, *, token: bool = True, pair: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ_t KL(q_t ‖ p_t) [B] in float64 and its gradient (token and transition parts), checked for underflow."""
    chain = chain.detach()
    if chain.transitions is None:
        return *independent.posterior(chain, teacher_BTY), chain.emissions_BTY.new_empty(0)
    value_B, token_BTY, pair_BYY, ok_B = attempt(
        chain, "posterior", lambda: _posterior(chain, teacher_BTY), teacher_BTY, token=token, pair=pair
    )
    if not holds(ok_B):
        bad_N = (~ok_B).nonzero().squeeze(1)
        again = _posterior_again(chain.select(bad_N), teacher_BTY[bad_N])
        value_B[bad_N] = again[0]
        for part, new, wanted in ((token_BTY, again[1], token), (pair_BYY, again[2], pair)):
            if wanted:
                part[bad_N] = new.to(part.dtype)
    return value_B, token_BTY, pair_BYY


def _posterior(chain: Chain, teacher_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    student_BTY = sums(chain, pair=False).token_BTY
    teacher_BTY = teacher_BTY.to(chain.dtype).masked_fill(~chain.mask_BT[:, :, None], 0)
    kept_BTY = student_BTY.clamp(min=torch.finfo(chain.dtype).tiny)
    value_B = (torch.xlogy(teacher_BTY, teacher_BTY) - teacher_BTY * kept_BTY.log()).sum(
        (1, 2), dtype=torch.float64
    )
    ratio_BTY = torch.where(student_BTY == kept_BTY, teacher_BTY / kept_BTY, 0)
    token_BTY, pair_BYY, ok_B = scaled.covariance(chain, -ratio_BTY, None)
    # a tag that the teacher allows and whose marginal underflowed: its log-probability is unknown in this precision
    lost_BTY = (student_BTY < kept_BTY) & (teacher_BTY > torch.finfo(chain.dtype).eps * 1e-2)
    return value_B, token_BTY, pair_BYY, ok_B & ~lost_BTY.flatten(1).any(1)


def _posterior_again(chain: Chain, teacher_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if chain.dtype == torch.float32:
        return posterior(chain.double(), teacher_BTY.double())
    return reference.posterior(chain, teacher_BTY)


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """The k best labellings [B, K, T] and their scores [B, K]."""
    paths_BKT, scores_BK = attempt(chain, "k_best", lambda: reference.k_best(chain.detach(), k), k)
    return paths_BKT, scores_BK.to(chain.dtype)
