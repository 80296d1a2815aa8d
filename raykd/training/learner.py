"""The computation of a training step: a model's output and its loss."""

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
"""Keys beside the objectives' kinds: the total loss, and the words that a parser's labels cannot express."""


class Learner(nn.Module):
    """A model and a loss, as one module for DDP. A live teacher, if there is one, is not part of the module."""

    def __init__(self, model: Model, loss: Loss, objective: Objective, live: LiveTeacher | None = None):
        super().__init__()
        self.model, self.loss, self._live = model, loss, live and live.paired_with(model)
        requests = {
            "layers": objective.label_layers,
            "pieces": objective.piece_layers,
            "attention": objective.attention_layers,
        }
        self._layer_requests = {name: layers for name, layers in requests.items() if layers}

    def forward(self, batch: Batch, kd_weight: float, precision: str) -> dict[str, Tensor]:
        """Return the losses of the sentences [B], in total and by objective.

        Args:
            batch: one worker's slice of a global batch.
            kd_weight: λ, the weight of the distillation loss.
            precision: "float32", "bf16" or "fp16".
        """
        dtype = torch.float16 if precision == "fp16" else torch.bfloat16
        with torch.autocast(batch.text.lengths_B.device.type, dtype=dtype, enabled=precision != "float32"):
            output = self.model(batch.text, **self._layer_requests)
            teacher = batch.teacher if self._live is None else self._live.read(batch.text, batch.teacher)
        # Losses, and the layers that belong to them, are computed in at least float32.
        states = {name: at_least_float32(getattr(output, name)) for name in ("hidden", "pieces", "attention")}
        output = replace(output, **states)
        (losses,) = compute_losses([self.loss], output, batch.targets, teacher, kd_weight=kd_weight)
        # A parser's arcs that the student's labels cannot express are lost for training: count them.
        arcs = teacher.on_labels
        unexpressed = {} if arcs is None else {UNEXPRESSED: arcs.unexpressed_words()}
        return {TOTAL: losses.total_B, **losses.parts, **unexpressed}
