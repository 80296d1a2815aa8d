"""The training loop of teachers and students, for one worker or several; it does not depend on a launcher.

A run is a list of stages. A stage has one or more stage steps (several if layers are unfrozen one group after another).
A stage step has epochs, and starts from the best state of the previous one. Every batch is one optimiser step.

Every worker walks the same deterministic plan of global batches and takes its slice of each. Local loss sums are
divided by the size of the *global* batch and multiplied by the number of workers, because DDP averages gradients. So
one worker or four take the same step, up to rounding.

Randomness is a function of the position (seed, epoch, batch) and of a sentence's row in the global batch. A checkpoint
with the position therefore fixes the state of all generators, and a resumed run ends exactly like an undisturbed one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from raykd.corpora.batching import sample_by_language, worker_slice
from raykd.errors import RunError
from raykd.figures.results import Score
from raykd.layers.dropout import step_masks
from raykd.layers.model import Model
from raykd.progress import part_of_work, report_progress
from raykd.signals import Sizes
from raykd.storage.store import Storage
from raykd.structures.device import deferred_checks, to_device
from raykd.training.checkpoint import Progress, State, Stateful, read_checkpoint, write_checkpoint
from raykd.training.data import Batch
from raykd.training.epoch_report import EpochReport
from raykd.training.learner import TOTAL, Learner
from raykd.training.learning_rate import LearningRate, make_optimiser
from raykd.training.plan_length import PlanLength, StageLength
from raykd.training.position_seed import position_seed, seed_generators
from raykd.training.stages import TrainingPlan, labelled_share, select_trainable, split_held_out
from raykd.training.worker import Worker

TRAINING_SHARE = 0.9
"""Approximate share of an epoch spent on training; the rest is the scoring of dev."""


class Distiller:
    """Trains a model by a plan and keeps the weights of the best epoch.

    Args:
        model: trained in place.
        plan: the stages.
        evaluate: scores the model on dev, after each epoch; all workers call it.
        folder: of the run, for checkpoints.
        worker: of this process.
    """

    def __init__(
        self,
        model: Model,
        plan: TrainingPlan,
        *,
        evaluate: Callable[[Model], Score],
        folder: Storage,
        worker: Worker,
    ):
        self.model, self.plan, self.worker, self.folder = model, plan, worker, folder
        self._evaluate = evaluate
        self.progress = Progress()
        self._sums: dict[str, Tensor] = {}
        """Sums of losses not yet added to `progress.sums`; they stay on the device until they are read."""
        self._norm: Tensor | None = None
        """Norm of the last step's gradient; it is checked together with the next step's loss."""
        self._length = PlanLength(
            tuple(
                StageLength(stage.schedule.epochs, stage.schedule.max_steps, len(stage.steps(model)))
                for stage in plan.stages
            )
        )

    def train(self, report: Callable[[EpochReport], None]) -> Progress:
        """Train to the end, from the checkpoint if there is one, and set the model to the weights of the best epoch.

        Args:
            report: called after each epoch; may be a barrier between workers.

        Returns:
            The final position, with the history of epochs.
        """
        checkpoint, state = read_checkpoint(self.folder, self.worker.device), None
        if checkpoint is not None:
            self.progress, state = checkpoint
        for index in range(self.progress.stage, len(self.plan.stages)):
            self._open_stage(index)
            if state is None:
                self._begin_stage(index)
            steps = self.stage.steps(self.model)
            with closing(self.data):
                for step in range(self.progress.step, len(steps)):
                    self._open_stage_step(steps[step], state)
                    state = None
                    self._train_stage_step(report)
                    self._close_stage_step(last=step + 1 == len(steps))
        return self.progress

    def _open_stage(self, index: int) -> None:
        self.stage = self.plan.stages[index]
        self.data, self._live = self.stage.data(), self.stage.live()
        if self._live is not None:
            self._live.to(self.worker.device)
        self._rows, self._held_out = split_held_out(self.data.rows, self.stage)
        objective, transfer = self.stage.objective, self.data.transfer
        teacher_layers = {need.layer for need in objective.needs if need.layer is not None}
        signals, tags = self._live or transfer, self.plan.tags
        teacher = Sizes(
            tags, {layer: signals.hidden_size(layer) for layer in teacher_layers} if signals else {}
        )
        layers = dict.fromkeys((*objective.label_layers, *objective.piece_layers))
        projected = frozenset(layer for layer in layers if self.model.is_projection(layer))
        student = Sizes(tags, {layer: self.model.hidden_size(layer) for layer in layers}, projected)
        torch.manual_seed(position_seed(self.stage.training.seed, index, 0))
        labelled = labelled_share(
            self.data.part, self._rows, per_token=self._per_token, alpha=self.plan.sampling_alpha
        )
        self.loss = objective.build(student, teacher, labelled=labelled).to(self.worker.device)

    def _begin_stage(self, index: int) -> None:
        """Draw a new head, if configured; a run resumed within the stage has it already."""
        if self.stage.head == "new":
            torch.manual_seed(position_seed(self.stage.training.seed, index, 1))
            self.model.reset_head()

    def _open_stage_step(self, groups: Sequence[str] | None, state: dict[str, State] | None) -> None:
        training = self.stage.training
        self._layers: Literal["all"] | tuple[str, ...] = "all" if groups is None else tuple(groups)
        self._parameters = [*select_trainable(self.model, groups), *self.loss.parameters()]
        learner = Learner(self.model, self.loss, self.stage.objective, self._live)
        # If the objective reads no labels, the head gets no gradient, and DDP has to look for such parameters.
        unused = not self.stage.objective.reads_labels
        self._learner = (
            DistributedDataParallel(learner, find_unused_parameters=unused)
            if self.worker.grouped
            else learner
        )
        self._optimiser = make_optimiser(training, self._parameters)
        self._rate = LearningRate(training, self._optimiser, total_steps=self._max_optimiser_steps())
        self._scaler = torch.amp.GradScaler(self.worker.device.type, enabled=training.precision == "fp16")
        if state is not None:
            self._restore(state)

    def _max_optimiser_steps(self) -> int:
        """The optimiser steps of the stage step if patience does not end it; 0 if patience alone ends it."""
        schedule, per_epoch = self.stage.schedule, len(self._batches(self.progress.first_epoch))
        limits = (schedule.max_steps, schedule.epochs and per_epoch * schedule.epochs)
        return min((limit for limit in limits if limit is not None), default=0)

    def _train_stage_step(self, report: Callable[[EpochReport], None]) -> None:
        while not self._ended():
            epoch = self.progress.epoch
            batches = self._batches(epoch)
            if (max_steps := self.stage.schedule.max_steps) is not None:
                batches = batches[: max_steps - self.progress.steps]
            with part_of_work(*self._shares(len(batches)), self._title(epoch)):
                with part_of_work(0.0, TRAINING_SHARE):
                    self._train_epoch(epoch, batches)
                with part_of_work(TRAINING_SHARE, 1.0, "scoring dev"):
                    epoch_report = self._close_epoch(epoch, batches)
            # report() may be a barrier: every rank must reach it.
            report(epoch_report)

    def _shares(self, steps: int) -> tuple[float, float]:
        """The finished shares of the run before and after an epoch of `steps` optimiser steps."""
        progress = self.progress
        epochs = progress.epoch - progress.first_epoch
        before = self._length.share_done(progress.stage, progress.step, epochs, progress.steps)
        return before, self._length.share_done(
            progress.stage, progress.step, epochs + 1, progress.steps + steps
        )

    def _title(self, epoch: int) -> str:
        epochs = self._length.max_epochs
        return f"epoch {epoch + 1}" if epochs is None else f"epoch {epoch + 1}/{epochs}"

    def _ended(self) -> bool:
        """Return true if the stage step has reached the limit of epochs or optimiser steps, or is out of patience."""
        schedule, progress = self.stage.schedule, self.progress
        since_best = progress.epoch - max(progress.best_epoch, progress.first_epoch)
        return (
            (schedule.epochs is not None and progress.epoch >= progress.first_epoch + schedule.epochs)
            or (schedule.max_steps is not None and progress.steps >= schedule.max_steps)
            or (schedule.patience is not None and since_best > schedule.patience)
        )

    def _close_stage_step(self, *, last: bool) -> None:
        """Restore the best state of the stage step, from which the next one starts."""
        progress = self.progress
        self.model.load_state_dict(progress.best_weights)
        self.loss.load_state_dict(progress.best_loss_weights)
        for parameter in self.model.parameters():
            parameter.requires_grad_(True)
        progress.stage, progress.step = (
            (progress.stage + 1, 0) if last else (progress.stage, progress.step + 1)
        )
        if progress.stage < len(self.plan.stages):
            progress.first_epoch, progress.best, progress.steps = progress.epoch, -float("inf"), 0

    def _batches(self, epoch: int) -> list[np.ndarray]:
        training = self.stage.training
        return self.data.plan(
            self._sample_rows(epoch), batch_tokens=training.batch_tokens, seed=training.seed, epoch=epoch
        )

    def _sample_rows(self, epoch: int) -> np.ndarray:
        """The rows of one epoch: all of them, or a sample smoothed over languages."""
        alpha = self.plan.sampling_alpha
        if alpha == 1.0:
            return self._rows
        languages = self.data.part.languages[self._rows]
        return self._rows[
            sample_by_language(languages, alpha=alpha, seed=self.stage.training.seed, epoch=epoch)
        ]

    def _train_epoch(self, epoch: int, batches: list[np.ndarray]) -> None:
        self.model.train()
        started, spent = time.monotonic(), self.progress.seconds
        for number in range(self.progress.batch, len(batches)):
            report_progress(number / len(batches))
            for name, value in self._train_batch(epoch, number, batches[number]).items():
                self._sums[name] = self._sums[name] + value if name in self._sums else value
            self.progress.batch = number + 1
            self.progress.seconds = spent + time.monotonic() - started
            if (number + 1) % self.plan.checkpoint_steps == 0 and number + 1 < len(batches):
                self._save()

    def _train_batch(self, epoch: int, number: int, rows: np.ndarray) -> dict[str, Tensor]:
        """Take one optimiser step on one global batch; return the worker's sum of each loss, float64."""
        training, worker = self.stage.training, self.worker
        places = worker_slice(np.arange(len(rows)), worker.rank, worker.world)
        # In a batch smaller than the number of workers some get no sentence: they compute the first one at weight 0,
        # because DDP needs a backward pass of every worker.
        included = 1.0 if len(places) else 0.0
        places = places if len(places) else np.zeros(1, int)
        batch = self.data.gather(rows[places], worker.device)
        losses, total = self._losses(batch, to_device(torch.from_numpy(places), worker.device), epoch, number)
        size = int(self.data.part.text.lengths[rows].sum()) if self._per_token else len(rows)
        weight = included * worker.world / size
        self._optimiser.zero_grad(set_to_none=True)
        if not total.requires_grad:
            trained = ", ".join(self._layers) if self._layers != "all" else "all"
            raise RunError(
                f"stage {self.progress.stage + 1}: the trained layers ({trained}) have no effect on the objective; "
                "name other layers in layers"
            )
        self._scaler.scale(total * weight).backward()
        self._scaler.unscale_(self._optimiser)
        norm = nn.utils.clip_grad_norm_(self._parameters, training.gradient_clip or math.inf)
        # With float16 the scaler itself skips a step whose gradient is not finite.
        self._norm = None if self._scaler.is_enabled() else norm
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self._rate.step()
        return {name: included * part.detach().sum().double() for name, part in losses.items()}

    def _losses(
        self, batch: Batch, places_B: Tensor, epoch: int, number: int
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The losses [B] of the sentences of a batch, and the sum of their total loss.

        The step waits for the device only here: all values that the host needs, of the loss and of the last gradient,
        are read together.

        Args:
            batch: this worker's slice of the global batch.
            places_B: place of each sentence in the global batch; its dropout masks depend on it.
            epoch: counted over all stages.
            number: number of the global batch in the epoch.
        """
        seed, device = position_seed(self.stage.training.seed, epoch, number), self.worker.device

        def compute(learner: nn.Module) -> tuple[dict[str, Tensor], Tensor]:
            seed_generators(seed, device)
            with step_masks(seed, places_B):
                losses = learner(batch, self._kd_weight(epoch), self.stage.training.precision)
            return losses, losses[TOTAL].sum()

        with deferred_checks() as conditions:
            losses, total = compute(self._learner)
        checks = [total.detach().isfinite(), *([] if self._norm is None else [self._norm.isfinite()])]
        finite, *holds = torch.stack([*checks, *conditions]).tolist()
        if self._norm is not None and not holds.pop(0):
            self._refuse("gradient", epoch, number - 1)
        if not all(holds):
            # A fast path did not hold, so compute again by the safe one. Not through DDP: only some workers come here,
            # and its forward pass would wait for all. The hooks that average gradients belong to the parameters.
            losses, total = compute(getattr(self._learner, "module", self._learner))
            finite = bool(total.detach().isfinite())
        if not finite:
            self._refuse("loss", epoch, number)
        return losses, total

    def _refuse(self, quantity: str, epoch: int, number: int) -> None:
        raise RunError(
            f"epoch {epoch}, batch {number}: the {quantity} is not finite; lower training.learning_rate "
            f"(now {self.stage.training.learning_rate}) or use training.precision: float32"
        )

    def _read_sums(self) -> None:
        """Add the sums on the device to `progress.sums`, and check the last gradient."""
        if self._norm is not None and not bool(self._norm.isfinite()):
            self._refuse("gradient", self.progress.epoch, self.progress.batch - 1)
        self._norm = None
        if self._sums:
            values = torch.stack(list(self._sums.values())).tolist()
            for name, value in zip(self._sums, values, strict=True):
                self.progress.sums[name] = self.progress.sums.get(name, 0.0) + value
        self._sums = {}

    def _kd_weight(self, epoch: int) -> float:
        if not self.stage.objective.follows_lambda:
            return 0.0
        return self.stage.schedule.kd_weight(epoch - self.progress.first_epoch)

    @property
    def _per_token(self) -> bool:
        return self.stage.training.loss_average == "token"

    def _close_epoch(self, epoch: int, batches: list[np.ndarray]) -> EpochReport:
        self._read_sums()
        sums = self.worker.sum_over_workers(self.progress.sums)
        sentences = sum(len(rows) for rows in batches)
        tokens = int(self.data.part.text.lengths[np.concatenate(batches)].sum())
        rate = self._optimiser.param_groups[0]["lr"]
        means = {name: value / sentences for name, value in sums.items()}
        dev = self._evaluate(self.model)
        held_out = self._held_out_loss() if len(self._held_out) else None
        score = dev.mean if held_out is None else -held_out
        self._rate.end_epoch(score)
        report = EpochReport(
            epoch=epoch, steps=self.progress.all_steps + len(batches), stage=self.progress.stage,
            step=self.progress.step, layers=self._layers, kd_weight=self._kd_weight(epoch), loss=means.pop(TOTAL),
            losses=means, learning_rate=rate, dev=dev, held_out_loss=held_out,
            tokens_per_second=tokens / max(self.progress.seconds, 1e-9), tokens=tokens,
        )  # fmt: skip
        self._advance(report, score, len(batches))
        self._save()
        return report

    def _held_out_loss(self) -> float:
        """The stage's loss per sentence on held-out text, the same on all workers."""
        self.model.eval()
        batches = self.data.plan(
            self._held_out, batch_tokens=self.stage.training.batch_tokens, seed=0, epoch=0, shuffle=False
        )
        learner = Learner(self.model, self.loss, self.stage.objective, self._live)
        # λ is 1 in every epoch: the losses of epochs with different λ could not be compared.
        with torch.inference_mode():
            losses = [
                learner(self.data.gather(rows, self.worker.device), 1.0, self.stage.training.precision)
                for rows in batches
            ]  # fmt: skip
        return sum(float(loss[TOTAL].sum()) for loss in losses) / len(self._held_out)

    def _advance(self, report: EpochReport, score: float, steps: int) -> None:
        progress = self.progress
        progress.steps, progress.all_steps = progress.steps + steps, progress.all_steps + steps
        if score > progress.best:
            progress.best, progress.best_epoch = score, report.epoch
            progress.best_weights, progress.best_loss_weights = _copy(self.model), _copy(self.loss)
        progress.history.append(report.metrics())
        progress.epoch, progress.batch, progress.sums, progress.seconds = report.epoch + 1, 0, {}, 0.0

    def _save(self) -> None:
        self._read_sums()
        # Sums differ between workers until they are reduced. A checkpoint inside an epoch holds the total, for rank 0.
        sums = self.worker.sum_over_workers(self.progress.sums)
        if self.worker.rank == 0:
            write_checkpoint(self.folder, replace(self.progress, sums=sums), self._states())

    def _restore(self, states: dict[str, State]) -> None:
        if self.worker.rank > 0:
            self.progress.sums = dict.fromkeys(self.progress.sums, 0.0)
        for name, stateful in self._states().items():
            stateful.load_state_dict(states[name])

    def _states(self) -> dict[str, Stateful]:
        return {
            "model": self.model, "loss": self.loss, "optimiser": self._optimiser, "rate": self._rate,
            "scaler": self._scaler,
        }  # fmt: skip


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
