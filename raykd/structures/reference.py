"""Reference implementation: all recursions in log space, as in the equations.

Shapes: B batch, T time, Y tags, K best paths. The fast code falls back to it if even float64 underflows; it works on
any device. Tests compare both with enumeration.

    α[0, j] = start[j] + e[0, j]            α[t, j] = e[t, j] + log Σ_i exp(α[t-1, i] + a[i, j])
    β[n-1, i] = end[i]                      β[t, i] = log Σ_j exp(a[i, j] + e[t+1, j] + β[t+1, j])
    log Z = log Σ_j exp(α[t, j] + β[t, j])  at every t          (Rabiner 1989, in log space)
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from raykd.structures.chain import Chain
from raykd.structures.log_space import log_sum


def _emissions(chain: Chain) -> Tensor:
    """Return emissions with zeros on padding, even if the padding holds NaN."""
    return chain.emissions_BTY.masked_fill(~chain.mask_BT[:, :, None], 0)


def forward_scores(chain: Chain) -> Tensor:
    """Return α [B, T, Y]: log Σ exp of the scores of all prefixes ending in a tag; padding repeats the last token's."""
    emissions_BTY, mask_BT = _emissions(chain), chain.mask_BT
    transitions_BYY, start_BY, _ = chain.filled()
    alpha_BY = start_BY + emissions_BTY[:, 0]
    alphas = [alpha_BY]
    for t in range(1, chain.time):
        step_BY = log_sum(alpha_BY[:, :, None] + transitions_BYY, 1) + emissions_BTY[:, t]
        alpha_BY = torch.where(mask_BT[:, t, None], step_BY, alpha_BY)
        alphas.append(alpha_BY)
    return torch.stack(alphas, 1)


def backward_scores(chain: Chain) -> Tensor:
    """Return β [B, T, Y]: log of the summed exponentiated scores of all suffixes after a tag; padding holds `end`."""
    emissions_BTY, mask_BT = _emissions(chain), chain.mask_BT
    transitions_BYY, _, end_BY = chain.filled()
    beta_BY = end_BY.expand(chain.batch, chain.tags)
    betas = [beta_BY]
    for t in range(chain.time - 1, 0, -1):
        step_BY = log_sum(transitions_BYY + (emissions_BTY[:, t] + beta_BY)[:, None, :], 2)
        beta_BY = torch.where(mask_BT[:, t, None], step_BY, beta_BY)
        betas.append(beta_BY)
    return torch.stack(betas[::-1], 1)


def log_partition(chain: Chain) -> Tensor:
    """Return log Z [B]; −∞ if no path is allowed."""
    alpha_BTY, (_, _, end_BY) = forward_scores(chain), chain.filled()
    return log_sum(alpha_BTY[:, -1] + end_BY, 1)


def token_marginals(chain: Chain) -> Tensor:
    """Return p(y_t = y) [B, T, Y], zero on padding and in sentences without an allowed path."""
    log_BTY = forward_scores(chain) + backward_scores(chain)
    return _normalised(log_BTY, log_partition(chain)[:, None, None], chain.mask_BT[:, :, None])


def _normalised(log_weights: Tensor, log_total: Tensor, keep: Tensor) -> Tensor:
    usable = keep & (log_total != -inf) & (log_weights != -inf)
    zero = torch.zeros_like(log_weights)
    safe_total = torch.where(log_total != -inf, log_total, torch.zeros_like(log_total))
    return torch.where(usable, (torch.where(usable, log_weights, zero) - safe_total).exp(), zero)


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """Return the K best labellings by a K-best Viterbi: paths [B, K, T], scores [B, K] (−∞ if none is left)."""
    B, T, Y = chain.emissions_BTY.shape
    emissions_BTY, mask_BT = _emissions(chain), chain.mask_BT
    transitions_BYY, start_BY, end_BY = chain.filled()
    best_BKY = emissions_BTY.new_full((B, k, Y), -inf)
    best_BKY[:, 0] = start_BY + emissions_BTY[:, 0]
    origins = []
    for t in range(1, T):
        into_BKYY = best_BKY[:, :, :, None] + transitions_BYY[:, None]
        step_BKY, origin_BKY = into_BKYY.reshape(B, k * Y, Y).topk(k, 1)
        active = mask_BT[:, t, None, None]
        best_BKY = torch.where(active, step_BKY + emissions_BTY[:, t, None], best_BKY)
        stay_BKY = torch.arange(k * Y, device=chain.device).reshape(1, k, Y)
        origins.append(torch.where(active, origin_BKY, stay_BKY))
    scores_BK, place_BK = (best_BKY + end_BY[:, None]).reshape(B, k * Y).topk(k, 1)
    paths = [place_BK % Y]
    for origin_BKY in reversed(origins):
        place_BK = origin_BKY.reshape(B, k * Y).gather(1, place_BK)
        paths.append(place_BK % Y)
    exists = (scores_BK > -inf)[:, :, None] & mask_BT[:, None]
    return torch.stack(paths[::-1], 2).masked_fill(~exists, 0), scores_BK


