"""The section on models: labelling, training steps of students, and fine-tuning against a plain loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median

import torch
from fine_tuning import sentences_a_second
from side_by_side import loop_of, prepared, recipe
from student_costs import VOCABULARY, WIDTH, student, teacher

from gpu_sections.chains import clock_of, median_ms
from gpu_sections.checkpoint import make_checkpoint
from gpu_sections.runner import Place
from gpu_sections.tables import print_head, print_row
from raykd.layers.model import Model
from raykd.precompute.gpu_cost import GraphedLabeller
from raykd.precompute.latency import labelling_call, synthetic_batch
from raykd.training.student_runs import student_runs

STUDENTS = ((50, 100), (300, 600))
STEP_SIZES = ((64, 128), (128, 256))
BATCH_TOKENS = 2000
PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}


def time_models(place: Place) -> None:
    """Print milliseconds of labelling and of training steps, and sentences a second of fine-tuning."""
    _time_labelling(place)
    _time_steps(place)
    _time_fine_tuning(place)


def _time_labelling(place: Place) -> None:
    batches, rounds = ((1, 2), 1) if place.small else ((1, 32, 512), 20)
    print(
        "Milliseconds to label a batch of sentences of 32 pieces, decoding on the device included; as one CUDA graph"
    )
    print("the batch is sent and the labels are fetched too (goal: (50, 100) at most 0.5 ms at batch 32).\n")
    print_head("model", "precision", *(f"batch {size}" for size in batches))
    sizes = STUDENTS[:1] if place.small else STUDENTS
    models = {f"BiLSTM {size}": partial(student, *size, WIDTH) for size in sizes}
    if not place.small:
        models["teacher of mBERT's shape"] = teacher
    for name, build in models.items():
        model = build().to(place.device).eval()
        for precision, dtype in PRECISIONS.items():
            with (
                torch.inference_mode(),
                torch.autocast(place.device, dtype, enabled=dtype != torch.float32),
            ):
                spent = [_labelling_ms(model, size, place.device, rounds) for size in batches]
            print_row(name, precision, *(f"{ms:.2f}" for ms in spent))
            if place.device == "cuda":
                with torch.inference_mode():
                    spent = [_graph_ms(model, size, rounds, bf16=precision == "bf16") for size in batches]
                print_row(f"{name}, one graph", precision, *(f"{ms:.2f}" for ms in spent))


def _labelling_ms(model: Model, sentences: int, device: str, rounds: int) -> float:
    batch = synthetic_batch(sentences, VOCABULARY).to(device)
    return median_ms(labelling_call(model, batch), device, rounds=rounds)


def _graph_ms(model: Model, sentences: int, rounds: int, *, bf16: bool) -> float:
    batch, device = synthetic_batch(sentences, VOCABULARY), torch.device("cuda")
    return median_ms(GraphedLabeller(model, batch, device, bf16=bf16), "cuda", rounds=rounds)


def _time_steps(place: Place) -> None:
    print(
        f"\nMilliseconds of a training step of a BiLSTM-CRF on `structural`, batches of {BATCH_TOKENS:,} pieces"
    )
    print("(goal: at most 4).\n")
    print_head("E, H", "a step")
    clock, ready = clock_of(place.device), None
    for size in STEP_SIZES[:1] if place.small else STEP_SIZES:
        student_recipe = recipe(None, size, "crf", batch_tokens=BATCH_TOKENS)
        if ready is None:
            ready = prepared(
                f"{place.folder}/steps", student_recipe
            )  # corpus and teacher are the same for all sizes
        (run,) = student_runs(student_recipe, ready)
        loop, spent = loop_of(ready, run, torch.device(place.device)), []
        for number, rows in enumerate(loop._batches(0)):
            started = clock()
            loop._train_batch(0, number, rows)
            spent.append(clock() - started)
        print_row(f"{size[0]}, {size[1]}", f"{1e3 * median(spent[2:]):.2f}")


def _time_fine_tuning(place: Place) -> None:
    precision, sentences, rounds = ("float32", 48, 1) if place.small else ("bf16", 1000, 3)
    corpus = {
        "source": "builtin", "languages": ("en",), "train": sentences, "dev": 8, "test": 8, "unlabelled": 0,
    }  # fmt: skip
    folder = Path(place.folder, "fine-tuning")
    folder.mkdir()
    checkpoint = make_checkpoint(folder / "checkpoint", corpus, small=place.small)
    print(
        f"\nFine-tuning an encoder of e5-small's shape with random weights, {precision}, batches of 32 sentences of"
    )
    print("the built-in corpus (goal: 1.2 × the loop grouped by length).\n")
    print_head("loop", "sentences/s", "of grouped by length")
    speed = sentences_a_second(
        checkpoint, corpus, str(folder), precision=precision, rounds=rounds, device=torch.device(place.device)
    )
    for name, value in speed.items():
        print_row(name, f"{value:.0f}", f"{value / speed['Transformers, grouped by length']:.2f}×")
