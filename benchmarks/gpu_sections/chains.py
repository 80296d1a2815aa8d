"""Sections on chains: the device and the kernels, equality with float64 on the processor, and times beside peers.

B batch, T time, Y tags.
"""

from __future__ import annotations

import importlib.util
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import torch
from structures import medians
from structures_contestants import K, Problem, ours, problem_of, pytorch_crf, torch_struct
from torch import Tensor

from gpu_sections.runner import Place
from gpu_sections.tables import print_head, print_row
from raykd import structures
from raykd.precompute.processor import processor_name
from raykd.structures import Chain, engine, reference

OPERATIONS = ("nll", "marginals", "viterbi", "kbest10", "top_wk", "structural", "posterior")
CELLS = ((32, 16, 9), (128, 32, 17), (512, 32, 9), (512, 128, 41))
SMALL_CELLS = ((4, 5, 3), (8, 9, 5))
EXTRA_SHAPES = ((5, 6, 5), (16, 12, 130))
"""Further shapes for the comparison; the second has more tags than the kernels take (128)."""
PEERS = {"pytorch-crf": ("torchcrf", pytorch_crf), "torch-struct": ("torch_struct", torch_struct)}
ROUNDS, PATIENCE_S = 7, 0.5
PACKAGES = ("numpy", "triton", "transformers", "ray", "mlflow", "optuna", "pytorch-crf", "torch-struct")


