"""The best dependency trees, and second-order mean field: raykd, and supar if installed.

    PYTHONPATH=. python benchmarks/trees.py               32 sentences of 15 to 30 words, one thread
    PYTHONPATH=. python benchmarks/trees.py --words 100   … of 50 to 100

All trees have a single root. Contestants get the same random scores and must agree before they are timed. They
alternate after one call each to warm up. Times are processor time, so other work on the machine counts little. A ratio
is a contestant's median over raykd's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from structures_contestants import supar_module
from torch import Tensor
from torch.nn.functional import pad

from raykd.structures import Arcs, best_trees, head_log_marginals, mean_field

Call = Callable[[], Tensor]
NO_ARC = -1e32


@dataclass(frozen=True)
class Problem:
    """Random scores, the same for all contestants. supar counts the root as a word, and needs a row for the root."""

    arcs: Arcs
    siblings_BHTT: Tensor
    grandparents_BTTH: Tensor
    heads_BT: Tensor

    @property
    def mask_BH(self) -> Tensor:
        return pad(self.arcs.mask_BT, (1, 0), value=False)

    @property
    def supar_BHH(self) -> Tensor:
        return pad(self.arcs.possible().clamp(min=NO_ARC), (0, 0, 1, 0), value=0.0)

    @property
    def supar_siblings_BHHH(self) -> Tensor:
        """Scores of siblings in supar's order: [b, word, head, sibling]."""
        return pad(self.siblings_BHTT.permute(0, 2, 1, 3), (1, 0, 0, 0, 1, 0))


def problem_of(batch: int, words: int) -> Problem:
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(words // 2, words + 1, (batch,), generator=draw)
    arcs = Arcs(3 * torch.randn(batch, words, words + 1, generator=draw), lengths)
    siblings = torch.randn(batch, words + 1, words, words, generator=draw) / 3
    grandparents = torch.randn(batch, words, words, words + 1, generator=draw) / 3
    return Problem(arcs, siblings + siblings.transpose(2, 3), grandparents, arcs.possible().argmax(2))


def gradient(value: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Compute value and gradients in new leaves, and return the value."""
    leaves = [part.clone().requires_grad_() for part in inputs]
    result = value(*leaves)
    result.sum().backward()
    return result.detach()


def best(p: Problem) -> dict[str, Call]:
    calls: dict[str, Call] = {"ours": lambda: best_trees(p.arcs)[0]}
    if law := _supar("tree", "MatrixTree"):
        scores = p.supar_BHH
        calls["supar"] = lambda: law(scores.clone().requires_grad_(), p.arcs.lengths_B).argmax[:, 1:]
    return calls


def second_order(p: Problem) -> dict[str, Call]:
    """Cross-entropy of the heads in `p` after three iterations with siblings, and the gradient."""

    def ours(scores: Tensor, siblings: Tensor) -> Tensor:
        marginals = mean_field(Arcs(scores, p.arcs.lengths_B), siblings_BHTT=siblings)
        chosen_BT = head_log_marginals(marginals).gather(2, p.heads_BT[:, :, None]).squeeze(2)
        return -chosen_BT[p.arcs.mask_BT].mean()

    calls = {"ours": lambda: gradient(ours, p.arcs.scores_BTH, p.siblings_BHTT)}
    if layer := _supar("vi", "DependencyMFVI"):
        gold, scores, siblings = pad(p.heads_BT, (1, 0)), p.supar_BHH, p.supar_siblings_BHHH.contiguous()
        calls["supar"] = lambda: gradient(lambda *s: layer()(s, p.mask_BH, gold)[0], scores, siblings)
    return calls


def with_grandparents(p: Problem) -> dict[str, Call]:
    def ours(scores: Tensor, siblings: Tensor, grandparents: Tensor) -> Tensor:
        arcs = Arcs(scores, p.arcs.lengths_B)
        marginals = mean_field(arcs, siblings_BHTT=siblings, grandparents_BTTH=grandparents)
        chosen_BT = head_log_marginals(marginals).gather(2, p.heads_BT[:, :, None]).squeeze(2)
        return -chosen_BT[p.arcs.mask_BT].mean()

    return {"ours": lambda: gradient(ours, p.arcs.scores_BTH, p.siblings_BHTT, p.grandparents_BTTH)}


JOBS: dict[str, Callable[[Problem], dict[str, Call]]] = {
    "best tree": best,
    "mean field, siblings, and gradient": second_order,
    "… with grandparents (supar has none)": with_grandparents,
}


def _supar(module: str, name: str) -> type | None:
    try:
        return getattr(supar_module(module), name)
    except ImportError:
        return None


def medians(contestants: dict[str, Call], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, call in contestants.items():
            started = time.process_time()
            call()
            if number:  # the first round warms up
                times[name].append(time.process_time() - started)
    return {name: median(spent) for name, spent in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--words", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    problem = problem_of(options.batch, options.words)
    print(f"B = {options.batch}, T = {options.words}, one thread; milliseconds of ours, and times as long")
    for job, contestants_of in JOBS.items():
        contestants = contestants_of(problem)
        expected = contestants["ours"]()
        for name, call in contestants.items():
            result = call()
            if expected.is_floating_point():
                torch.testing.assert_close(
                    result.float(), expected, atol=1e-3, rtol=1e-4, msg=f"{job}: {name}"
                )
            elif not torch.equal(result[problem.arcs.mask_BT], expected[problem.arcs.mask_BT]):
                print(f"{job}: {name} finds other trees")
        took = medians(contestants, options.rounds)
        rest = "".join(f"   {name} {took[name] / took['ours']:7.1f}×" for name in took if name != "ours")
        print(f"{job:40}{took['ours'] * 1e3:9.3f} ms{rest}", flush=True)


if __name__ == "__main__":
    main()
