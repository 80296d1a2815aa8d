"""Exact inference against the libraries one could use instead: ratios of time, measured in one process.

    python benchmarks/structures.py                 the full table, one and two threads (an hour; alone on the machine)
    python benchmarks/structures.py --quick         two cells, one thread (a minute)
    python benchmarks/structures.py --jobs kbest10 viterbi --cells 32,16,9 --threads 1

Contestants alternate, round by round, after one call each to warm up; a ratio is a peer's median time over ours.
Float32, ragged lengths in T/2..T. On a machine that others use too, `--cpu-time` counts the process's own time (one
thread only).
Peers: the extra `benchmarks` (pytorch-crf, torch-struct, supar), whichever are installed, and `plain`, the log-space
recursion of `raykd.structures.reference` under autograd.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import math
import sys
import time
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from raykd import structures
from raykd.structures import Chain, reference

CELLS = tuple(itertools.product((32, 128, 512), (16, 32, 128), (9, 17, 41)))
QUICK = ((32, 16, 9), (128, 32, 17))
PAIRS_AT_MOST = (
    120_000_000  # numbers of a [B, T, Y, Y] tensor: above this, peers that build several would not fit
)
K = 10


@dataclass(frozen=True)
class Problem:
    """The same random scores for every contestant; leaves are made anew for each call."""

    batch: int
    time: int
    tags: int
    emissions: Tensor
    transitions: Tensor
    teacher: Tensor
    lengths: Tensor
    paths: Tensor
    weights: Tensor

    @property
    def mask(self) -> Tensor:
        return torch.arange(self.time) < self.lengths[:, None]

    def leaves(self) -> tuple[Tensor, Tensor]:
        return self.emissions.clone().requires_grad_(), self.transitions.clone().requires_grad_()

    def chain(self) -> Chain:
        """To be learnt: new leaves."""
        emissions, transitions = self.leaves()
        return Chain(emissions, self.lengths, transitions)

    def fixed(self) -> Chain:
        """To be read."""
        return Chain(self.emissions, self.lengths, self.transitions)

    def teacher_chain(self) -> Chain:
        return Chain(self.teacher, self.lengths, self.transitions)


def problem_of(batch: int, time: int, tags: int) -> Problem:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(max(1, time // 2), time + 1, (batch,), generator=generator)
    lengths[0] = time
    return Problem(
        batch,
        time,
        tags,
        torch.randn(batch, time, tags, generator=generator) * 3,
        torch.randn(tags, tags, generator=generator),
        torch.randn(batch, time, tags, generator=generator) * 3,
        lengths,
        torch.randint(0, tags, (batch, K, time), generator=generator),
        torch.softmax(torch.randn(batch, K, generator=generator), 1),
    )


# ours -----------------------------------------------------------------------------------------------------------------


def ours() -> dict[str, Callable[[Problem], object]]:
    def kd(p: Problem) -> None:
        structures.fenchel_young(p.chain(), structures.moments(p.teacher_chain())).sum().backward()

    def posterior(p: Problem) -> None:
        teacher = structures.token_marginals(p.teacher_chain())
        structures.posterior_kl(teacher, p.chain()).sum().backward()

    return {
        "nll": lambda p: structures.path_loss(p.chain(), p.paths[:, 0]).sum().backward(),
        "marginals": lambda p: structures.token_marginals(p.fixed()),
        "pairwise": lambda p: structures.pairwise_marginals(p.fixed()),
        "viterbi": lambda p: structures.viterbi(p.fixed()),
        "kbest10": lambda p: structures.kbest(p.fixed(), K),
        "top_wk": lambda p: structures.path_loss(p.chain(), p.paths, p.weights).sum().backward(),
        "structural": kd,
        "posterior": posterior,
    }


def plain() -> dict[str, Callable[[Problem], object]]:
    def marginals(p: Problem) -> Tensor:
        return reference.token_marginals(p.fixed())

    def kd(p: Problem) -> None:
        target = structures.Moments(marginals(p), reference.transition_moments(p.teacher_chain()))
        chain = p.chain()
        loss = reference.log_partition(chain) - structures.expected_score(chain, target)
        loss.sum().backward()

    def posterior(p: Problem) -> None:
        teacher = reference.token_marginals(p.teacher_chain())
        reference.posterior_kl(p.chain(), teacher).sum().backward()

    ones = lambda p: torch.ones(p.batch, 1)  # noqa: E731
    return {
        "nll": lambda p: reference.path_loss(p.chain(), p.paths[:, :1], ones(p)).sum().backward(),
        "marginals": marginals,
        "pairwise": lambda p: reference.pairwise_marginals(p.fixed()),
        "viterbi": lambda p: reference.k_best(p.fixed(), 1),
        "kbest10": lambda p: reference.k_best(p.fixed(), K),
        "top_wk": lambda p: reference.path_loss(p.chain(), p.paths, p.weights).sum().backward(),
        "structural": kd,
        "posterior": posterior,
    }


# peers ----------------------------------------------------------------------------------------------------------------


def pytorch_crf() -> dict[str, Callable[[Problem], object]]:
    from torchcrf import CRF

    def model(p: Problem) -> CRF:
        crf = CRF(p.tags, batch_first=True)
        with torch.no_grad():
            crf.transitions.copy_(p.transitions)
            crf.start_transitions.zero_()
            crf.end_transitions.zero_()
        return crf

    def marginals(p: Problem) -> Tensor:
        emissions = p.emissions.clone().requires_grad_()
        crf = model(p)
        log_z = crf._compute_normalizer(emissions.transpose(0, 1), p.mask.t())
        return torch.autograd.grad(log_z.sum(), emissions)[0]

    def top_wk(p: Problem) -> None:
        emissions = p.emissions.clone().requires_grad_()
        repeated = emissions.repeat_interleave(K, 0)
        mask = p.mask.repeat_interleave(K, 0)
        scores = model(p)(repeated, p.paths.flatten(0, 1), mask, reduction="none")
        (-(scores.view(p.batch, K) * p.weights).sum()).backward()

    def nll(p: Problem) -> None:
        emissions = p.emissions.clone().requires_grad_()
        (-model(p)(emissions, p.paths[:, 0], p.mask, reduction="sum")).backward()

    def viterbi(p: Problem) -> object:
        with torch.no_grad():
            return model(p).decode(p.emissions, p.mask)

    return {"nll": nll, "marginals": marginals, "top_wk": top_wk, "viterbi": viterbi}


def torch_struct() -> dict[str, Callable[[Problem], object]]:
    from torch_struct import LinearChainCRF

    def law(p: Problem, emissions: Tensor, transitions: Tensor) -> LinearChainCRF:
        potentials = emissions[:, 1:, :, None] + transitions.t()
        first = torch.nn.functional.pad(emissions[:, :1, None, :], (0, 0, 0, p.tags - 1, 0, p.time - 2))
        edges = potentials + first.expand(-1, -1, p.tags, -1) if p.time > 2 else potentials
        return LinearChainCRF(edges.contiguous(), lengths=p.lengths, args={})

    def parts(p: Problem) -> Tensor:
        tags = p.paths[:, 0]
        return LinearChainCRF.struct.to_parts(tags, p.tags, lengths=p.lengths)

    def nll(p: Problem) -> None:
        (-law(p, *p.leaves()).log_prob(parts(p)).sum()).backward()

    def kd(p: Problem) -> None:
        teacher = law(p, p.teacher, p.transitions)
        teacher.cross_entropy(law(p, *p.leaves())).sum().backward()

    def posterior(p: Problem) -> None:
        teacher = law(p, p.teacher, p.transitions).marginals.sum(3)
        student = law(p, *p.leaves()).marginals.sum(3).clamp(min=1e-30)
        (-(teacher.detach() * student.log()).sum()).backward()

    marginals = lambda p: law(p, p.emissions, p.transitions).marginals  # noqa: E731
    return {
        "nll": nll,
        "marginals": lambda p: marginals(p).sum(3),
        "pairwise": marginals,
        "viterbi": lambda p: law(p, p.emissions, p.transitions).argmax,
        "kbest10": lambda p: law(p, p.emissions, p.transitions).topk(K),
        "structural": kd,
        "posterior": posterior,
    }


def supar() -> dict[str, Callable[[Problem], object]]:
    law_of = _supar_chain()

    def law(p: Problem, emissions: Tensor, transitions: Tensor) -> object:
        return law_of(emissions, torch.nn.functional.pad(transitions, (0, 1, 0, 1)), p.lengths)

    def nll(p: Problem) -> None:
        (-law(p, *p.leaves()).log_prob(p.paths[:, 0]).sum()).backward()

    def top_wk(p: Problem) -> None:
        student = law(p, *p.leaves())
        scores = torch.stack([student.log_prob(p.paths[:, k]) for k in range(K)], 1)
        (-(scores * p.weights).sum()).backward()

    def kd(p: Problem) -> None:
        teacher = law(p, p.teacher.clone(), p.transitions.clone())
        teacher.cross_entropy(law(p, *p.leaves())).sum().backward()

    def posterior(p: Problem) -> None:
        teacher = law(p, p.teacher.clone(), p.transitions.clone()).marginals.detach()
        student = law(p, *p.leaves()).marginals.clamp(min=1e-30)
        (-(teacher * student.log())[p.mask].sum()).backward()

    return {
        "nll": nll,
        "marginals": lambda p: law(p, p.emissions.clone(), p.transitions.clone()).marginals,
        "viterbi": lambda p: law(p, p.emissions.clone(), p.transitions.clone()).argmax,
        "kbest10": lambda p: law(p, p.emissions.clone(), p.transitions.clone()).topk(K),
        "top_wk": top_wk,
        "structural": kd,
        "posterior": posterior,
    }


def _supar_chain() -> type:
    """supar's chain alone: its package imports parsers and tokenizers that this has no need of."""
    spec = importlib.util.find_spec("supar")
    if spec is None:
        raise ImportError("supar is not installed")
    for name in ("supar", "supar.utils", "supar.structs"):
        shell = types.ModuleType(name)
        shell.__path__ = [str(Path(spec.origin).parent.joinpath(*name.split(".")[1:]))]
        sys.modules.setdefault(name, shell)
    return importlib.import_module("supar.structs.linearchain").LinearChainCRF


