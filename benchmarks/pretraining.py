"""Masked language modelling, with and without a teacher in the step: raykd against the Trainer of Transformers.

    pip install accelerate                                          what the Trainer needs beside Transformers
    python benchmarks/pretraining.py TEXT                           TEXT: a file with a sentence in each line
    python benchmarks/pretraining.py TEXT --precision bf16 --device cuda --sentences 20000

Both train the same encoder on the same sentences in the same pieces, by AdamW, and hide 15 % of them. The Trainer does
what its users write: DataCollatorForLanguageModeling, batches of 32 grouped by length (and at random); with a teacher
its `compute_loss` is overridden by the cross-entropy with the teacher's output at the hidden pieces and the distance of
two layers' hidden states. raykd's loop cuts batches of as many padded pieces. They take turns, one epoch each, in one
process; the ratio is of medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

from raykd.figures.results import Score
from raykd.recipes.recipe import Recipe
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.data import encoded_part
from raykd.training.execute import execute_run, training_plan
from raykd.training.model_folder import build_model
from raykd.training.prepare import prepare, student_runs
from raykd.training.training_loop import Distiller
from raykd.training.transformers_checkpoint import export_checkpoint
from raykd.training.worker import Worker

BATCH = 32
LAYERS, WEIGHT = (1, 2), 0.01
OBJECTIVES: dict[str, dict[str, Any]] = {
    "alone": {"kind": "gold"},
    "with a teacher": {
        "kind": "mix",
        "parts": (
            {"objective": {"kind": "gold"}},
            {"objective": {"kind": "token"}},
            {"objective": {"kind": "hidden_states", "layers": LAYERS}, "weight": WEIGHT},
        ),
    },
}


def recipe(text: Path, given: argparse.Namespace, **changes: Any) -> Recipe:
    """Pretraining on the sentences of a file, one epoch."""
    student = {
        "kind": "encoder", "embedding_dim": given.size, "layers": 2, "heads": 4,
        "vocabulary": {"kind": "bert", "size": given.pieces},
    }  # fmt: skip
    tree = {
        "task": "masked_lm",
        "corpus": {
            "source": "text", "root": str(text.parent), "languages": ("xx",), "train": text.name,
            "cap": given.sentences + 80, "split": {"train": given.sentences // 40, "dev": 1, "test": 1},
        },
        "teachers": {"kind": "none"},
        "student": student,
        "objective": {"kind": "gold"},
        "schedule": {"epochs": 1},
        "training": {
            "optimiser": "adamw", "learning_rate": 5e-4, "batch_tokens": 2000, "loss_average": "token",
            "dropout": 0.1, "gradient_clip": 1.0, "precision": given.precision,
        },
    }  # fmt: skip
    return Recipe.model_validate({**tree, **changes})


def raykd_epoch(ready: Any, run: Run, device: torch.device) -> Callable[[], float]:
    """One epoch of raykd's loop; gives its seconds, without those of building and of selecting on dev."""
    folder = ready.storage.uri
    tokens = int(encoded_part(folder, run, "train").text.lengths.sum())

    def epoch() -> float:
        with tempfile.TemporaryDirectory() as own:
            distiller = Distiller(
                build_model(ready.storage, run).to(device), training_plan(folder, run),
                worker=Worker(device=device), evaluate=lambda model: Score(0.0, 0.0, {}, ()), folder=Storage(own),
            )  # fmt: skip
            (epoch,) = distiller.train(lambda _: None).history
        return tokens / epoch["tokens_per_second"]

    return epoch


