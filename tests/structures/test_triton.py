"""The fused CUDA kernels against plain PyTorch: on a GPU where there is one, else in Triton's interpreter.

The interpreter shows that the kernels' arithmetic is right. That they compile is shown without a GPU too; how fast they
are is not. Each test runs in its own process, because Triton reads its environment once.
"""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="Triton is not installed; it comes with CUDA builds of torch, and its interpreter needs no GPU",
)

COMPARE = """
import sys, torch
from raykd.structures import Chain, engine, reference, scaled, triton_kernels
device, dtype, own = sys.argv[1], getattr(torch, sys.argv[2]), sys.argv[3] == "own"
B, T, Y = 5, 6, 5
generator = torch.Generator().manual_seed(0)
part = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
transitions = part(*((B,) if own else ()), Y, Y)
transitions[..., 0, 1] = float("-inf")
lengths = torch.tensor([6, 1, 3, 2, 6])
emissions = part(B, T, Y) * 3
emissions[torch.arange(T) >= lengths[:, None]] = float("nan")
chain = Chain(emissions, lengths, transitions, part(Y), part(B, Y)).to(device)
along = part(B, T, Y)
along[torch.arange(T) >= lengths[:, None]] = float("nan")
along, teacher = along.to(device), torch.softmax(part(B, T, Y) * 2, 2).to(device)
pairs = {
    "sums": (
        triton_kernels.sum_product(chain, token=True, pair=True, sides=True),
        scaled.sum_product(chain, pair=True, sides=True),
    ),
    "covariance": (
        triton_kernels.covariance(chain, along), scaled.covariance(chain, along.nan_to_num(0))
    ),
    "posterior": (
        triton_kernels.posterior(chain, teacher, token=True, pair=True), engine._posterior(chain, teacher)
    ),
}
tolerance = 2e-5 if dtype == torch.float32 else 1e-11
for name, (found, plain) in pairs.items():
    for number, (one, other) in enumerate(zip(found, plain, strict=True)):
        torch.testing.assert_close(
            one.double(), other.double(), atol=tolerance, rtol=tolerance,
            msg=lambda text: f"{name} {number}: {text}",
        )
# A tag whose marginal underflows and that the teacher allows.
certain = Chain(torch.tensor([[[0.0, -900.0]]], dtype=dtype), torch.tensor([1]), torch.zeros(2, 2, dtype=dtype))
evenly = torch.full((1, 1, 2), 0.5, dtype=dtype, device=device)
assert not triton_kernels.posterior(certain.to(device), evenly, token=True, pair=True)[3].any()
for k in (1, 3, 8):
    paths, scores = triton_kernels.k_best(chain, k)
    expected_paths, expected_scores = reference.k_best(chain, k)
    assert (paths == expected_paths).all(), k
    torch.testing.assert_close(scores, expected_scores.to(dtype), atol=tolerance, rtol=tolerance)
impossible = Chain(torch.zeros(1, 3, 2), torch.tensor([3]), torch.full((2, 2), float("-inf"))).to(device)
assert not triton_kernels.sum_product(impossible, token=True, pair=True).ok_B.any()
paths, scores = triton_kernels.k_best(impossible, 2)
assert not paths.any() and (scores == float("-inf")).all()
assert not triton_kernels.covariance(impossible, torch.ones(1, 3, 2, device=device))[2].any()
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("per_sentence", ["shared", "per_sentence"])
def test_the_fused_kernels_agree_with_plain_pytorch(dtype, per_sentence):
    cuda = torch.cuda.is_available()
    environment = os.environ if cuda else {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", COMPARE, "cuda" if cuda else "cpu", dtype, per_sentence]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


COMPILE = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from raykd.structures import triton_kernels as kernels
KINDS = {"lengths": "*i64", "paths": "*i64", "origins": "*i32", "tiny": "fp32", "unseen": "fp32"}
KINDS |= dict.fromkeys(("log_z", "worst", "value", "lost"), "*fp64")
KINDS |= dict.fromkeys(("time", "tags", "matrix_step", "scores_step", "start_step", "end_step"), "i32")
options = {"BLOCK": 16, "POSTERIOR": True, "K": 3, "BLOCK_K": 4}
for kernel in (kernels._sweep, kernels._product, kernels._best):
    names = enumerate(each.name for each in kernel.params)
    constants = {(i,): options[name] for i, name in names if name in options}
    kinds = {p.name: "constexpr" if p.is_constexpr else KINDS.get(p.name, "*fp32") for p in kernel.params}
    compiled = compile(ASTSource(kernel, kinds, constants), target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
    assert compiled.asm["cubin"]
"""


def test_the_fused_kernels_compile_for_an_h100(tmp_path):
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


@CUDA
def test_on_cuda_every_operation_agrees_with_the_cpu():
    from raykd.structures import Chain, kbest, log_partition, moments, posterior_kl

    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 21, (40,), generator=generator)
    emissions = torch.randn(40, 20, 9, generator=generator)
    on_cpu = Chain(emissions, lengths, torch.randn(9, 9, generator=generator))
    on_gpu = on_cpu.to("cuda")
    torch.testing.assert_close(log_partition(on_gpu).cpu(), log_partition(on_cpu), rtol=1e-5, atol=1e-5)
    for name in ("token_BTY", "transition_BYY"):
        torch.testing.assert_close(getattr(moments(on_gpu), name).cpu(), getattr(moments(on_cpu), name))
    torch.testing.assert_close(kbest(on_gpu, 3)[1].cpu(), kbest(on_cpu, 3)[1])
    teacher = torch.softmax(emissions, 2)
    torch.testing.assert_close(posterior_kl(teacher.cuda(), on_gpu).cpu(), posterior_kl(teacher, on_cpu))