def describe_device(place: Place) -> None:
    """Print the devices, the versions, and the code behind every operation on chains: a kernel or plain PyTorch."""
    print_head("", "")
    if place.device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        print_row("GPU", f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB")
    print_row("processor", processor_name())
    print_row("Python", platform.python_version())
    print_row("PyTorch", torch.__version__)
    for name in PACKAGES:
        print_row(name, _version(name))
    print()
    print_head("operation", "kernels")
    for name, operation in ours().items():
        with _asked_kernels() as modules:
            operation(problem_of(8, 9, 5).on(place.device))
        used = [f"{kernel}: {_computed_by(module)}" for kernel, module in modules.items()]
        print_row(name, "; ".join(used) or "plain PyTorch")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@contextmanager
def _asked_kernels() -> Iterator[dict[str, Any]]:
    """Yield the kernels looked up inside the context: operation to module, or None if there is none."""
    modules: dict[str, Any] = {}
    kernels = engine.kernels

    def noted(chain: Any, operation: str = "sum_product") -> Any:
        modules[operation] = kernels(chain, operation)
        return modules[operation]

    engine.kernels = noted
    try:
        yield modules
    finally:
        engine.kernels = kernels


def _computed_by(module: Any) -> str:
    if module is None:
        return "plain PyTorch"
    return f"{module.KIND} failed, plain PyTorch" if module.KIND in engine._broken else module.KIND


def compare_with_cpu(place: Place) -> None:
    """Print the largest differences of float32 on the device from float64 on the processor, for all operations."""
    shapes = SMALL_CELLS if place.small else (*EXTRA_SHAPES, *CELLS)
    print("Largest differences from float64 on the processor, each divided by the larger of 1 and the value;")
    print("of paths: of their scores. Values and gradients together.\n")
    print_head("B, T, Y", "scores to", *OPERATIONS)
    for shape in shapes:
        for scale in (1, 20):
            problem = _scaled(problem_of(*shape), scale)
            expected, computed = _results(_double(problem)), _results(problem.on(place.device))
            # Best paths may differ where scores are close: compare their scores under the float64 chain.
            for name in ("viterbi", "kbest10"):
                paths = computed[name][0].cpu()
                computed[name] = (reference.score(_double(problem).fixed(), paths),)
                expected[name] = expected[name][1:]
            highest = problem.emissions.abs().max()
            differences = [_difference(computed[name], expected[name]) for name in OPERATIONS]
            print_row(f"{shape[0]}, {shape[1]}, {shape[2]}", f"{highest:.0f}", *differences)


def _scaled(problem: Problem, scale: float) -> Problem:
    scaled = {name: getattr(problem, name) * scale for name in ("emissions", "transitions", "teacher")}
    return Problem(**vars(problem) | scaled)


def _double(problem: Problem) -> Problem:
    floats = {
        name: value.double()
        for name, value in vars(problem).items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    return Problem(**vars(problem) | floats)


def _results(problem: Problem) -> dict[str, tuple[Tensor, ...]]:
    """Return the results of all operations: values and gradients, or paths and scores."""
    teacher = problem.teacher_chain()
    losses: dict[str, Callable[[Chain], Tensor]] = {
        "nll": lambda chain: structures.path_loss(chain, problem.paths[:, 0]),
        "top_wk": lambda chain: structures.path_loss(chain, problem.paths, problem.weights),
        "structural": lambda chain: structures.fenchel_young(chain, structures.moments(teacher)),
        "posterior": lambda chain: structures.posterior_kl(structures.token_marginals(teacher), chain),
    }
    results: dict[str, tuple[Tensor, ...]] = {}
    for name, loss in losses.items():
        chain = problem.chain()
        value_B = loss(chain)
        leaves = (chain.emissions_BTY, chain.transitions)
        results[name] = (value_B.detach(), *torch.autograd.grad(value_B.sum(), leaves))
    results["marginals"] = (structures.token_marginals(problem.fixed()),)
    paths_BT, score_B = structures.viterbi(problem.fixed())
    return results | {
        "viterbi": (paths_BT[:, None], score_B[:, None]),
        "kbest10": structures.kbest(problem.fixed(), K),
    }


def _difference(computed: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> str:
    largest = 0.0
    for computed_values, expected_values in zip(computed, expected, strict=True):
        computed_values, expected_values = computed_values.cpu().double(), expected_values.cpu().double()
        # Where there are fewer than K labellings, the others have the score −∞ on both sides.
        apart = torch.where(
            computed_values == expected_values,
            0,
            (computed_values - expected_values).abs() / expected_values.abs().clamp(min=1),
        )
        largest = max(largest, float(apart.max()))
    return f"{largest:.0e}"


def time_operations(place: Place) -> None:
    """Print the milliseconds of all operations, and the times of the peers as multiples."""
    calls, absent = {"ours": ours()}, []
    for name, (module, make) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            absent.append(f"{name}: not installed")
        else:
            calls[name] = make()
    peers = [name for name in calls if name != "ours"]
    print(
        f"Milliseconds, forward and backward where there is one; in brackets {', '.join(peers) or 'no peers'},"
    )
    print(f"as multiples of ours. {'. '.join(absent)}\n")
    print_head("B, T, Y", *OPERATIONS)
    for shape in SMALL_CELLS if place.small else CELLS:
        problem = problem_of(*shape).on(place.device)
        cells = []
        for operation in OPERATIONS:
            contestants = {
                name: partial(table[operation], problem)
                for name, table in calls.items()
                if operation in table
            }
            spent = medians(contestants, 2 if place.small else ROUNDS, PATIENCE_S, clock_of(place.device))
            cells.append(_cell(spent, peers))
        print_row(f"{shape[0]}, {shape[1]}, {shape[2]}", *cells)


def _cell(spent: dict[str, float], peers: list[str]) -> str:
    ratios = [f"{spent[name] / spent['ours']:.1f}×" if name in spent else "–" for name in peers]
    return f"{spent['ours'] * 1e3:.2f}" + (f" ({', '.join(ratios)})" if ratios else "")


def clock_of(device: str) -> Callable[[], float]:
    """Return a clock in seconds; it waits first until the device has finished."""

    def clock() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    return clock


def median_ms(call: Callable[[], object], device: str, *, rounds: int) -> float:
    """Return the median milliseconds of a call, after two to warm up."""
    clock, spent = clock_of(device), []
    for _ in range(rounds + 2):
        started = clock()
        call()
        spent.append(clock() - started)
    return 1e3 * median(spent[2:])
