"""Masked language modelling, with and without a teacher: raykd against the Trainer of Transformers.

    pip install accelerate                                          a package that the Trainer needs
    python benchmarks/pretraining.py TEXT                           TEXT: a file with a sentence in each line
    python benchmarks/pretraining.py TEXT --precision bf16 --device cuda --sentences 20000

Both train the same encoder on the same sentences in the same pieces by AdamW, and hide 15 % of the pieces. The Trainer
is used as its documentation shows: DataCollatorForLanguageModeling, batches of 32 sentences, at random or grouped by
length. With a teacher, `compute_loss` adds the cross-entropy with the teacher's output at hidden pieces and the
distance of the hidden states of two layers. raykd's loop cuts batches of as many padded pieces. The loops take turns,
one epoch each, in one process; the ratio is of medians.
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
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
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


def recipe(text: Path, arguments: argparse.Namespace, **changes: Any) -> Recipe:
    """Return a recipe for one epoch of pretraining on the sentences of a file."""
    student = {
        "kind": "encoder", "embedding_dim": arguments.size, "layers": 2, "heads": 4,
        "vocabulary": {"kind": "bert", "size": arguments.pieces},
    }  # fmt: skip
    tree = {
        "task": "masked_lm",
        "corpus": {
            "source": "text", "root": str(text.parent), "languages": ("xx",), "train": text.name,
            "cap": arguments.sentences + 80, "split": {"train": arguments.sentences // 40, "dev": 1, "test": 1},
        },
        "teachers": {"kind": "none"},
        "student": student,
        "objective": {"kind": "gold"},
        "schedule": {"epochs": 1},
        "training": {
            "optimiser": "adamw", "learning_rate": 5e-4, "batch_tokens": 2000, "loss_average": "token",
            "dropout": 0.1, "gradient_clip": 1.0, "precision": arguments.precision,
        },
    }  # fmt: skip
    return Recipe.model_validate({**tree, **changes})


def raykd_epoch(ready: Any, run: Run, device: torch.device) -> Callable[[], float]:
    """Return a function for one epoch in raykd's loop; the function returns the seconds.

    Building the model and selecting on dev are not counted.
    """
    folder = ready.storage.uri
    tokens = int(encoded_part(folder, run, "train").text.lengths.sum())

    def epoch() -> float:
        with tempfile.TemporaryDirectory() as scratch:
            distiller = Distiller(
                build_model(ready.storage, run).to(device), training_plan(folder, run),
                worker=Worker(device=device), evaluate=lambda model: Score(0.0, 0.0, {}, ()), folder=Storage(scratch),
            )  # fmt: skip
            (epoch,) = distiller.train(lambda _: None).history
        return tokens / epoch["tokens_per_second"]

    return epoch


class Distilling(Trainer):
    """A Trainer with a teacher, as users write it."""

    def __init__(self, *args: Any, teacher: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.to(self.args.device).eval()
        wide, narrow = teacher.config.hidden_size, self.model.config.hidden_size
        self.maps = torch.nn.ModuleList(torch.nn.Linear(narrow, wide) for _ in LAYERS).to(self.args.device)

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        """Return the cross-entropy with labels and teacher plus the distance of hidden states."""
        labels = inputs["labels"]
        hidden = labels != -100
        student_output = model(**inputs, output_hidden_states=True)
        with torch.no_grad():
            read = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            teacher_output = self.teacher(**read, output_hidden_states=True)
        targets, scores = (
            teacher_output.logits[hidden].softmax(-1),
            student_output.logits[hidden].log_softmax(-1),
        )
        loss = student_output.loss - (targets * scores).sum(-1).mean()
        inside = inputs["attention_mask"].bool()
        for layer, brought in zip(LAYERS, self.maps, strict=True):
            apart = teacher_output.hidden_states[layer] - brought(student_output.hidden_states[layer])
            loss = loss + WEIGHT * apart[inside].norm(dim=-1).sum() / hidden.sum()
        return (loss, student_output) if return_outputs else loss


def trainer_epoch(
    student: str, rows: list[list[int]], arguments: argparse.Namespace, *, grouped: bool, teacher: str | None
) -> Callable[[], float]:
    """Return a function for one epoch with the Trainer; the function returns the seconds."""
    tokenizer = AutoTokenizer.from_pretrained(student)
    data = [{"input_ids": row, "attention_mask": [1] * len(row)} for row in rows]

    def epoch() -> float:
        model = AutoModelForMaskedLM.from_pretrained(student)
        with tempfile.TemporaryDirectory() as folder:
            training_arguments = TrainingArguments(
                folder, per_device_train_batch_size=BATCH, num_train_epochs=1, learning_rate=5e-4,
                max_grad_norm=1.0, lr_scheduler_type="constant", report_to=[], save_strategy="no",
                logging_strategy="no", disable_tqdm=True, use_cpu=arguments.device == "cpu",
                bf16=arguments.precision == "bf16",
                train_sampling_strategy="group_by_length" if grouped else "random",
            )  # fmt: skip
            options: dict[str, Any] = {
                "train_dataset": data, "data_collator": DataCollatorForLanguageModeling(tokenizer),
            }  # fmt: skip
            trainer = (
                Trainer(model, training_arguments, **options)
                if teacher is None
                else Distilling(
                    model,
                    training_arguments,
                    teacher=AutoModelForMaskedLM.from_pretrained(teacher),
                    **options,
                )
            )
            started = time.perf_counter()
            trainer.train()
            return time.perf_counter() - started

    return epoch


def main() -> None:
    """Print sentences a second and the ratios."""
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
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(str(Path(folder) / "store"))
        places = {}
        for name, size in (("student", arguments.size), ("teacher", 2 * arguments.size)):
            student_recipe = recipe(arguments.text, arguments)
            student_recipe = recipe(
                arguments.text,
                arguments,
                student={**student_recipe.student.model_dump(), "embedding_dim": size},
            )
            ready = prepare(student_recipe, storage)
            (run,) = student_runs(student_recipe, ready)
            execute_run(storage.uri, run, worker=Worker(device=device), report=lambda _: None)
            places[name] = str(Path(folder) / name)
            export_checkpoint(storage.child(*run.folder), Storage(places[name]))
        part = encoded_part(storage.uri, run, "train")
        rows = [part.text.text.gather(np.array([n])).pieces_BP[0].tolist() for n in range(len(part))]
        padded = BATCH * int(part.text.piece_lengths.mean())
        for case, objective in OBJECTIVES.items():
            teacher = places["teacher"] if case == "with a teacher" else None
            teachers = {"kind": "hf_masked_lm", "path": teacher} if teacher else {"kind": "none"}
            first = recipe(arguments.text, arguments)
            training = {**first.training.model_dump(), "batch_tokens": padded}
            student = {
                **first.student.model_dump(),
                **({"vocabulary": {"kind": "teacher"}} if teacher else {}),
            }
            student_recipe = recipe(
                arguments.text,
                arguments,
                teachers=teachers,
                objective=objective,
                training=training,
                student=student,
            )
            ready = prepare(student_recipe, storage)
            for planned in ready.teachers:
                execute_run(storage.uri, planned.run, worker=Worker(device=device), report=lambda _: None)
            (run,) = student_runs(student_recipe, ready)
            contestants = {
                "Trainer, random batches": trainer_epoch(
                    places["student"], rows, arguments, grouped=False, teacher=teacher
                ),
                "Trainer, grouped by length": trainer_epoch(
                    places["student"], rows, arguments, grouped=True, teacher=teacher
                ),
                "raykd": raykd_epoch(ready, run, device),
            }
            times: dict[str, list[float]] = {name: [] for name in contestants}
            for _ in range(arguments.rounds):
                for name, epoch in contestants.items():
                    times[name].append(epoch())
            speed = {name: len(rows) / statistics.median(seconds) for name, seconds in times.items()}
            for name, value in speed.items():
                ratio = value / speed["Trainer, grouped by length"]
                print(f"{case:15s} {name:28s} {value:7.1f} sentences/s   {ratio:.2f}×")


if __name__ == "__main__":
    main()
