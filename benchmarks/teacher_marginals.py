"""Teachers by their best labelling, and by the likeliest label of each word, on test (Wang et al. 2021, Table 6).

    python benchmarks/teacher_marginals.py STORE TEACHER…    `raykd plan` names the teachers of a sweep

A MaxEnt student learns the token marginals of its teacher (cases 2a and 4). What they know by themselves is how well
the likeliest label of each word does; the best labelling also knows which labels follow each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from raykd.layers import Output
from raykd.results import Score
from raykd.runs.data import corpus_of, part_of
from raykd.runs.distil import Worker
from raykd.runs.evaluate import predict
from raykd.runs.models import MODEL, load_model
from raykd.runs.run import Run
from raykd.storage import Storage
from raykd.structures import token_marginals
from raykd.tasks import TASKS
from raykd.tasks.labels import best_labels


def likeliest_labels(output: Output) -> list[np.ndarray]:
    """The label of the highest marginal of every word of each sentence of a batch."""
    labels_BT = token_marginals(output.distribution).argmax(2).cpu().numpy()
    lengths_B = output.distribution.lengths_B.tolist()
    return [labels[:length] for labels, length in zip(labels_BT, lengths_B, strict=True)]


DECODINGS: Mapping[str, Callable[[Output], list[np.ndarray]]] = {
    "best labelling": best_labels,
    "likeliest labels": likeliest_labels,
}


def scores(store: str, teacher_id: str) -> dict[str, Score]:
    """The score of one teacher on the test of its languages, by each way of decoding."""
    storage = Storage(store)
    run = storage.read_json(f"teachers/{teacher_id}/{MODEL}", Run.from_plain)
    part, task, tag_set = (
        part_of(store, run, "test"),
        TASKS[run.task],
        corpus_of(store, run.corpus_id).tag_set,
    )
    model, worker = load_model(storage, run), Worker()
    gold: Any = part.labels
    return {
        name: task.score(
            gold,
            predict(model, part.text, lambda output, rows, decode=decode: decode(output), worker=worker),
            tag_set=tag_set,
            languages=list(part.languages),
        )["source"]
        for name, decode in DECODINGS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("teachers", nargs="+")
    arguments = parser.parse_args()
    every = [scores(arguments.store, teacher_id) for teacher_id in arguments.teachers]
    for name in DECODINGS:
        found = {language: value for each in every for language, value in each[name].by_language.items()}
        by_language = ", ".join(f"{language} {100 * value:.1f}" for language, value in found.items())
        print(f"{name}: {100 * fmean(found.values()):.1f} ({by_language})")


if __name__ == "__main__":
    main()
