"""Compilation of all kernels, in both precisions, into the folder of `cache.py`.

`python -m raykd.structures.compiled.compile_all` is for a container image: without it each node compiles the kernels at
their first use, for about a minute.
"""

from __future__ import annotations

import torch

from raykd.structures.arcs import Arcs
from raykd.structures.chain import Chain
from raykd.structures.compiled import launch


def compile_all_kernels() -> None:
    """Call all kernels once, on a chain of two tags or on trees of two words."""
    for dtype in (torch.float32, torch.float64):
        emissions_BTY = torch.zeros(1, 2, 2, dtype=dtype)
        chain = Chain(emissions_BTY, torch.tensor([2]), torch.zeros(2, 2, dtype=dtype))
        launch.sum_product(chain, token=True, pair=True, sides=True)
        launch.covariance(chain, emissions_BTY)
        launch.posterior(chain, emissions_BTY.softmax(-1), token=True, pair=True)
        launch.k_best(chain, 2)
    launch.best_trees(Arcs(torch.zeros(1, 2, 3), torch.tensor([2])))


if __name__ == "__main__":
    compile_all_kernels()