class Distilling(Trainer):
    """The Trainer with a teacher, as users write it."""

    def __init__(self, *args: Any, teacher: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval()
        wide, narrow = teacher.config.hidden_size, self.model.config.hidden_size
        self.maps = torch.nn.ModuleList(torch.nn.Linear(narrow, wide) for _ in LAYERS).to(self.args.device)

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        """Cross-entropy with the labels and with the teacher, and the distance of hidden states."""
        labels = inputs["labels"]
        hidden = labels != -100
        own = model(**inputs, output_hidden_states=True)
        with torch.no_grad():
            read = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            given = self.teacher(**read, output_hidden_states=True)
        targets, scores = given.logits[hidden].softmax(-1), own.logits[hidden].log_softmax(-1)
        loss = own.loss - (targets * scores).sum(-1).mean()
        inside = inputs["attention_mask"].bool()
        for layer, brought in zip(LAYERS, self.maps, strict=True):
            apart = given.hidden_states[layer] - brought(own.hidden_states[layer])
            loss = loss + WEIGHT * apart[inside].norm(dim=-1).sum() / hidden.sum()
        return (loss, own) if return_outputs else loss


def trainer_epoch(
    student: str, rows: list[list[int]], given: argparse.Namespace, *, grouped: bool, teacher: str | None
) -> Callable[[], float]:
    """One epoch of the Trainer; gives its seconds."""
    tokenizer = AutoTokenizer.from_pretrained(student)
    data = [{"input_ids": row, "attention_mask": [1] * len(row)} for row in rows]

    def epoch() -> float:
        model = AutoModelForMaskedLM.from_pretrained(student)
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder, per_device_train_batch_size=BATCH, num_train_epochs=1, learning_rate=5e-4,
                max_grad_norm=1.0, lr_scheduler_type="constant", report_to=[], save_strategy="no",
                logging_strategy="no", disable_tqdm=True, use_cpu=given.device == "cpu",
                bf16=given.precision == "bf16",
                train_sampling_strategy="group_by_length" if grouped else "random",
            )  # fmt: skip
            options: dict[str, Any] = {
                "train_dataset": data, "data_collator": DataCollatorForLanguageModeling(tokenizer),
            }  # fmt: skip
            trainer = (
                Trainer(model, arguments, **options)
                if teacher is None
                else Distilling(
                    model, arguments, teacher=AutoModelForMaskedLM.from_pretrained(teacher), **options
                )
            )
            started = time.perf_counter()
            trainer.train()
            return time.perf_counter() - started

    return epoch


def main() -> None:
    """Print sentences a second of each, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument(
        "--size", type=int, default=128, help="of the student's states; the teacher has twice as many"
    )
    parser.add_argument("--pieces", type=int, default=16000)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    device = torch.device(given.device)
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(str(Path(folder) / "store"))
        places = {}
        for name, size in (("student", given.size), ("teacher", 2 * given.size)):
            asked = recipe(given.text, given)
            asked = recipe(given.text, given, student={**asked.student.model_dump(), "embedding_dim": size})
            ready = prepare(asked, storage)
            (run,) = student_runs(asked, ready)
            execute_run(storage.uri, run, worker=Worker(device=device), report=lambda _: None)
            places[name] = str(Path(folder) / name)
            export_checkpoint(storage.child(*run.folder), Storage(places[name]))
        part = encoded_part(storage.uri, run, "train")
        rows = [part.text.text.gather(np.array([n])).pieces_BP[0].tolist() for n in range(len(part))]
        padded = BATCH * int(part.text.piece_lengths.mean())
        for case, objective in OBJECTIVES.items():
            teacher = places["teacher"] if case == "with a teacher" else None
            teachers = {"kind": "hf_masked_lm", "path": teacher} if teacher else {"kind": "none"}
            first = recipe(given.text, given)
            training = {**first.training.model_dump(), "batch_tokens": padded}
            own = {**first.student.model_dump(), **({"vocabulary": {"kind": "teacher"}} if teacher else {})}
            asked = recipe(
                given.text, given, teachers=teachers, objective=objective, training=training, student=own
            )
            ready = prepare(asked, storage)
            for planned in ready.teachers:
                execute_run(storage.uri, planned.run, worker=Worker(device=device), report=lambda _: None)
            (run,) = student_runs(asked, ready)
            contestants = {
                "Trainer, random batches": trainer_epoch(
                    places["student"], rows, given, grouped=False, teacher=teacher
                ),
                "Trainer, grouped by length": trainer_epoch(
                    places["student"], rows, given, grouped=True, teacher=teacher
                ),
                "raykd": raykd_epoch(ready, run, device),
            }
            times: dict[str, list[float]] = {name: [] for name in contestants}
            for _ in range(given.rounds):
                for name, epoch in contestants.items():
                    times[name].append(epoch())
            speed = {name: len(rows) / statistics.median(each) for name, each in times.items()}
            for name, value in speed.items():
                ratio = value / speed["Trainer, grouped by length"]
                print(f"{case:15s} {name:28s} {value:7.1f} sentences/s   {ratio:.2f}×")


if __name__ == "__main__":
    main()
