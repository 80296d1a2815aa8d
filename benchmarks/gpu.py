"""A report on raykd on a GPU, in at most eight minutes: `make gpu`.

    PYTHONPATH=. python3 benchmarks/gpu.py               from a checkout, or an archive of one
    PYTHONPATH=. python3 benchmarks/gpu.py --small       small shapes on the processor (two minutes)
    PYTHONPATH=. python3 benchmarks/gpu.py --only times  one section

The output is Markdown. Each section runs in its own process, with a time limit, and writes a file in the output folder
while it runs. A section that fails or takes too long prints the reason, and the next one runs. Peers that are not
installed (pytorch-crf, torch-struct) are left out. raykd itself need not be installed, and nothing is downloaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch
from gpu_sections import chains, models, steps, sweeps
from gpu_sections.runner import Place, Section, run_sections

SECTIONS = (
    Section("device", 25, chains.describe_device),
    Section("equality", 35, chains.compare_with_cpu),
    Section("times", 50, chains.time_operations),
    Section("waits", 40, steps.count_waits),
    Section("models", 75, models.time_models),
    Section("sweeps", 160, sweeps.run_sweeps),
    Section("Ray Train", 75, sweeps.run_ray_train),
    Section("resumption", 20, steps.compare_resumed),
)
"""Sections with their limits in seconds, which add up to eight minutes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "build/gpu"))
    parser.add_argument("--small", action="store_true", help="on the processor, with tiny models and shapes")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies all time limits")
    arguments = parser.parse_args()
    if not arguments.small and not torch.cuda.is_available():
        raise SystemExit(
            f"PyTorch {torch.__version__} sees no GPU; give --small to run everything in small on the processor"
        )
    # Absolute paths, since sections start commands in other folders.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
    sections = [
        Section(section.name, section.limit_s * arguments.patience, section.write)
        for section in SECTIONS
        if section.name in arguments.only
    ]
    place = Place("cpu" if arguments.small else "cuda", arguments.small)
    print("# raykd on a GPU\n" if not arguments.small else "# raykd on a GPU: in small, on the processor\n")
    failed = run_sections(sections, place, arguments.out)
    print(
        f"{len(sections) - len(failed)} of {len(sections)} sections ended well; their files: {arguments.out}"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
