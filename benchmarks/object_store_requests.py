"""Requests of a small sweep to an object store, by kind: of the first run and of `--resume`.

    python benchmarks/object_store_requests.py
    python benchmarks/object_store_requests.py --by-file     also the files with most requests

The whole sweep runs in one process without Ray, with its store on an S3-compatible server of this machine (moto). The
log of the server is counted. Several processes send more requests, since each opens what it needs once.
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
"""Kinds of requests. UPLOAD: one of the three or more requests that upload a file in parts."""


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
    """Run `raykd sweep`, with its output in a file."""
    words = [str(folder / "sweep.yaml"), "--set", f"store={server.uri('store')}"]
    with (folder / "out").open("w") as out:
        console, sys.stdout = sys.stdout, out
        try:
            code = code_of("sweep", *words, "--set", f"tracking.uri=sqlite:///{folder / 'mlflow.db'}", *more)
        finally:
            sys.stdout = console
    assert not code, (folder / "out").read_text()


def show(name: str, requests: list[Asked]) -> None:
    """Print one row of the table; with --by-file also the files with most requests."""
    kinds = Counter(request.kind for request in requests)
    empty = {
        request.path
        for request in requests
        if request.kind == "PUT" and "." not in request.path.rpartition("/")[2]
    }
    cells = [str(kinds[kind]) for kind in KINDS]
    print(f"| {name} | {' | '.join(cells)} | {len(requests)} | {len(empty)} |", flush=True)
    if "--by-file" in sys.argv:
        files = Counter((request.kind, request.path.partition("/")[2]) for request in requests)
        for (kind, path), count in files.most_common(40):
            print(f"    {count:4} {kind:6} {path}")


if __name__ == "__main__":
    main()
