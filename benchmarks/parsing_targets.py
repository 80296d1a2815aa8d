"""Targets of a parsing student (Wang et al., ACL 2021, Eq. 5 and 6): one gather against loops over labels.

    python benchmarks/parsing_targets.py [--batch 32] [--words 30] [--labels 1354] [--device cpu]

Eq. 5 is P(head) · P(relation | head) for every label of every word. Eq. 6 is the cross-entropy of the student with
Eq. 5. The loops follow the public code of the paper: for every word and label they find the head that the label means,
and look up its probabilities. They work on plain lists, which Python reads fastest.

Both get the same arcs, labels and parts of speech, all random, and their targets are compared. There are as many labels
as in English-EWT (`relative_pos`: 1,354). The two take turns in five rounds; times are processor seconds, the least of
the rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from raykd.forms.tree.codes import TreeLabels, encode_tree
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs

POS = ("ADJ", "ADP", "ADV", "AUX", "DET", "NOUN", "PRON", "PROPN", "PUNCT", "VERB")
RELATIONS = tuple(f"relation{number:02d}" for number in range(50))
ROUNDS = 5


def drawn_labels(draw: np.random.Generator, count: int) -> TreeLabels:
    """Return labels of random arcs."""
    labels: set[str] = set()
    while len(labels) < count:
        words = int(draw.integers(5, 30))
        heads = [int(head) for head in draw.integers(0, words + 1, words)]
        heads = [head if head != word + 1 else 0 for word, head in enumerate(heads)]
        pos, relations = draw.choice(POS, words), draw.choice(RELATIONS, words)
        labels |= set(encode_tree(heads, relations.tolist(), pos.tolist(), "relative_pos"))
    return TreeLabels(tuple(sorted(labels)[:count]), POS, RELATIONS, "relative_pos")


def by_gather(
    arcs: LabelledArcs, pos_BT: np.ndarray, labels: TreeLabels, student_BTY: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the targets [B, T, Y] and the losses [B], by one gather."""
    device = arcs.arcs_BTH.device
    heads_BTY = torch.from_numpy(labels.heads(pos_BT, arcs.lengths_B.cpu().numpy())).to(device)
    targets_BTY = arcs.label_log_scores(heads_BTY, torch.from_numpy(labels.relations_Y).to(device)).exp()
    return targets_BTY, -(targets_BTY * student_BTY.log_softmax(2)).sum((1, 2))


def by_loops(
    arcs: LabelledArcs, pos_BT: np.ndarray, labels: TreeLabels, student_BTY: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the targets [B, T, Y] and the losses [B], label by label."""
    parsed = []
    for tag in labels.tags:
        offset, pos, relation = tag.split("@")
        parsed.append((int(offset), pos, labels.relations.index(relation)))
    arcs_BTH, relations_BTHR = arcs.arcs_BTH.exp().tolist(), arcs.relations_BTHR.exp().tolist()
    targets_BTY = torch.zeros(student_BTY.shape)
    for b, length in enumerate(arcs.lengths_B.tolist()):
        pos_T = [POS[number] for number in pos_BT[b, :length]]
        for t in range(length):
            for y, (offset, pos, relation) in enumerate(parsed):
                head = head_of(t, offset, pos, pos_T)
                if head is not None:
                    targets_BTY[b, t, y] = arcs_BTH[b][t][head] * relations_BTHR[b][t][head][relation]
    targets_BTY = targets_BTY.to(student_BTY.device)
    return targets_BTY, -(targets_BTY * student_BTY.log_softmax(2)).sum((1, 2))


def head_of(word: int, offset: int, pos: str, pos_T: list[str]) -> int | None:
    """Find the head of a word for a label, by walking from the word; 0 is the root."""
    if pos == "ROOT":
        return 0
    step, place, remaining = (1 if offset > 0 else -1), word, abs(offset)
    while remaining:
        place += step
        if not 0 <= place < len(pos_T):
            return None
        remaining -= pos_T[place] == pos
    return place + 1


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.process_time() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("batch", 32), ("words", 30), ("labels", 1354)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    draw, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    labels = drawn_labels(draw, arguments.labels)
    pos_BT = draw.integers(0, len(POS), (arguments.batch, arguments.words))
    lengths_B = torch.full((arguments.batch,), arguments.words)
    scores_BTH = torch.randn(arguments.batch, arguments.words, arguments.words + 1, generator=generator)
    scores_BTH.diagonal(1, 1, 2).fill_(FORBIDDEN)
    relations = torch.randn(*scores_BTH.shape, len(labels.relations), generator=generator)
    student_BTY = torch.randn(arguments.batch, arguments.words, arguments.labels, generator=generator).to(
        arguments.device
    )
    parts = (scores_BTH.log_softmax(2), relations.log_softmax(3), lengths_B)
    arcs = LabelledArcs(*(part.to(arguments.device) for part in parts))
    took: dict[str, list[float]] = {"gather": [], "loops": []}
    for _ in range(ROUNDS):
        for name, contestant in (("gather", by_gather), ("loops", by_loops)):
            seconds, result = timed(
                lambda contestant=contestant: contestant(arcs, pos_BT, labels, student_BTY)
            )
            took[name].append(seconds)
            if name == "gather":
                expected = result
        torch.testing.assert_close(result[0], expected[0], atol=1e-6, rtol=1e-4)
    best = {name: min(seconds) for name, seconds in took.items()}
    for name, seconds in best.items():
        print(f"{name:7s} {1000 * seconds:10.1f} ms")
    print(f"{best['loops'] / best['gather']:.0f} times as fast")


if __name__ == "__main__":
    main()
