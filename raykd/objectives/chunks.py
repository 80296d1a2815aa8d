"""Losses over the pieces of a vocabulary: chunk by chunk, so that their scores are never held all at once.

Where labels are independent of each other, a loss that reads their scores is a sum over labels. It is computed for a
chunk of labels at a time, as if each were a sentence. So is its gradient, from scores that are computed a second time,
the teacher's too: gold labels and a teacher take 1.7 times as long as of the whole, measured on a CPU.

Shapes: B batch, T labels of a sentence, N of all sentences or of a chunk, L losses, D size, Y tags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from raykd.forms.targets import Targets
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
    """Compute `losses` for a batch. Where the student has not scored its labels and the scores are too large to hold,
    those that are `by_label` are computed together, in chunks.
    """
    chain = output.distribution
    whole = not isinstance(chain, UnscoredChain) or chain.fits_in_memory
    if whole:
        output, teacher = _scored(output), _scored_teacher(teacher)
    by_label = [] if whole else [loss for loss in losses if loss.by_label]
    found = iter(_in_chunks(by_label, output, targets, teacher, kd_weight) if by_label else [])
    return [
        next(found) if loss in by_label else loss(output, targets, teacher, kd_weight=kd_weight)
        for loss in losses
    ]


def _scored(output: Output) -> Output:
    chain = output.distribution
    return replace(output, distribution=chain.with_scores()) if isinstance(chain, UnscoredChain) else output


def _scored_teacher(teacher: TeacherBatch) -> TeacherBatch:
    chain = teacher.chain
    if not isinstance(chain, UnscoredChain):
        return teacher
    with torch.no_grad():
        return replace(teacher, chain=chain.with_scores())


def _in_chunks(
    losses: Sequence[Loss], output: Output, targets: Targets, teacher: TeacherBatch, kd_weight: float
) -> list[Losses]:
    chain: Any = output.distribution
    names: list[list[str]] = []

    def computed(chunk: slice, states_ND: Tensor, *hidden_ND: Tensor) -> Tensor:
        """All losses of a chunk, each followed by its parts [L, N]."""
        hidden = {layer: own[:, None] for layer, own in zip(output.hidden, hidden_ND, strict=True)}
        own = replace(output, distribution=chain.of(states_ND), hidden=hidden)
        read = _targets_of(targets, chain, chunk), _teacher_of(teacher, chain, chunk)
        given = [loss(own, *read, kd_weight=kd_weight) for loss in losses]
        names[:] = [[*each.parts] for each in given]
        return torch.stack([value for each in given for value in (each.total_B, *each.parts.values())])

    rows_ND = [chain.states_BTD.flatten(0, 1), *(own.flatten(0, 1) for own in output.hidden.values())]
    shared = dict.fromkeys((*chain.parameters, *(own for loss in losses for own in loss.parameters())))
    values_LN = _Chunked.apply(computed, chain.chunks(), len(rows_ND), *rows_ND, *shared)
    # Padding may hold anything, which is not to count.
    values_LB = torch.where(chain.mask_BT, values_LN.unflatten(1, (chain.batch, chain.time)), 0).sum(2)
    rest = iter(values_LB)
    return [Losses(next(rest), {name: next(rest) for name in own}) for own in names]


def _targets_of(targets: Targets, chain: Chain, chunk: slice) -> Targets:
    wide_BT = torch.nn.functional.pad(targets.tags_BT, (0, max(0, chain.time - targets.tags_BT.shape[1])))
    labelled_BT = targets.labelled_B[:, None].expand(-1, chain.time)
    return Targets(wide_BT[:, : chain.time].flatten()[chunk, None], labelled_BT.flatten()[chunk])


def _teacher_of(teacher: TeacherBatch, chain: Chain, chunk: slice) -> TeacherBatch:
    """The signals that objectives on labels read, for the tokens of a chunk."""
    with torch.no_grad():
        own, marginals = (
            part if part is None else chunk_tokens(part, chunk) for part in (teacher.chain, teacher.marginals)
        )
    paths, scores = teacher.paths_BKT, teacher.scores_BK
    if paths is not None and scores is not None:
        paths = paths.transpose(1, 2).flatten(0, 1)[chunk, :, None]
        scores = scores.repeat_interleave(chain.time, 0)[chunk]
    return TeacherBatch(own, paths, scores, marginals)


class _Context(FunctionContext):
    computed: Callable[..., Tensor]
    chunks: list[slice]
    shared: tuple[Tensor, ...]


class _Chunked(Function):
    """`computed(chunk, *rows)` [L, N] for each of `chunks`, side by side. The first `count` inputs have a row for each
    label, the others are shared by all. Gradients of both are computed chunk by chunk.
    """

    @staticmethod
    def forward(
        ctx: _Context, computed: Callable[..., Tensor], chunks: list[slice], count: int, *inputs: Tensor
    ) -> Tensor:
        ctx.computed, ctx.chunks, ctx.shared = computed, chunks, inputs[count:]
        ctx.save_for_backward(*inputs[:count])
        return torch.cat([computed(chunk, *(own[chunk] for own in inputs[:count])) for chunk in chunks], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, scale_LN: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        rows, asked = ctx.saved_tensors, ctx.needs_input_grad[3:]
        found: dict[int, Tensor] = {}
        for chunk in ctx.chunks:
            # What is checked was checked by `forward`: a GPU is not waited for again.
            with torch.enable_grad(), deferred_checks():
                own = [
                    each[chunk].detach().requires_grad_(needed)
                    for each, needed in zip(rows, asked, strict=False)
                ]
                values_LN = ctx.computed(chunk, *own)
            read = {place: each for place, each in enumerate((*own, *ctx.shared)) if asked[place]}
            parts = torch.autograd.grad(values_LN, [*read.values()], scale_LN[:, chunk], allow_unused=True)
            for place, part in zip(read, parts, strict=True):
                if part is None:
                    continue
                if place < len(rows):
                    found.setdefault(place, torch.zeros_like(rows[place]))[chunk] = part
                else:
                    found[place] = found[place].add_(part) if place in found else part
        return None, None, None, *map(found.get, range(len(asked)))
