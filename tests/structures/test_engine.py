"""The result does not depend on the implementation or the number of threads; memory stays small."""

import multiprocessing
import os
import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from raykd.structures import (
    Chain,
    engine,
    fenchel_young,
    kbest,
    log_partition,
    moments,
    path_loss,
    posterior_kl,
    reference,
    score,
    tempered_moments,
    token_marginals,
)
from tests.structures.chains import CODES, using


def some_chain(batch: int = 40, time: int = 12, tags: int = 5) -> Chain:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, time + 1, (batch,), generator=generator)
    emissions = torch.randn(batch, time, tags, generator=generator)
    return Chain(emissions, lengths, torch.randn(tags, tags, generator=generator))


def test_the_cpu_has_compiled_kernels_here():
    assert engine.kernels(some_chain(), "sum_product") is not None, (
        "numba is a dependency: without it the kernel tests test nothing"
    )


def test_after_a_kernel_fails_plain_pytorch_computes(monkeypatch, caplog):
    chain = some_chain()
    expected = token_marginals(chain)

    class Failing:
        KIND = "compiled.launch"

        @staticmethod
        def sum_product(chain, **options):
            raise RuntimeError("no compiler on this machine")

    monkeypatch.setattr(engine, "_broken", set())
    monkeypatch.setattr(engine, "_module", lambda name: Failing)
    torch.testing.assert_close(token_marginals(chain), expected)
    assert engine._broken == {"compiled.launch"}
    assert engine.kernels(chain, "sum_product") is None
    assert "plain PyTorch" in caplog.text


def test_a_machine_without_numba_computes_in_pytorch(monkeypatch):
    chain = some_chain()
    expected = log_partition(chain)
    engine._module.cache_clear()
    monkeypatch.setitem(
        sys.modules, "raykd.structures.compiled.launch", None
    )  # importing it raises ImportError
    try:
        assert engine.kernels(chain, "sum_product") is None
        torch.testing.assert_close(log_partition(chain), expected)
    finally:
        engine._module.cache_clear()


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_any_number_of_threads_gives_the_same_bits(threads):
    chain = some_chain(batch=90)
    results = []
    for count in (1, 2, 5):
        threads(count)
        actual = moments(chain)
        results.append((actual.token_BTY, actual.transition_BYY, log_partition(chain), *kbest(chain, 3)))
    for result in results[1:]:
        for first, second in zip(result, results[0], strict=True):
            assert torch.equal(first, second)


def test_any_number_of_threads_gives_path_scores_the_same_gradient(threads):
    chain = some_chain(batch=90, time=50).map(lambda part: part.clone().requires_grad_())
    paths = torch.randint(0, chain.tags, (90, 10, 50), generator=torch.Generator().manual_seed(1))
    gradients = []
    for count in (1, 2, 5):
        threads(count)
        weighted = score(chain, paths) * torch.linspace(0.1, 1, 90)[:, None]
        gradients.append(torch.autograd.grad(weighted.sum(), chain.scores()))
    for gradient in gradients[1:]:
        for first, second in zip(gradient, gradients[0], strict=True):
            assert torch.equal(first, second)


def _compute(connection) -> None:
    torch.set_num_threads(2)
    connection.send(log_partition(some_chain(batch=40)).tolist())


def test_a_forked_process_starts_threads_of_its_own(threads):
    threads(2)
    expected = log_partition(some_chain(batch=40)).tolist()  # the parent's pool exists by now
    context = multiprocessing.get_context("fork")
    parent_end, child_end = context.Pipe()
    child = context.Process(target=_compute, args=(child_end,))
    child.start()
    try:
        assert parent_end.recv() == expected
    finally:
        child.kill()
        child.join()


def test_a_sentence_has_the_same_bits_in_any_batch():
    chain = some_chain(batch=33)
    together = moments(chain)
    for b in (0, 7, 32):
        alone = moments(chain.select(torch.tensor([b])))
        assert torch.equal(alone.token_BTY[0], together.token_BTY[b])
        assert torch.equal(alone.transition_BYY[0], together.transition_BYY[b])


class Largest(TorchDispatchMode):
    """The number of elements of the largest created tensor."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return out


@pytest.mark.parametrize("code", CODES)
def test_training_never_holds_a_pair_of_tags_for_every_token(code):
    B, T, Y = 2, 50, 12
    chain = some_chain(B, T, Y).map(lambda part: part.clone().requires_grad_())
    teacher = some_chain(B, T, Y)
    target = moments(teacher)
    with using(code), Largest() as largest:
        total = fenchel_young(chain, target) + path_loss(chain, torch.zeros(B, T, dtype=torch.int64))
        total = total + posterior_kl(target.token_BTY, chain)
        total.sum().backward()
        tempered_moments(teacher, 3.0)
        moments(chain)
    assert largest.elements <= B * max(T * Y, Y * Y) * 2 < B * T * Y * Y


def test_the_repeat_in_log_space_does_not_either():
    B, T, Y = 2, 50, 12
    chain = some_chain(B, T, Y)
    with Largest() as largest:
        reference.transition_moments(chain)
    assert largest.elements <= B * T * Y * 2


def test_kernels_compile_where_no_folder_can_be_written(monkeypatch):
    """A read-only home and a read-only package: numba has no folder for its cache."""
    from numba.core import caching

    from raykd.structures.compiled.blocks import kernel

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert kernel(lambda x: x + 1)(1) == 2


def test_importing_does_not_load_a_compiler():
    code = "import sys, raykd.structures; print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_compiled_code_is_kept_per_user_and_not_next_to_the_source(tmp_path):
    code = (
        "from raykd.structures.compiled import launch, sums;"
        "print(sums.sum_product._cache.cache_path); print(sums.sum_product._cache._cache_file._cache_path)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert all(line.startswith(str(tmp_path / "raykd" / "kernels")) for line in out.stdout.split())
    user_environment = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "mine")}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=user_environment
    )
    assert all(line.startswith(str(tmp_path / "mine")) for line in out.stdout.split())