# measuring ------------------------------------------------------------------------------------------------------------

PEERS = {"pytorch-crf": pytorch_crf, "torch-struct": torch_struct, "supar": supar, "plain": plain}
BUILD_PAIRS = {"torch-struct": 12, "supar": 1, "plain": 1, "pytorch-crf": 1}  # how many such tensors at once
JOBS = tuple(ours())


def installed() -> dict[str, dict[str, Callable[[Problem], object]]]:
    found = {}
    for name, peer in PEERS.items():
        try:
            found[name] = peer()
        except ImportError as missing:
            print(f"{name}: left out ({missing})", file=sys.stderr)
    return found


def medians(
    contestants: dict[str, Callable[[], object]], rounds: int, patience: float, clock: Callable[[], float]
) -> dict[str, float]:
    """Median seconds per contestant, alternating; one whose first call outlasts `patience` is not asked again."""
    first: dict[str, float] = {}
    for name, call in contestants.items():
        try:
            if name == "ours":
                call()  # kernels are loaded
            first[name] = seconds(call, 1, clock)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:90]}", file=sys.stderr)
    times = {name: [spent] if spent > patience else [] for name, spent in first.items()}
    for _ in range(rounds):
        for name, spent in first.items():
            if spent <= patience:
                times[name].append(seconds(contestants[name], max(1, min(50, int(0.02 / spent))), clock))
    return {name: median(spent) for name, spent in times.items()}


