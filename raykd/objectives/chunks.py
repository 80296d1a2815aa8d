"""Losses over the pieces of a vocabulary, computed chunk by chunk because their scores do not fit in memory.

The loss of independent labels is a sum over labels, so it can be computed for a chunk of labels at a time, as if each
label were a sentence. Gradients are computed in the same way, from scores that are computed a second time, the
teacher's included: gold labels with a teacher take 1.7 times as long as without chunks, measured on a CPU.

Shapes: B batch, T labels of a sentence, N labels of all sentences or of a chunk, L losses, D size, Y tags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from raykd.forms.targets import Targets
from raykd.objectives.labels import resize_labels
from raykd.objectives.losses import Loss, Losses
from raykd.signals import TeacherBatch
from raykd.structures import UnscoredChain, chunk_tokens
from raykd.structures.device import deferred_checks
from raykd.structures.function_context import FunctionContext

if TYPE_CHECKING:
    from raykd.layers.model import Output
    from raykd.structures import Chain


def compute_losses(
    losses: Sequence[Loss], output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float
) -> list[Losses]:
    """Compute several losses of a batch.

    Losses that are `by_label` are computed together, in chunks, if the student's scores are too large to hold.

    Args:
        losses: Built objectives.
        output: Output of the student.
        targets: Gold labels of the batch.
        teacher: Signals of the teacher.
        kd_weight: λ, the weight of the teacher.

    Returns:
        One entry for each of `losses`, in their order.

    Raises:
        ValueError: The batch lacks a signal that an objective needs.
    """
    chain = output.distribution
    whole = not isinstance(chain, UnscoredChain) or chain.fits_in_memory
    if whole:
        output, teacher = _score_student(output), _score_teacher(teacher)
    by_label = [] if whole else [loss for loss in losses if loss.by_label]
    chunked = iter(_in_chunks(by_label, output, targets, teacher, kd_weight) if by_label else [])
    return [
        next(chunked) if loss in by_label else loss(output, targets, teacher, kd_weight=kd_weight)
        for loss in losses
    ]


def _score_student(output: Output) -> Output:
    chain = output.distribution
    return replace(output, distribution=chain.with_scores()) if isinstance(chain, UnscoredChain) else output


def _score_teacher(teacher: TeacherBatch) -> TeacherBatch:
    chain = teacher.chain
    if not isinstance(chain, UnscoredChain):
        return teacher
    with torch.no_grad():
        return replace(teacher, chain=chain.with_scores())


def _in_chunks(
    losses: Sequence[Loss], output: Output, targets: Targets, teacher: TeacherBatch, kd_weight: float
) -> list[Losses]:
    chain: Any = output.distribution
    part_names: list[list[str]] = []

    def compute_chunk(chunk: slice, states_ND: Tensor, *hidden_ND: Tensor) -> Tensor:
        """Return all losses of a chunk [L, N], each followed by its parts, and note the names of these."""
        hidden = {layer: states[:, None] for layer, states in zip(output.hidden, hidden_ND, strict=True)}
        chunk_output = replace(output, distribution=chain.token_chain(states_ND), hidden=hidden)
        chunk_inputs = _chunk_targets(targets, chain, chunk), _chunk_teacher(teacher, chain, chunk)
        results = [loss(chunk_output, *chunk_inputs, kd_weight=kd_weight) for loss in losses]
        part_names[:] = [[*result.parts] for result in results]
        return torch.stack(
            [value for result in results for value in (result.total_B, *result.parts.values())]
        )

    rows_ND = [chain.states_BTD.flatten(0, 1), *(states.flatten(0, 1) for states in output.hidden.values())]
    shared = dict.fromkeys((*chain.parameters, *(weight for loss in losses for weight in loss.parameters())))
    values_LN = _Chunked.apply(compute_chunk, chain.chunks(), len(rows_ND), *rows_ND, *shared)
    # Scores on padding are arbitrary and must not count.
    values_LB = torch.where(chain.mask_BT, values_LN.unflatten(1, (chain.batch, chain.time)), 0).sum(2)
    values = iter(values_LB)
    return [Losses(next(values), {name: next(values) for name in names}) for names in part_names]


def _chunk_targets(targets: Targets, chain: Chain, chunk: slice) -> Targets:
    labels_BT = resize_labels(targets.tags_BT, chain.time)
    labelled_BT = targets.labelled_B[:, None].expand(-1, chain.time)
    return Targets(labels_BT.flatten()[chunk, None], labelled_BT.flatten()[chunk])


def _chunk_teacher(teacher: TeacherBatch, chain: Chain, chunk: slice) -> TeacherBatch:
    """Return the signals of a chunk's tokens that objectives with `by_label` read; the others are left out."""
    with torch.no_grad():
        chunk_chain, marginals = (
            part if part is None else chunk_tokens(part, chunk) for part in (teacher.chain, teacher.marginals)
        )
    paths, scores = teacher.paths_BKT, teacher.scores_BK
    if paths is not None and scores is not None:
        paths = paths.transpose(1, 2).flatten(0, 1)[chunk, :, None]
        scores = scores.repeat_interleave(chain.time, 0)[chunk]
    return TeacherBatch(chunk_chain, paths, scores, marginals)


class _Context(FunctionContext):
    compute_chunk: Callable[..., Tensor]
    chunks: list[slice]
    shared: tuple[Tensor, ...]


class _Chunked(Function):
    """Concatenate `compute_chunk(chunk, *rows)` [L, N] of all chunks, with gradients computed chunk by chunk.

    The first `count` inputs have a row for each label, the others are shared by all labels.
    """

    @staticmethod
    def forward(
        ctx: _Context, compute_chunk: Callable[..., Tensor], chunks: list[slice], count: int, *inputs: Tensor
    ) -> Tensor:
        ctx.compute_chunk, ctx.chunks, ctx.shared = compute_chunk, chunks, inputs[count:]
        ctx.save_for_backward(*inputs[:count])
        return torch.cat(
            [compute_chunk(chunk, *(rows[chunk] for rows in inputs[:count])) for chunk in chunks], 1
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_LN: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        rows, needs_gradient = ctx.saved_tensors, ctx.needs_input_grad[3:]
        gradients: dict[int, Tensor] = {}
        for chunk in ctx.chunks:
            # `forward` has read all checks, so the program need not wait for the GPU again.
            with torch.enable_grad(), deferred_checks():
                chunk_rows = [
                    rows_ND[chunk].detach().requires_grad_(needed)
                    for rows_ND, needed in zip(rows, needs_gradient, strict=False)
                ]
                values_LN = ctx.compute_chunk(chunk, *chunk_rows)
            differentiated = {
                place: rows_ND
                for place, rows_ND in enumerate((*chunk_rows, *ctx.shared))
                if needs_gradient[place]
            }
            parts = torch.autograd.grad(
                values_LN, [*differentiated.values()], scale_LN[:, chunk], allow_unused=True
            )
            for place, part in zip(differentiated, parts, strict=True):
                if part is None:
                    continue
                if place < len(rows):
                    gradients.setdefault(place, torch.zeros_like(rows[place]))[chunk] = part
                else:
                    gradients[place] = gradients[place].add_(part) if place in gradients else part
        return None, None, None, *map(gradients.get, range(len(needs_gradient)))
