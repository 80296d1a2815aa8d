"""Scores of teachers on test by the best labelling and by the likeliest labels (Wang et al. 2021, Table 6).

    python benchmarks/teacher_marginals.py STORE TEACHER…    `raykd plan` names the teachers of a sweep

A MaxEnt student learns the token marginals of its teacher (cases 2a and 4). The score of the likeliest label of every
word shows how much the marginals know. The best labelling also knows which labels follow each other.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from raykd.figures.results import Score
from raykd.forms.targets import best_labels
from raykd.layers.model import Output
from raykd.recipes.run import Run
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.structures import Chain, token_marginals
from raykd.tasks import TASKS
from raykd.training.data import cached_corpus, encoded_part
from raykd.training.evaluate import predict
from raykd.training.model_folder import load_model
from raykd.training.worker import Worker

DECODINGS = ("best labelling", "likeliest labels")


def both(output: Output, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for the sentences of a batch, the best labelling and the labels with the highest marginals."""
    of = output.distribution
    apart = replace(output, distribution=Chain(token_marginals(of), of.lengths_B), legal=None)
    return list(zip(best_labels(output), best_labels(apart), strict=True))


def scores(store: str, teacher_id: str) -> dict[str, Score]:
    """Return the scores of a teacher on test, by way of decoding."""
    storage = Storage(store)
    run = storage.read_json(f"teachers/{teacher_id}/{MODEL}", Run.from_plain)
    part, task = encoded_part(store, run, "test"), TASKS[run.task]
    gold: Any = part.labels
    tags, languages = cached_corpus(store, run.corpus_id).tag_set, list(part.languages)
    predicted = zip(*predict(load_model(storage, run), part.text, both, worker=Worker()), strict=True)
    return {
        name: task.score(gold, labellings, tag_set=tags, languages=languages)["source"]
        for name, labellings in zip(DECODINGS, predicted, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("teachers", nargs="+")
    arguments = parser.parse_args()
    teacher_scores = [scores(arguments.store, teacher_id) for teacher_id in arguments.teachers]
    for name in DECODINGS:
        scores_by_language = {
            language: value
            for decoding_scores in teacher_scores
            for language, value in decoding_scores[name].by_language.items()
        }
        by_language = ", ".join(
            f"{language} {100 * value:.1f}" for language, value in scores_by_language.items()
        )
        print(f"{name}: {100 * fmean(scores_by_language.values()):.1f} ({by_language})")


if __name__ == "__main__":
    main()
