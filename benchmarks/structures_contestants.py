"""Contestants of `structures.py`: the jobs as a user of raykd, or of a peer, would write them.

A job that a library does not offer is missing from its table. Scores, lengths and work are the same for all. Every
contestant makes new leaves, and does a backward pass if the job has one.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from raykd import structures
from raykd.structures import Chain, reference

K = 10


@dataclass(frozen=True)
class Problem:
    """Random scores, the same for all contestants; `leaves` and `chain` copy scores for gradients."""

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
        return torch.arange(self.time, device=self.lengths.device) < self.lengths[:, None]

    def on(self, device: str) -> Problem:
        """Return the problem with all tensors on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **tensors)

    def leaves(self) -> tuple[Tensor, Tensor]:
        return self.emissions.clone().requires_grad_(), self.transitions.clone().requires_grad_()

    def chain(self) -> Chain:
        """Return the chain with new leaves, for gradients."""
        emissions, transitions = self.leaves()
        return Chain(emissions, self.lengths, transitions)

    def fixed(self) -> Chain:
        """Return the chain without gradients."""
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


def ours() -> dict[str, Callable[[Problem], object]]:
    def kd(p: Problem) -> None:
        structures.fenchel_young(p.chain(), structures.moments(p.teacher_chain())).sum().backward()

    def posterior(p: Problem) -> None:
        teacher = structures.token_marginals(p.teacher_chain())
        structures.posterior_kl(teacher, p.chain()).sum().backward()

    return {
        "nll": lambda p: structures.path_loss(p.chain(), p.paths[:, 0]).sum().backward(),
        "marginals": lambda p: structures.token_marginals(p.fixed()),
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

    def paths(p: Problem, weights: Tensor) -> None:
        chain = p.chain()
        scores = reference.score(chain, p.paths[:, : weights.shape[1]])
        loss = weights.sum(1) * reference.log_partition(chain) - (weights * scores).sum(1)
        loss.sum().backward()

    return {
        "nll": lambda p: paths(p, torch.ones(p.batch, 1)),
        "marginals": marginals,
        "viterbi": lambda p: reference.k_best(p.fixed(), 1),
        "kbest10": lambda p: reference.k_best(p.fixed(), K),
        "top_wk": lambda p: paths(p, p.weights),
        "structural": kd,
        "posterior": posterior,
    }


def pytorch_crf() -> dict[str, Callable[[Problem], object]]:
    from torchcrf import CRF

    def model(p: Problem) -> CRF:
        crf = CRF(p.tags, batch_first=True).to(p.emissions.device)
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

    return {
        "nll": nll,
        "marginals": lambda p: law(p, p.emissions, p.transitions).marginals.sum(3),
        "viterbi": lambda p: law(p, p.emissions, p.transitions).argmax,
        "kbest10": lambda p: law(p, p.emissions, p.transitions).topk(K),
        "structural": kd,
        "posterior": posterior,
    }


def supar() -> dict[str, Callable[[Problem], object]]:
    law_of = supar_module("linearchain").LinearChainCRF

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


def supar_module(name: str) -> types.ModuleType:
    """Import a module of `supar.structs` without the parsers and tokenizers of the package."""
    if "supar" not in sys.modules:
        spec = importlib.util.find_spec("supar")
        if spec is None:
            raise ImportError("supar is not installed")
        for package in ("supar", "supar.utils", "supar.structs"):
            shell = types.ModuleType(package)
            shell.__path__ = [str(Path(spec.origin).parent.joinpath(*package.split(".")[1:]))]
            sys.modules[package] = shell
    return importlib.import_module(f"supar.structs.{name}")
