"""The gain of the best legal labelling, and the effect of the count: the scores of one model, decoded in three ways.

    python benchmarks/legal_decoding.py STORE RUN…    ids of runs and teachers; `raykd list STORE --kind runs`

own        a MaxEnt model: the best label of every word; a CRF: the best labelling under its learnt transitions
legal      the best labelling among those that BIOES allows; a CRF keeps its learnt transitions

F1 is counted as conlleval counts it. `strict` is F1 as seqeval's strict mode counts it: a malformed span is no
prediction. Look at dev to decide; test stands beside it. Figures are means over the seeds of one shape, with their
spread, in percent.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
from seqeval.metrics import f1_score
from seqeval.scheme import IOBES

from raykd.figures.trial import shape_name
from raykd.forms.targets import best_labels
from raykd.layers.model import Output
from raykd.metrics.bioes import read_spans
from raykd.recipes.run import Run
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.structures import Chain, LegalTransitions
from raykd.tasks import TASKS
from raykd.training.data import cached_corpus, encoded_part, run_labels
from raykd.training.evaluate import predict
from raykd.training.model_folder import load_model
from raykd.training.worker import Worker

PARTS = ("dev", "test")
Scores = Mapping[str, float]


def decoded(output: Output, legal: LegalTransitions) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for the sentences of a batch, pairs of labellings: as the model decodes, and the best legal one."""
    unrestricted = replace(output, legal=None)
    chain = output.distribution
    restricted = replace(
        unrestricted, distribution=legal.restrict(chain) if isinstance(chain, Chain) else chain
    )
    return list(zip(best_labels(unrestricted), best_labels(restricted), strict=True))


def scores(storage: Storage, run: Run) -> Scores:
    """Return the scores of a model on dev and test, and the share of sentences with a malformed span."""
    model, labels = load_model(storage, run), run_labels(storage.uri, run)
    legal, task, results = labels.legal(), TASKS[run.task], {}
    if legal is None:
        raise SystemExit(
            f"{run.id}: any label may follow any label here; name runs of models that label spans"
        )
    for name in PARTS:
        part = encoded_part(storage.uri, run, name)
        gold: Any = part.labels
        tags, languages = cached_corpus(storage.uri, run.corpus_id).tag_set, list(part.languages)
        answers = predict(model, part.text, lambda output, rows: decoded(output, legal), worker=Worker())
        for kind, predicted in zip(("own", "legal"), zip(*answers, strict=True), strict=True):
            score = task.score(gold, predicted, tag_set=tags, languages=languages)["source"]
            results[f"{name} {kind}"] = score.mean
        predicted = [tags.decode(path) for path, _ in answers]
        results[f"{name} strict"] = _strict(gold.lists(tags.tags), predicted, languages)
        results[f"{name} malformed"] = fmean(_is_malformed(path) for path in predicted)
    return results


def _strict(gold: Sequence[Any], predicted: Sequence[Any], languages: Sequence[str]) -> float:
    def of_language(language: str) -> float:
        rows = [row for row, row_language in enumerate(languages) if row_language == language]
        sides = ([list(side[row]) for row in rows] for side in (gold, predicted))
        return float(f1_score(*sides, mode="strict", scheme=IOBES))

    return fmean(map(of_language, sorted(set(languages))))


def _is_malformed(tags: Sequence[str]) -> bool:
    """Return True if writing the spans of a sentence again gives different tags."""
    spans = read_spans(tags)
    written = ["O"] * len(tags)
    for start, end, kind in spans:
        written[start:end] = [f"I-{kind}"] * (end - start)
        written[start], written[end - 1] = f"B-{kind}", f"E-{kind}"
        if end - start == 1:
            written[start] = f"S-{kind}"
    return written != list(tags)


def _run(storage: Storage, name: str) -> Run:
    kind = "teachers" if name.startswith("teacher-") else "runs"
    return storage.read_json(f"{kind}/{name}/{MODEL}", Run.from_plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("runs", nargs="+")
    arguments = parser.parse_args()
    storage, by_shape = Storage(arguments.store), defaultdict(list)
    for name in arguments.runs:
        run = _run(storage, name)
        by_shape[f"{run.role} {run.model['kind']} {shape_name(run.model)}".strip()].append(
            scores(storage, run)
        )
    heads = [f"{part} {kind}" for part in PARTS for kind in ("strict", "own", "legal", "malformed")]
    print("| model | seeds |", " | ".join(heads), "| test, legal over own |")
    print("|---" * (3 + len(heads)) + "|")
    for shape, shape_scores in by_shape.items():
        cells = [_cell([seed_scores[head] for seed_scores in shape_scores]) for head in heads]
        gain = _cell(
            [seed_scores["test legal"] - seed_scores["test own"] for seed_scores in shape_scores], sign="+"
        )
        print(f"| {shape} | {len(shape_scores)} |", " | ".join(cells), f"| {gain} |", flush=True)


def _cell(values: Sequence[float], sign: str = "") -> str:
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):{sign}.2f}{spread}"


if __name__ == "__main__":
    main()
