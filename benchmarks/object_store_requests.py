"""What a small sweep asks of an object store: requests by kind, of its first run and of `--resume`.

    python benchmarks/object_store_requests.py

Everything of a sweep but Ray, in one process, with its store on an S3-compatible server of this machine (moto), whose
log is counted. Several processes ask more: each opens what it needs once.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.s3_server import KEYS, Asked, S3Server
from tests.sweep.in_process import code_of, without_ray

SWEEP = """\
name: requests
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6, unlabelled: 8}
teachers:
  {kind: bilstm_crf, scope: language, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: {choice: [6, 8]}, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: top_wk, k: 2}]}
schedule: {epochs: 2, anneal_horizon: 2}
training: {batch_tokens: 200}
search: {sampler: grid}
baseline: gold
"""
KINDS = ("HEAD", "GET", "LIST", "PUT", "UPLOAD", "DELETE")
"""UPLOAD: one of the three or more requests of a file that is put in parts."""


def main() -> None:
    """Print a Markdown table."""
    os.environ |= KEYS
    print(f"| | {' | '.join(KINDS)} | all | empty objects left |\n|---|{'---:|' * (len(KINDS) + 2)}")
    with tempfile.TemporaryDirectory(prefix="raykd-") as scratch:
        folder = Path(scratch)
        os.environ["RAYKD_CACHE"] = str(folder / "cache")
        (folder / "sweep.yaml").write_text(SWEEP)
        server = S3Server(folder)
        try:
            with without_ray():
                for name, more in (("first run", ()), ("`--resume` of the ended sweep", ("--resume",))):
                    server.asked()
                    sweep(server, folder, *more)
                    show(name, server.asked())
        finally:
            server.stop()


def sweep(server: S3Server, folder: Path, *more: str) -> None:
    """The command, whose own output is no part of the table."""
    words = [str(folder / "sweep.yaml"), "--set", f"store={server.uri('store')}"]
    with (folder / "out").open("w") as out:
        kept, sys.stdout = sys.stdout, out
        try:
            code = code_of("sweep", *words, "--set", f"tracking.uri=sqlite:///{folder / 'mlflow.db'}", *more)
        finally:
            sys.stdout = kept
    assert not code, (folder / "out").read_text()


def show(name: str, asked: list[Asked]) -> None:
    """One row; with --by-file also what most requests were for."""
    kinds = Counter(each.kind for each in asked)
    empty = {each.path for each in asked if each.kind == "PUT" and "." not in each.path.rpartition("/")[2]}
    cells = [str(kinds[kind]) for kind in KINDS]
    print(f"| {name} | {' | '.join(cells)} | {len(asked)} | {len(empty)} |", flush=True)
    if "--by-file" in sys.argv:
        files = Counter((each.kind, each.path.partition("/")[2]) for each in asked)
        for (kind, path), count in files.most_common(40):
            print(f"    {count:4} {kind:6} {path}")


if __name__ == "__main__":
    main()
