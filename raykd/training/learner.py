"""What a training step computes: a model's output, and the loss of it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from raykd.layers.model import Model
from raykd.objectives import Objective
from raykd.objectives.chunks import compute_losses
from raykd.objectives.losses import Loss
from raykd.training.data import Batch
from raykd.training.live import LiveTeacher, at_least_float32

TOTAL, UNEXPRESSED = "total", "unexpressed_words"
"""The loss in all, and what a parser's labels cannot say, among the losses by their objectives."""


class Learner(nn.Module):
    """A model with the loss that trains it: what DDP wraps. The teacher that reads its batches, where there is one, is
    no part of it.
    """

    def __init__(self, model: Model, loss: Loss, objective: Objective, live: LiveTeacher | None = None):
        super().__init__()
        self.model, self.loss, self._live = model, loss, live and live.paired_with(model)
        asked = {
            "layers": objective.label_layers,
            "pieces": objective.piece_layers,
            "attention": objective.attention_layers,
        }
        self._layer_requests = {name: layers for name, layers in asked.items() if layers}

    def forward(self, batch: Batch, kd_weight: float, precision: str) -> dict[str, Tensor]:
        """The loss of each sentence [B], in all and by objective."""
        dtype = torch.float16 if precision == "fp16" else torch.bfloat16
        with torch.autocast(batch.text.lengths_B.device.type, dtype=dtype, enabled=precision != "float32"):
            output = self.model(batch.text, **self._layer_requests)
            teacher = batch.teacher if self._live is None else self._live.read(batch.text, batch.teacher)
        # Losses, and the layers of their own, are computed in at least float32.
        inside = {name: at_least_float32(getattr(output, name)) for name in ("hidden", "pieces", "attention")}
        whole = replace(output, **inside)
        (losses,) = compute_losses([self.loss], whole, batch.targets, teacher, kd_weight=kd_weight)
        # Of a parser also how many words it says nothing about that the student's labels could say.
        arcs = teacher.on_labels
        lost = {} if arcs is None else {UNEXPRESSED: arcs.unexpressed_words()}
        return {TOTAL: losses.total_B, **losses.parts, **lost}
