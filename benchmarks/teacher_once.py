"""A teacher run once against a teacher inside all trials: sentences a second, and seconds of a sweep.

    python benchmarks/teacher_once.py CHECKPOINT CORPUS     CORPUS: a folder of CoNLL files, {lang}/train.conllu
    python benchmarks/teacher_once.py CHECKPOINT CORPUS --precision bf16 --sentences 2000

The teacher is CHECKPOINT with a new head. Contestants, on one thread, over the same unlabelled sentences, three rounds
in turns:

    precompute    the teacher reads every sentence, and logits and hidden states of a layer are written to the store
    student       an epoch of a student (E 100, H 200) that learns both from the store
    teacher       the teacher reads the student's batches, and nothing is written: the further cost of an epoch with
                  the teacher inside the trial, as in a loop that runs both models on each batch

A trial with the teacher inside costs student + teacher in each epoch. A sweep with raykd costs one precompute, and
student in each epoch. Seconds are medians.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from raykd.corpora.batching import plan_batches
from raykd.figures.results import Score
from raykd.precompute.pipeline import Placement, Row
from raykd.precompute.plan import PrecomputePlan, precompute
from raykd.precompute.shard_writer import ShardWriter
from raykd.precompute.transfer import transfer_plan
from raykd.recipes.recipe import Recipe
from raykd.recipes.run import Run
from raykd.recipes.signal_needs import stored_needs
from raykd.storage.store import Storage
from raykd.structures import token_marginals
from raykd.training.data import encoded_part
from raykd.training.execute import execute_run, training_plan
from raykd.training.model_folder import build_model, load_model
from raykd.training.prepare import Preparation, prepare
from raykd.training.student_runs import student_runs
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker

BATCH_TOKENS = 2000


def english(corpus: str, sentences: int) -> dict[str, Any]:
    """Return the `corpus` section for English WikiAnn: 300 labelled sentences, and `sentences` without labels."""
    return {
        "source": "conll", "root": corpus, "languages": ("en",), "train": "{lang}/train.conllu",
        "columns": {"token": 1, "tag": 2}, "scheme": "iob2", "cap": 300, "unlabelled": "rest",
        "unlabelled_cap": sentences, "split": {"train": 1, "dev": 1, "test": 1},
    }  # fmt: skip


def recipe(checkpoint: str, corpus: str, sentences: int, precision: str, layer: int) -> Recipe:
    """Return the recipe of a student of logits and hidden states.

    The teacher is trained for one step, as its cost does not depend on its training.
    """
    return Recipe.model_validate(
        {
            "task": "ner",
            "corpus": english(corpus, sentences),
            "teachers": {
                "kind": "hf_token_classifier", "path": checkpoint, "fine_tune": True, "vocabulary": "pruned",
                "precision": precision, "max_steps": 1,
            },
            "student": {
                "kind": "bilstm", "embedding_dim": 100, "hidden_dim": 200, "decoder": "maxent",
                "projection": "teacher", "vocabulary": {"kind": "teacher", "pruned": True},
            },
            "stages": (
                {
                    "text": "unlabelled",
                    "objective": {
                        "kind": "mix",
                        "parts": (
                            {"objective": {"kind": "logits"}},
                            {"objective": {"kind": "representation", "layer": layer}},
                        ),
                    },
                },
            ),
            "schedule": {"epochs": 1},
            "training": {"batch_tokens": BATCH_TOKENS},
        }
    )  # fmt: skip


def read_once(ready: Preparation, student_recipe: Recipe) -> float:
    """Compute the signals in one actor, and return the seconds a sentence."""
    shutil.rmtree(Path(ready.storage.uri) / "transfer", ignore_errors=True)
    needs = stored_needs([student_recipe], unlabelled=ready.unlabelled)
    plan = transfer_plan(ready.storage, [(ready.teachers[0], needs)])
    assert plan is not None

    def launch(plan: PrecomputePlan, rows: Iterable[Row], placement: Placement) -> Iterator[Row]:
        actor = ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget)
        yield from map(actor, rows)

    started = time.perf_counter()
    precompute(plan, launch=launch)
    return (time.perf_counter() - started) / len(plan.tasks[0].text)


def student_epoch(ready: Preparation, run: Run) -> float:
    """Train one epoch of the student, and return the seconds a sentence.

    Building the student and selecting on dev are not counted.
    """
    plan = training_plan(ready.storage.uri, run)
    with tempfile.TemporaryDirectory() as folder, closing(plan.stages[0].data()) as data:
        words = int(data.part.text.lengths[data.rows].sum())
        distiller = Distiller(
            build_model(ready.storage, run), plan, evaluate=lambda model: Score(0.0, 0.0, {}, ()),
            folder=Storage(folder), worker=Worker(),
        )  # fmt: skip
        (epoch,) = distiller.train(lambda _: None).history
        return words / epoch["tokens_per_second"] / len(data.rows)


def teacher_pass(ready: Preparation, run: Run, layer: int) -> float:
    """Run the teacher on batches of the student's size, and return the seconds a sentence."""
    teacher = ready.teachers[0].run
    model, text = (
        load_model(ready.storage, teacher).eval(),
        encoded_part(ready.storage.uri, teacher, "unlabelled").text,
    )
    batches = plan_batches(text.piece_lengths, batch_tokens=BATCH_TOKENS, seed=0, epoch=0)
    with torch.inference_mode():
        started = time.perf_counter()
        for rows in batches:
            token_marginals(model(text.gather(rows), layers=(layer,)).distribution)
        return (time.perf_counter() - started) / sum(len(rows) for rows in batches)


def main() -> None:
    """Print sentences a second, and the costs of sweeps of some sizes both ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("corpus")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--layer", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        student_recipe = recipe(
            arguments.checkpoint, arguments.corpus, arguments.sentences, arguments.precision, arguments.layer
        )
        ready = prepare(student_recipe, Storage(folder))
        execute_run(folder, ready.teachers[0].run, worker=Worker(), report=lambda _: None)
        read_once(ready, student_recipe)
        (run,) = student_runs(student_recipe, ready)
        contestants = {
            "precompute": lambda: read_once(ready, student_recipe),
            "student": lambda: student_epoch(ready, run),
            "teacher": lambda: teacher_pass(ready, run, arguments.layer),
        }
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(arguments.rounds):
            for name, measure in contestants.items():
                times[name].append(measure())
    once, student, teacher = (statistics.median(seconds) for seconds in times.values())
    for name, seconds in times.items():
        print(f"{name:12s} {1 / statistics.median(seconds):8.0f} sentences/s")
    print("| trials | epochs | teacher once: s / 1,000 sentences | inside each trial | ratio |")
    print("|---:|---:|---:|---:|---:|")
    for trials, epochs in ((1, 1), (1, 10), (20, 10), (50, 30)):
        stored, inside = once + trials * epochs * student, trials * epochs * (student + teacher)
        print(
            f"| {trials} | {epochs} | {1000 * stored:,.0f} | {1000 * inside:,.0f} | {inside / stored:.1f}× |"
        )


if __name__ == "__main__":
    main()
