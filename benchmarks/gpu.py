"""All that is to be known of raykd on a GPU, in at most eight minutes: `make gpu`.

    PYTHONPATH=. python3 benchmarks/gpu.py               from a checkout, or an archive of one
    PYTHONPATH=. python3 benchmarks/gpu.py --small       the same in small on the processor (two minutes)
    PYTHONPATH=. python3 benchmarks/gpu.py --only times  one section alone

Prints Markdown. Each section runs in a process of its own with a time limit of its own, and writes a file of its own in
the output folder while it runs. One that fails or takes too long says why, and the next one runs. Peers that are not
installed (pytorch-crf, torch-struct) are left out. raykd itself need not be installed; nothing is downloaded.
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
"""Their limits add up to eight minutes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "build/gpu"))
    parser.add_argument("--small", action="store_true", help="on the processor, with tiny models and shapes")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies all time limits")
    given = parser.parse_args()
    if not given.small and not torch.cuda.is_available():
        raise SystemExit(
            f"PyTorch {torch.__version__} sees no GPU; give --small to run everything in small on the processor"
        )
    # Sections start commands in other folders: a relative path would lead nowhere there.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
    sections = [
        Section(section.name, section.limit_s * given.patience, section.write)
        for section in SECTIONS
        if section.name in given.only
    ]
    place = Place("cpu" if given.small else "cuda", given.small)
    print("# raykd on a GPU\n" if not given.small else "# raykd on a GPU: in small, on the processor\n")
    failed = run_sections(sections, place, given.out)
    print(f"{len(sections) - len(failed)} of {len(sections)} sections ended well; their files: {given.out}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