def seconds(call: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return max((clock() - start) / repeats, 1e-9)


def run(jobs: Iterable[str], cells: Iterable[tuple[int, int, int]], threads: int, measure: Callable) -> None:
    torch.set_num_threads(threads)
    peers, mine = installed(), ours()
    for job in jobs:
        able = [name for name, calls in peers.items() if job in calls]
        print(f"\n{job}, {threads} thread(s): how many times slower than ours (ms)")
        print(
            f"{'B':>5}{'T':>5}{'Y':>4}{'ours ms':>10}" + "".join(f"{name:>14}" for name in able), flush=True
        )
        ratios: dict[str, list[float]] = {name: [] for name in able}
        for cell in cells:
            problem = problem_of(*cell)
            pairs = cell[0] * cell[1] * cell[2] ** 2
            fits = [name for name in able if pairs * BUILD_PAIRS[name] <= 12 * PAIRS_AT_MOST]
            contestants = {name: partial(peers[name][job], problem) for name in fits}
            spent = measure({"ours": partial(mine[job], problem), **contestants})
            line = f"{cell[0]:>5}{cell[1]:>5}{cell[2]:>4}{spent['ours'] * 1e3:>10.3f}"
            for name in able:
                if name in spent:
                    ratios[name].append(spent[name] / spent["ours"])
                line += f"{spent[name] / spent['ours']:>14.1f}" if name in spent else f"{'–':>14}"
            print(line, flush=True)
        for name, measured in ratios.items():
            if measured:
                mean = math.exp(sum(map(math.log, measured)) / len(measured))
                print(
                    f"  {name}: min {min(measured):.1f}  geometric mean {mean:.1f}  max {max(measured):.1f}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two cells, one thread, three rounds")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--cells", nargs="+", help="B,T,Y")
    parser.add_argument("--threads", nargs="+", type=int)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--patience", type=float, default=2.0, help="seconds: a slower contestant runs once per cell"
    )
    parser.add_argument("--cpu-time", action="store_true", help="count this process's own time")
    chosen = parser.parse_args()
    cells = QUICK if chosen.quick else CELLS
    if chosen.cells:
        cells = tuple(tuple(int(part) for part in cell.split(",")) for cell in chosen.cells)
    rounds = 3 if chosen.quick else chosen.rounds
    clock = time.process_time if chosen.cpu_time else time.perf_counter
    for threads in chosen.threads or ((1,) if chosen.quick else (1, 2)):
        run(
            chosen.jobs,
            cells,
            threads,
            partial(medians, rounds=rounds, patience=chosen.patience, clock=clock),
        )


if __name__ == "__main__":
    main()
