"""What the best legal labelling is worth, and what a count leaves out: one model's scores, read in three ways.

    python benchmarks/legal_decoding.py STORE RUN…    runs and teachers by their ids; `raykd list STORE --kind runs`

own        a MaxEnt model: each word's own best label; a CRF: the best labelling under its own transitions
legal      the best labelling of those that BIOES allows; of a CRF on top of its own transitions

F1 is counted as conlleval counts it, and `strict` as seqeval's strict mode does: there a malformed span is no
prediction at all. Dev decides, test is beside it. Means over seeds of one shape, with their spread, in percent.
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
    """Of each sentence of a batch its own labelling, and the best legal one."""
    own = replace(output, legal=None)
    chain = output.distribution
    restricted = replace(own, distribution=legal.restrict(chain) if isinstance(chain, Chain) else chain)
    return list(zip(best_labels(own), best_labels(restricted), strict=True))


def scores(storage: Storage, run: Run) -> Scores:
    """The score of one model on dev and test by each reading, and the share of sentences with a malformed span."""
    model, labels = load_model(storage, run), run_labels(storage.uri, run)
    legal, task, found = labels.legal(), TASKS[run.task], {}
    if legal is None:
        raise SystemExit(f"{run.id}: every label may follow every other; give models of spans")
    for name in PARTS:
        part = encoded_part(storage.uri, run, name)
        gold: Any = part.labels
        tags, languages = cached_corpus(storage.uri, run.corpus_id).tag_set, list(part.languages)
        answers = predict(model, part.text, lambda output, rows: decoded(output, legal), worker=Worker())
        for kind, own in zip(("own", "legal"), zip(*answers, strict=True), strict=True):
            score = task.score(gold, own, tag_set=tags, languages=languages)["source"]
            found[f"{name} {kind}"] = score.mean
        own = [tags.decode(path) for path, _ in answers]
        found[f"{name} strict"] = _strict(gold.lists(tags.tags), own, languages)
        found[f"{name} malformed"] = fmean(_is_malformed(path) for path in own)
    return found


def _strict(gold: Sequence[Any], predicted: Sequence[Any], languages: Sequence[str]) -> float:
    def of_language(language: str) -> float:
        rows = [row for row, own in enumerate(languages) if own == language]
        sides = ([list(side[row]) for row in rows] for side in (gold, predicted))
        return float(f1_score(*sides, mode="strict", scheme=IOBES))

    return fmean(map(of_language, sorted(set(languages))))


def _is_malformed(tags: Sequence[str]) -> bool:
    """Whether the spans that are read, written again, are other tags."""
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
    for shape, every in by_shape.items():
        cells = [_cell([own[head] for own in every]) for head in heads]
        gain = _cell([own["test legal"] - own["test own"] for own in every], sign="+")
        print(f"| {shape} | {len(every)} |", " | ".join(cells), f"| {gain} |", flush=True)


def _cell(values: Sequence[float], sign: str = "") -> str:
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):{sign}.2f}{spread}"


if __name__ == "__main__":
    main()