def sample(chain: Chain, n: int, generator: torch.Generator | None) -> Tensor:
    """Draw n labellings per sentence, [B, n, T], by forward filtering and backward sampling; zero on padding."""
    alpha_BTY, mask_BT = forward_scores(chain), chain.mask_BT
    transitions_BYY, _, end_BY = chain.filled()
    transitions_BYY = transitions_BYY.expand(chain.batch, -1, -1)
    rows_B1 = torch.arange(chain.batch, device=chain.device)[:, None]
    tag_Bn = _draw((alpha_BTY[:, -1] + end_BY)[:, None].expand(-1, n, -1), generator)
    samples = [tag_Bn]
    for t in range(chain.time - 2, -1, -1):
        before_BnY = alpha_BTY[:, t, None] + transitions_BYY[rows_B1, :, tag_Bn]
        tag_Bn = torch.where(mask_BT[:, t + 1, None], _draw(before_BnY, generator), tag_Bn)
        samples.append(tag_Bn)
    return torch.stack(samples[::-1], 2).masked_fill(~mask_BT[:, None], 0)


def _draw(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw one index per row of unnormalised log-probabilities, by the Gumbel-max trick."""
    uniform = torch.rand(logits.shape, dtype=torch.float64, device=logits.device, generator=generator)
    return (logits - (-uniform.clamp(min=1e-300).log()).log()).argmax(-1)


def expected_score(
    chain: Chain, token_BTY: Tensor, pair_BYY: Tensor | None, start_BY: Tensor | None, end_BY: Tensor | None
) -> Tensor:
    """Return ⟨μ, θ⟩ [B] in float64.

    A score of −∞ counts as 0 if its moment is 0, and makes the sum −∞ otherwise.
    """
    total_B = _weighted(_emissions(chain), token_BTY)
    parts = ((chain.transitions, pair_BYY), (chain.start, start_BY), (chain.end, end_BY))
    for scores, counts in parts:
        if scores is not None and counts is not None:
            total_B = total_B + _weighted(scores, counts)
    return total_B


def _weighted(scores: Tensor, counts: Tensor) -> Tensor:
    forbidden = scores == -inf
    # On a GPU a check that reads the tensor waits; masking always is cheaper.
    if forbidden.device.type != "cpu" or bool(forbidden.any()):
        counts_forbidden_B = (forbidden & (counts != 0)).flatten(1).any(1)
        total_B = (scores.masked_fill(forbidden, 0) * counts).flatten(1).sum(1, dtype=torch.float64)
        return total_B.masked_fill(counts_forbidden_B, -inf)
    return (scores * counts).flatten(1).sum(1, dtype=torch.float64)


def score(chain: Chain, paths_BKT: Tensor) -> Tensor:
    """Return the scores of labellings [B, K] in float64; tags on padding have no effect but must be valid."""
    B, K, T = paths_BKT.shape
    mask_B1T = chain.mask_BT[:, None]
    total_BK = _summed(chain.emissions_BTY.gather(2, paths_BKT.transpose(1, 2)).transpose(1, 2), mask_B1T)
    if chain.transitions is not None:
        # one row per sentence, also of shared transitions: their gradient is summed per sentence and then over the
        # batch, always in the same order; indexing the shared matrix would add up in an order that threads change
        transitions_BX = chain.filled()[0].flatten(1).expand(B, -1)
        pairs_BX = (paths_BKT[:, :, :-1] * chain.tags + paths_BKT[:, :, 1:]).flatten(1)
        steps_BKT = transitions_BX.gather(1, pairs_BX).view(B, K, T - 1)
        total_BK = total_BK + _summed(steps_BKT, mask_B1T[:, :, 1:])
    last_BK1 = (chain.lengths_B.long() - 1)[:, None, None].expand(-1, K, 1)
    ends = ((chain.start, paths_BKT[:, :, 0]), (chain.end, paths_BKT.gather(2, last_BK1).squeeze(2)))
    for scores, tags_BK in ends:
        if scores is not None:
            total_BK = total_BK + scores.expand(B, -1).gather(1, tags_BK)
    return total_BK


def _summed(steps_BKT: Tensor, mask_B1T: Tensor) -> Tensor:
    # float64: the difference of two such sums is a loss, and float32 would leave 1e-3 of it at T = 512
    return torch.where(mask_B1T, steps_BKT, 0).sum(2, dtype=torch.float64)


def transition_moments(chain: Chain) -> Tensor:
    """Return expected transitions summed over time [B, Y, Y], one step at a time: [B, T, Y, Y] is never formed."""
    alpha_BTY, beta_BTY = forward_scores(chain), backward_scores(chain)
    transitions_BYY, _, _ = chain.filled()
    right_BTY, log_z_B11 = _emissions(chain) + beta_BTY, log_partition(chain)[:, None, None]
    total_BYY = alpha_BTY.new_zeros(chain.batch, chain.tags, chain.tags)
    for t in range(1, chain.time):
        log_BYY = alpha_BTY[:, t - 1, :, None] + transitions_BYY + right_BTY[:, t, None, :]
        total_BYY = total_BYY + _normalised(log_BYY, log_z_B11, chain.mask_BT[:, t, None, None])
    return total_BYY


def sums(chain: Chain, *, pair: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Z, token marginals and, if requested, expected transitions."""
    token_BTY = token_marginals(chain)
    return log_partition(chain), token_BTY, transition_moments(chain) if pair else token_BTY.new_empty(0)


def posterior_kl(chain: Chain, teacher_BTY: Tensor) -> Tensor:
    """Return Σ_t KL(q_t ‖ p_t) [B], with the student's log-marginals from log space, so that none underflows."""
    log_z_B11 = log_partition(chain)[:, None, None]
    log_BTY = forward_scores(chain) + backward_scores(chain) - log_z_B11
    teacher_BTY = teacher_BTY.masked_fill(~chain.mask_BT[:, :, None], 0)
    log_BTY = torch.where(teacher_BTY > 0, log_BTY, torch.zeros_like(log_BTY))
    return (torch.xlogy(teacher_BTY, teacher_BTY) - teacher_BTY * log_BTY).sum((1, 2))


def _with_leaves(chain: Chain) -> tuple[Chain, tuple[Tensor, Tensor]]:
    """Return the chain on new leaf tensors, and these: emissions [B, T, Y] and transitions per sentence [B, Y, Y]."""
    transitions_BYY, _, _ = chain.filled()
    emissions_BTY = chain.emissions_BTY.detach().requires_grad_()
    leaf_BYY = transitions_BYY.detach().expand(chain.batch, -1, -1).clone().requires_grad_()
    inner = Chain.unchecked(emissions_BTY, chain.lengths_B, leaf_BYY, chain.start, chain.end)
    return inner, (emissions_BTY, leaf_BYY)


def posterior(chain: Chain, teacher_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return `posterior_kl` and its gradient in emissions [B, T, Y] and per-sentence transitions [B, Y, Y]."""
    with torch.enable_grad():
        inner, leaves = _with_leaves(chain)
        value_B = posterior_kl(inner, teacher_BTY.to(chain.dtype))
        token_BTY, pair_BYY = torch.autograd.grad(value_B.sum(), leaves, materialize_grads=True)
    return value_B.detach(), token_BTY, pair_BYY


def covariance(chain: Chain, along_BTY: Tensor, along_BYY: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the Hessian of log Z times a direction, as the gradient of the marginals' inner product with it.

    The parts are those of `posterior`.
    """
    with torch.enable_grad():
        inner, leaves = _with_leaves(chain)
        total = (token_marginals(inner) * along_BTY).sum()
        if along_BYY is not None:
            total = total + (transition_moments(inner) * along_BYY).sum()
        token_BTY, pair_BYY = torch.autograd.grad(total, leaves, materialize_grads=True)
    return token_BTY, pair_BYY
