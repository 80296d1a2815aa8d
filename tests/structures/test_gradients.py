"""Derivatives against finite differences, in float64."""

import pytest
import torch
from torch.autograd import gradcheck

from raykd.structures import (
    Chain,
    fenchel_young,
    log_partition,
    moments,
    path_loss,
    posterior_kl,
    score,
    token_marginals,
)
from tests.structures.chains import CODES, MINUS_INFINITY, using

LENGTHS = torch.tensor([3, 1, 2])
PATHS = torch.randint(0, 2, (3, 2, 3), generator=torch.Generator().manual_seed(5))
WEIGHTS = torch.tensor([[0.5, 0.5], [0.9, 0.3], [1.0, 0.0]], dtype=torch.float64)
TEACHER = torch.softmax(torch.randn(3, 3, 2, generator=torch.Generator().manual_seed(6)).double(), 2)
OTHER = Chain(TEACHER, LENGTHS, torch.eye(2, dtype=torch.float64), torch.ones(2).double(), TEACHER[:, 0])


def all_moments(chain: Chain) -> tuple[torch.Tensor, ...]:
    result = moments(chain)
    return result.token_BTY, result.transition_BYY, result.start_BY, result.end_BY


OPERATIONS = {
    "log_partition": log_partition,
    "token_marginals": token_marginals,
    "moments": all_moments,
    "path_loss": lambda chain: path_loss(chain, PATHS, WEIGHTS),
    "fenchel_young": lambda chain: fenchel_young(chain, moments(OTHER)),
    "posterior_kl": lambda chain: posterior_kl(TEACHER, chain),
    "score": lambda chain: score(chain, PATHS),
    # The moments differentiate too: the cross-entropy with the chain's own distribution.
    "fenchel_young_of_its_moments": lambda chain: fenchel_young(OTHER, moments(chain)),
}


def inputs(per_sentence: bool, transitions: bool = True) -> tuple[torch.Tensor | None, ...]:
    generator = torch.Generator().manual_seed(7)
    batch = (3,) if per_sentence else ()
    shapes = ((3, 3, 2), (*batch, 2, 2) if transitions else None, (*batch, 2), (*batch, 2))
    return tuple(
        None if shape is None else torch.randn(*shape, generator=generator).double().requires_grad_()
        for shape in shapes
    )


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("per_sentence", [False, True], ids=["shared", "per_sentence"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_first_derivatives(code, per_sentence, name):
    operation = OPERATIONS[name]
    with using(code):
        assert gradcheck(lambda e, *rest: operation(Chain(e, LENGTHS, *rest)), inputs(per_sentence))


@pytest.mark.parametrize("name", OPERATIONS)
def test_first_derivatives_without_transitions(name):
    operation = OPERATIONS[name]
    emissions, _, start, end = inputs(False, transitions=False)
    assert gradcheck(lambda e, s, f: operation(Chain(e, LENGTHS, None, s, f)), (emissions, start, end))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_forbidden_transitions_leave_no_nan_in_a_derivative(code, name):
    emissions, transitions, start, end = inputs(False)
    with torch.no_grad():
        transitions[0, 1] = start[1] = MINUS_INFINITY
    leaves = (emissions, transitions, start, end)
    with using(code):
        out = OPERATIONS[name](Chain(emissions, LENGTHS, transitions, start, end))
        total = sum(part[part.isfinite()].sum() for part in (out if isinstance(out, tuple) else (out,)))
        for gradient in torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("code", CODES)
def test_a_second_backward_pass_gives_the_same_gradient(code):
    leaves = inputs(False)
    with using(code):
        loss = path_loss(Chain(leaves[0], LENGTHS, *leaves[1:]), PATHS, WEIGHTS).sum()
        first = torch.autograd.grad(loss, leaves, retain_graph=True)
        repeated = torch.autograd.grad(loss, leaves)
    for gradient, repeated_gradient in zip(first, repeated, strict=True):
        assert torch.equal(gradient, repeated_gradient)
