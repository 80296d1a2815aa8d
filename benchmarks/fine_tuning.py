"""Fine-tuning a Transformers checkpoint: raykd's training loop against a plain loop with Transformers.

    python benchmarks/fine_tuning.py CHECKPOINT CORPUS              CORPUS: a folder of CoNLL files, {lang}/train.conllu
    python benchmarks/fine_tuning.py CHECKPOINT CORPUS --precision bf16 --sentences 2000

Both loops train the same token classifier with frozen word embeddings on the same sentences by AdamW. The plain loop is
written as users write it: batches of 32 sentences, padded to the longest, with labels at first pieces. Sentences come
in random order, or grouped by length as `group_by_length` of the Trainer does. raykd's loop cuts batches of as many
padded pieces. The loops take turns, one epoch each, in one process; the ratio is of medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForTokenClassification
from transformers.trainer_pt_utils import LengthGroupedSampler

from raykd.figures.results import Score
from raykd.recipes.recipe import Recipe
from raykd.storage.store import Storage
from raykd.training.data import encoded_part
from raykd.training.execute import training_plan
from raykd.training.model_folder import build_model
from raykd.training.prepare import prepare
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker

BATCH = 32


def english(corpus: str, sentences: int) -> dict[str, Any]:
    """Return the `corpus` section of a sweep file for a folder of CoNLL files."""
    return {
        "source": "conll", "root": corpus, "languages": ("en",), "train": "{lang}/train.conllu",
        "columns": {"token": 1, "tag": 2}, "scheme": "iob2", "cap": sentences + 8,
        "split": {"train": sentences // 8, "dev": 1, "test": 1},
    }  # fmt: skip


def recipe(checkpoint: str, corpus: dict[str, Any], precision: str, vocabulary: str) -> Recipe:
    """Return a recipe for one epoch of fine-tuning."""
    return Recipe.model_validate(
        {
            "task": "ner",
            "corpus": corpus,
            "teachers": {
                "kind": "hf_token_classifier", "path": checkpoint, "fine_tune": True, "freeze": ("embeddings",),
                "vocabulary": vocabulary, "epochs": 1,
                "training": {
                    "optimiser": "adamw", "learning_rate": 1e-4, "precision": precision, "batch_tokens": 1,
                    "gradient_clip": 1.0,
                },
            },
            "student": {"kind": "bilstm", "embedding_dim": 4, "hidden_dim": 4},
            "objective": {"kind": "gold"},
        }
    )  # fmt: skip


def plain_epoch(
    checkpoint: str, rows: list, tags: int, precision: str, *, grouped: bool, device: torch.device
) -> Callable[[], float]:
    """Return a function for one epoch in a plain Transformers loop; the function returns the seconds."""
    model = AutoModelForTokenClassification.from_pretrained(checkpoint, num_labels=tags).to(device)
    model.base_model.embeddings.requires_grad_(False)
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-4)
    draw = np.random.default_rng(0)

    def epoch() -> float:
        lengths = [len(pieces) for pieces, _, _ in rows]
        order = (
            list(LengthGroupedSampler(BATCH, lengths=lengths))
            if grouped
            else draw.permutation(len(rows)).tolist()
        )
        model.train()
        started = time.perf_counter()
        for first in range(0, len(order), BATCH):
            sentences = [rows[place] for place in order[first : first + BATCH]]
            longest = max(len(pieces) for pieces, _, _ in sentences)
            ids, labels = (
                torch.ones(len(sentences), longest, dtype=torch.long),
                torch.full((len(sentences), longest), -100),
            )
            mask = torch.zeros(len(sentences), longest, dtype=torch.long)
            for place, (pieces, firsts, gold) in enumerate(sentences):
                ids[place, : len(pieces)], mask[place, : len(pieces)] = torch.tensor(pieces), 1
                labels[place, torch.tensor(firsts)] = torch.tensor(gold)
            ids, mask, labels = (tensor.to(device) for tensor in (ids, mask, labels))
            with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            loss.item()
        return time.perf_counter() - started

    return epoch


def raykd_epoch(
    tuning_recipe: Recipe, folder: str, batch_tokens: int, *, device: torch.device
) -> Callable[[], float]:
    """Return a function for one epoch in raykd's loop; the function returns the seconds.

    Building the model and selecting on dev are not counted.
    """
    ready = prepare(tuning_recipe, Storage(folder))
    run = ready.teachers[0].run
    run = type(run).from_plain({**run.to_plain(), "training": {**run.training, "batch_tokens": batch_tokens}})
    tokens = int(encoded_part(folder, run, "train").text.lengths.sum())

    def epoch() -> float:
        with tempfile.TemporaryDirectory() as scratch:
            distiller = Distiller(
                build_model(ready.storage, run).to(device), training_plan(folder, run),
                worker=Worker(device=device),
                evaluate=lambda model: Score(0.0, 0.0, {}, ()), folder=Storage(scratch),
            )  # fmt: skip
            (epoch,) = distiller.train(lambda _: None).history
        return tokens / epoch["tokens_per_second"]

    return epoch


def sentences_a_second(
    checkpoint: str,
    corpus: dict[str, Any],
    folder: str,
    *,
    precision: str,
    rounds: int,
    device: torch.device,
) -> dict[str, float]:
    """Measure all contestants on a corpus.

    Args:
        checkpoint: Folder of the Transformers checkpoint.
        corpus: The `corpus` section of a sweep file.
        folder: Folder for raykd's stores.
        precision: `float32` or `bf16`.
        rounds: Epochs of a contestant.
        device: Device of the models.

    Returns:
        Name of the contestant to sentences a second, the median of the rounds.
    """
    recipes = {name: recipe(checkpoint, corpus, precision, name) for name in ("whole", "pruned")}
    stores = {name: str(Path(folder, name)) for name in recipes}
    ready = prepare(recipes["whole"], Storage(stores["whole"]))
    part = encoded_part(ready.storage.uri, ready.teachers[0].run, "train")
    rows = []
    for place in range(len(part)):
        batch, gold = part.text.gather(np.array([place])), part.labels.gather(np.array([place]))
        rows.append((batch.pieces_BP[0].tolist(), batch.first_BT[0].tolist(), gold.tags_BT[0].tolist()))
    tags, padded = len(ready.corpus.tag_set), BATCH * int(part.text.piece_lengths.mean())
    plain = partial(plain_epoch, checkpoint, rows, tags, precision, device=device)
    contestants = {
        "Transformers, random batches": plain(grouped=False),
        "Transformers, grouped by length": plain(grouped=True),
        "raykd": raykd_epoch(recipes["whole"], stores["whole"], padded, device=device),
        "raykd, pruned": raykd_epoch(recipes["pruned"], stores["pruned"], padded, device=device),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, epoch in contestants.items():
            times[name].append(epoch())
    return {name: len(rows) / statistics.median(seconds) for name, seconds in times.items()}


def main() -> None:
    """Print sentences a second and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("corpus")
    parser.add_argument("--sentences", type=int, default=1600)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        speed = sentences_a_second(
            arguments.checkpoint, english(arguments.corpus, arguments.sentences), folder, precision=arguments.precision,
            rounds=arguments.rounds, device=torch.device("cpu"),
        )  # fmt: skip
    for name, value in speed.items():
        print(f"{name:34s} {value:7.1f} sentences/s   {value / speed['Transformers, random batches']:.2f}×")


if __name__ == "__main__":
    main()
