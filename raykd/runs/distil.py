"""The one training loop: teachers and students, one worker or several, here or under Ray Train. It knows no launcher.

Every worker walks the same deterministic plan of global batches and takes its slice of each. Local loss sums are
divided by the size of the *global* batch and multiplied by the number of workers, because DDP averages gradients: so
one worker or four take the same step, up to rounding.

Randomness is a function of the position (seed, epoch, step, worker): a checkpoint that holds the position holds the
state of every worker's generator, and a resumed run ends where an undisturbed one does.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from raykd.corpora.batching import language_sampling, plan_batches, worker_slice
from raykd.errors import RunError
from raykd.objectives import LABELS, Objective
from raykd.runs.data import Batch, TrainingData
from raykd.storage import Storage
from raykd.structures import log_partition, score
from raykd.training import LearningRate, ScheduleConfig, TrainingConfig, make_optimiser

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Worker:
    """Which of the workers of a run this is, and where it computes."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


@dataclass(frozen=True)
class EpochReport:
    """What one epoch did. Losses are means per sentence over the epoch."""

    epoch: int
    kd_weight: float
    loss: float
    kd_loss: float
    gold_loss: float
    learning_rate: float
    tokens_per_second: float
    dev: dict[str, Any]

    def metrics(self) -> dict[str, Any]:
        """Metric name → value, as logged and as kept in the run's history."""
        return {
            "epoch": self.epoch, "lambda": self.kd_weight, "loss": self.loss, "kd_loss": self.kd_loss,
            "gold_loss": self.gold_loss, "learning_rate": self.learning_rate,
            "tokens_per_second": self.tokens_per_second, "dev_f1": self.dev["mean"],
            "dev_f1_languages_sd": self.dev["standard_deviation"],
            "dev_f1_by_language": dict(self.dev["by_language"]),
        }  # fmt: skip


@dataclass
class Progress:
    """Where a run stands: everything a checkpoint holds beside the tensors' owners."""

    epoch: int = 0
    step: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    seconds: float = 0.0
    best_dev: float = -1.0
    best_epoch: int = -1
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class TrainingPlan:
    """How a run is to be trained."""

    objective: Objective
    schedule: ScheduleConfig
    training: TrainingConfig
    sampling_alpha: float = 1.0
    checkpoint_steps: int = 1000
    """Steps between checkpoints inside a long epoch; counted in steps, because saving is a collective."""


