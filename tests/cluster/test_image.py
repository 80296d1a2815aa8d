"""The container image's recipe, as far as it can be judged without building it."""

import re
import tomllib

import numpy as np
import pytest
import torch

from raykd.cluster.environment import TELEMETRY_OFF
from raykd.structures.chain import Chain
from raykd.structures.compiled import best, blocks, launch, products, sums, tangents
from raykd.structures.compiled.compile_all import compile_all_kernels
from tests.cluster.manifests import ROOT

IMAGE = ROOT / "cluster/image"


def instructions():
    """(instruction, rest) of each line of the Dockerfile, continued lines joined."""
    text = (IMAGE / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], " ".join(line.split()[1:])) for line in lines]


def test_it_installs_what_was_tested_and_does_not_run_as_root():
    dockerfile = instructions()
    assert dockerfile[0] == ("FROM", "python:3.11-slim-bookworm")
    for kind, rest in dockerfile:
        if kind == "RUN" and "pip install" in rest:
            assert "--constraint constraints.txt" in rest
    order = [kind if kind == "USER" else rest for kind, rest in dockerfile if kind in ("USER", "RUN")]
    assert order.index("USER") < order.index("python -m raykd.structures.compiled.compile_all")
    assert [rest for kind, rest in dockerfile if kind == "USER"] == ["1000"]
    assert not [
        rest
        for kind, rest in dockerfile
        if kind in ("ENV", "ARG") and re.search("PASSWORD|SECRET|TOKEN", rest)
    ]
    # KubeRay asks a node with wget whether it lives.
    assert any("wget" in rest for kind, rest in dockerfile if kind == "RUN")


def test_it_reports_nothing_to_anyone():
    (variables,) = (
        dict(re.findall(r"(\w+)=(\S+)", rest)) for kind, rest in instructions() if "PYTHONUNBUFFERED" in rest
    )
    assert TELEMETRY_OFF.items() <= variables.items()


def test_what_is_copied_is_there_and_not_ignored():
    unignored = {
        line[1:] for line in (IMAGE / "Dockerfile.dockerignore").read_text().splitlines() if line[0] == "!"
    }
    copied = [rest.split()[:-1] for kind, rest in instructions() if kind == "COPY"]
    for source in (source for sources in copied for source in sources):
        assert (ROOT / source).exists()
        assert source in unignored


def test_extras_and_packages_that_are_named_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = (re.search(r'"\.\[(.*)\]"', rest) for kind, rest in instructions() if '".[' in rest)
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    requirements = [line for line in (IMAGE / "requirements.txt").read_text().splitlines() if line[0] != "#"]
    assert {re.split(r"[\[<>=]", requirement)[0].lower() for requirement in requirements} <= pinned


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_command_compiles_every_kernel_that_a_sweep_calls(dtype):
    def compiled():
        modules = (best, blocks, products, sums, tangents)
        functions = [
            var for module in modules for var in vars(module).values() if hasattr(var, "nopython_signatures")
        ]
        return {function.py_func.__qualname__: len(function.nopython_signatures) for function in functions}

    compile_all_kernels()
    before = compiled()
    assert min(before[name] for name in ("sum_product", "tangent", "k_best")) >= 2
    random = torch.Generator().manual_seed(0)
    scores_BTY = torch.randn(9, 7, 5, generator=random, dtype=dtype)
    lengths_B = torch.tensor([7, 1, 2, 3, 4, 5, 6, 7, 7])
    transitions_BYY = torch.randn(9, 5, 5, generator=random, dtype=dtype)
    ends_Y = torch.randn(5, generator=random, dtype=dtype)
    for chain in (
        Chain(scores_BTY, lengths_B),
        Chain(scores_BTY, lengths_B, transitions_BYY[0], ends_Y, ends_Y),
        Chain(scores_BTY, lengths_B, transitions_BYY, transitions_BYY[:, 0], transitions_BYY[:, 1]),
    ):
        launch.sum_product(chain, token=True, pair=False)
        launch.sum_product(chain, token=False, pair=True, sides=True)
        launch.covariance(chain, scores_BTY)
        launch.posterior(chain, scores_BTY.softmax(-1), token=False, pair=False)
        for k in (1, 3):
            _, scores_BK = launch.k_best(chain, k)
            assert np.isfinite(scores_BK[0].numpy()).all()
    assert compiled() == before
