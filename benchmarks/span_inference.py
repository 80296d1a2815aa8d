"""Marginals of BIOES tags under flat labelled spans: batched tensors against dictionaries of decimals.

    python benchmarks/span_inference.py             30 words, 4 labels, one sentence and a batch of 32, one thread

The peer computes like the public code of Wang et al. (ACL 2021), and is written from the recursion of Appendix A:
Python dictionaries of `decimal.Decimal`, one sentence at a time. Both compute all token marginals of a sentence, and
must agree. Contestants alternate after one call each to warm up. A ratio is the peer's median time over raykd's, per
sentence.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from decimal import Decimal
from statistics import median

import torch

from raykd.structures import Spans, SpanTags, log_partition, token_marginals, viterbi

PAPERS_SECONDS = 0.47  # the public code, one sentence of 30 words, measured for this project


def decimal_marginals(spans: Spans) -> list[list[float]]:
    """Return token marginals of the first sentence, rows of BIOES tags, by Appendix A with I_l and Z corrected."""
    n, labels, tags = int(spans.lengths_B[0]), range(spans.tags.labels), spans.tags
    scores = spans.scores_BTTL[0].tolist()
    weight = {
        (i, j, label): Decimal(scores[i][j][label]).exp()
        for i in range(n)
        for j in range(i, n)
        for label in labels
    }
    unit, none = Decimal(1), Decimal(0)
    free, ending = {0: unit}, {}  # →DP(i, F), →DP(i, l)
    for i in range(n):
        if i:
            free[i] = free[i - 1] + sum((ending[i - 1, label] for label in labels), none)
        for label in labels:
            ending[i, label] = sum((weight[k, i, label] * free[k] for k in range(i + 1)), none)
    clear, starting = {n - 1: unit}, {}  # ←DP(i, F), ←DP(i, l)
    for i in reversed(range(n)):
        if i < n - 1:
            clear[i] = clear[i + 1] + sum((starting[i + 1, label] for label in labels), none)
        for label in labels:
            starting[i, label] = sum((weight[i, j, label] * clear[j] for j in range(i, n)), none)
    total = free[n - 1] + sum((ending[n - 1, label] for label in labels), none)
    rows = [[0.0] * (4 * len(labels) + 1) for _ in range(n)]
    for i in range(n):
        rows[i][tags.outside] = float(free[i] * clear[i] / total)
        for label in labels:
            later = sum((weight[i, j, label] * clear[j] for j in range(i + 1, n)), none)
            before = sum((weight[k, i, label] * free[k] for k in range(i)), none)
            around = sum(
                (weight[k, j, label] * free[k] * clear[j] for k in range(i) for j in range(i + 1, n)), none
            )
            rows[i][tags.begin[label]] = float(free[i] * later / total)
            rows[i][tags.inside[label]] = float(around / total)
            rows[i][tags.end[label]] = float(clear[i] * before / total)
            rows[i][tags.single[label]] = float(free[i] * weight[i, i, label] * clear[i] / total)
    return rows


def random_spans(sentences: int, words: int, labels: int) -> Spans:
    draw = torch.Generator().manual_seed(0)
    numbers = [tuple(range(1 + label, 4 * labels + 1, labels)) for label in range(labels)]
    tags = SpanTags(*(tuple(row[role] for row in numbers) for role in range(4)), 0)
    scores = torch.randn(sentences, words, words, labels, generator=draw) * 3 - 2
    return Spans(scores, torch.full((sentences,), words), tags)


def medians(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, call in contestants.items():
            started = time.perf_counter()
            call()
            if number:  # the first round warms up
                times[name].append(time.perf_counter() - started)
    return {name: median(spent) for name, spent in times.items()}


def training_step(spans: Spans) -> None:
    leaf = spans.scores_BTTL.clone().requires_grad_()
    log_partition(Spans(leaf, spans.lengths_B, spans.tags)).sum().backward()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    single = random_spans(1, options.words, options.labels)
    many = random_spans(options.batch, options.words, options.labels)
    torch.testing.assert_close(
        token_marginals(single)[0], torch.tensor(decimal_marginals(single)), atol=1e-5, rtol=0
    )
    took = medians(
        {
            "decimals": lambda: decimal_marginals(single),
            "one": lambda: token_marginals(single),
            "batch": lambda: token_marginals(many),
            "best of one": lambda: viterbi(single),
            "best of batch": lambda: viterbi(many),
            "gradient of batch": lambda: training_step(many),
        },
        options.rounds,
    )
    print(f"{options.words} words, {options.labels} labels, one thread; milliseconds per sentence")
    print(f"{'token marginals, dictionaries of decimals':45}{took['decimals'] * 1e3:10.3f}")
    rows = (
        ("token marginals, one sentence", took["one"]),
        (f"token marginals, batch of {options.batch}", took["batch"] / options.batch),
        ("best segmentation, one sentence", took["best of one"]),
        (f"best segmentation, batch of {options.batch}", took["best of batch"] / options.batch),
        (f"log Z and its gradient, batch of {options.batch}", took["gradient of batch"] / options.batch),
    )
    for name, seconds in rows:
        ratios = (
            f"{took['decimals'] / seconds:10.0f}×   {PAPERS_SECONDS / seconds:10.0f}× of {PAPERS_SECONDS} s"
        )
        print(f"{name:45}{seconds * 1e3:10.3f}{ratios}")


if __name__ == "__main__":
    main()