class Distiller:
    """Trains `model` on `data`; `evaluate` scores dev after each epoch, and the best epoch's weights are kept."""

    def __init__(
        self,
        model: nn.Module,
        data: TrainingData,
        training_plan: TrainingPlan,
        *,
        evaluate: Callable[[nn.Module], dict[str, Any]],
        folder: Storage,
        worker: Worker,
    ):
        self.model, self.data, self.training_plan, self.worker, self.folder = (
            model,
            data,
            training_plan,
            worker,
            folder,
        )
        self._evaluate = evaluate
        self._ddp = DistributedDataParallel(model) if worker.world > 1 else model
        self._optimiser = make_optimiser(training_plan.training, model.parameters())
        self._lengths = data.part.text.piece_lengths
        steps = len(self._plan(0)) * training_plan.schedule.epochs
        self._rate = LearningRate(training_plan.training, self._optimiser, total_steps=steps)
        self._scaler = torch.amp.GradScaler(
            worker.device.type, enabled=training_plan.training.precision == "fp16"
        )
        self.progress = Progress()

    def train(self, report: Callable[[EpochReport], None]) -> Progress:
        """Train to the last epoch, from the stored checkpoint if there is one. Leaves the best weights in `model`."""
        self._restore()
        for epoch in range(self.progress.epoch, self.training_plan.schedule.epochs):
            plan = self._plan(epoch)
            self._train_epoch(epoch, plan)
            # report() may be a barrier: every rank must reach it.
            report(self._close_epoch(epoch, plan))
        self.model.load_state_dict(self.progress.best_weights)
        return self.progress

    def _plan(self, epoch: int) -> list[np.ndarray]:
        training, drawn = self.training_plan.training, self._drawn(epoch)
        batches = plan_batches(
            self._lengths[drawn], batch_tokens=training.batch_tokens, seed=training.seed, epoch=epoch
        )
        return [drawn[batch] for batch in batches]

    def _drawn(self, epoch: int) -> np.ndarray:
        """The rows of one epoch: all of them, or a sample smoothed over languages."""
        if self.training_plan.sampling_alpha == 1.0:
            return np.arange(len(self.data.part))
        return language_sampling(
            self.data.part.languages,
            alpha=self.training_plan.sampling_alpha,
            seed=self.training_plan.training.seed,
            epoch=epoch,
        )

    def _train_epoch(self, epoch: int, plan: list[np.ndarray]) -> None:
        self.model.train()
        started = time.monotonic()
        spent = self.progress.seconds
        for step in range(self.progress.step, len(plan)):
            sums = self._step(epoch, step, plan[step])
            self.progress.sums = [a + b for a, b in zip(self.progress.sums, sums, strict=True)]
            self.progress.step = step + 1
            self.progress.seconds = spent + time.monotonic() - started
            if (step + 1) % self.training_plan.checkpoint_steps == 0 and step + 1 < len(plan):
                self._save()

    def _step(self, epoch: int, step: int, rows: np.ndarray) -> list[float]:
        """One optimiser step on one global batch; returns this worker's sums (kd, gold, total)."""
        training, worker = self.training_plan.training, self.worker
        torch.manual_seed(_seed(training.seed, epoch, step, worker.rank))
        own = worker_slice(rows, worker.rank, worker.world)
        # A batch smaller than the number of workers leaves some with nothing: they run one sentence at weight 0.
        batch = self.data.gather(own if len(own) else rows[:1], worker.device)
        lam = self._kd_weight(epoch)
        with torch.autocast(
            worker.device.type, dtype=_dtype(training), enabled=training.precision != "float32"
        ):
            chain = self._ddp(batch.text)
        kd_B, gold_B = self._losses(chain, batch, lam)
        loss_B = lam * kd_B + (1 - lam) * gold_B
        weight = (worker.world if len(own) else 0.0) / self._size(rows)
        self._optimiser.zero_grad(set_to_none=True)
        self._scaler.scale(loss_B.sum() * weight).backward()
        self._scaler.unscale_(self._optimiser)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), training.gradient_clip)
        if not self._scaler.is_enabled() and not bool(torch.isfinite(norm)):
            raise RunError(
                f"epoch {epoch}, step {step}: the gradient is not finite; lower training.learning_rate "
                f"(now {training.learning_rate}) or use training.precision: float32"
            )
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self._rate.step()
        counted = 1.0 if len(own) else 0.0
        return [counted * float(part.sum()) for part in (kd_B.detach(), gold_B.detach(), loss_B.detach())]

    def _losses(self, chain: Any, batch: Batch, lam: float) -> tuple[Tensor, Tensor]:
        # The gold term is computed even at weight 0: it touches every parameter, which DDP wants.
        gold_B = log_partition(chain) - score(chain, batch.reference_BT)
        if lam == 0.0 or batch.teacher is None:
            return torch.zeros_like(gold_B), gold_B
        return self.training_plan.objective.loss(chain, batch.teacher), gold_B

    def _kd_weight(self, epoch: int) -> float:
        return (
            0.0
            if self.training_plan.objective.kind in LABELS
            else self.training_plan.schedule.kd_weight(epoch)
        )

    def _size(self, rows: np.ndarray) -> int:
        per_token = self.training_plan.training.loss_average == "token"
        return int(self.data.part.text.lengths[rows].sum()) if per_token else len(rows)

    def _close_epoch(self, epoch: int, plan: list[np.ndarray]) -> EpochReport:
        kd, gold, total = self._over_workers(self.progress.sums)
        sentences = sum(len(rows) for rows in plan)
        tokens = int(self.data.part.text.lengths[np.concatenate(plan)].sum())
        rate = self._optimiser.param_groups[0]["lr"]
        dev = self._evaluate(self.model)
        self._rate.epoch(dev["mean"])
        report = EpochReport(
            epoch=epoch, kd_weight=self._kd_weight(epoch), loss=total / sentences, kd_loss=kd / sentences,
            gold_loss=gold / sentences, learning_rate=rate, dev=dev,
            tokens_per_second=tokens / max(self.progress.seconds, 1e-9),
        )  # fmt: skip
        self._advance(report)
        self._save()
        return report

    def _advance(self, report: EpochReport) -> None:
        progress = self.progress
        if report.dev["mean"] > progress.best_dev:
            progress.best_dev, progress.best_epoch = report.dev["mean"], report.epoch
            progress.best_weights = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}
        progress.history.append(report.metrics())
        progress.epoch, progress.step, progress.sums, progress.seconds = report.epoch + 1, 0, [0.0] * 3, 0.0

    def _over_workers(self, sums: list[float]) -> list[float]:
        if self.worker.world == 1:
            return sums
        total = torch.tensor(sums, dtype=torch.float64 if self.worker.device.type == "cpu" else torch.float32)
        total = total.to(self.worker.device)
        dist.all_reduce(total)
        return total.tolist()

    def _save(self) -> None:
        # Sums differ between workers until they are reduced, so a checkpoint inside an epoch holds the total on rank 0.
        sums = self._over_workers(self.progress.sums)
        if self.worker.rank == 0:
            state = {
                "progress": {**vars(self.progress), "sums": sums},
                "model": self.model.state_dict(),
                "optimiser": self._optimiser.state_dict(),
                "rate": self._rate.state_dict(),
                "scaler": self._scaler.state_dict(),
            }
            buffer = io.BytesIO()
            torch.save(state, buffer)
            self.folder.write(CHECKPOINT, buffer.getvalue())

    def _restore(self) -> None:
        if not self.folder.exists(CHECKPOINT):
            return
        buffer = io.BytesIO(self.folder.read(CHECKPOINT))
        state = torch.load(buffer, map_location=self.worker.device, weights_only=True)
        self.progress = Progress(**state["progress"])
        if self.worker.rank > 0:
            self.progress.sums = [0.0] * 3
        self.model.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._rate.load_state_dict(state["rate"])
        self._scaler.load_state_dict(state["scaler"])


def _seed(seed: int, epoch: int, step: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, step, rank]).generate_state(1, np.uint32)[0])


def _dtype(training: TrainingConfig) -> torch.dtype:
    return torch.float16 if training.precision == "fp16" else torch.bfloat16
