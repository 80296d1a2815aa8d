"""Sentences per second of a shipped student, against what else could label them; and `raykd serve` under load.

    python benchmarks/serving.py student test.conllu --column 1 --run .raykd/runs/run-… --teacher teacher
    python benchmarks/serving.py student test.conllu --column 1 --only load

`student` and `teacher` are folders that `raykd export` wrote; the run is the student's, for PyTorch. Contestants
alternate, round by round, after one round to warm up, on the same sentences of words (CoNLL columns), at batch 1 and
32, on 1 and 2 threads; a ratio is the median over rounds of the contestant's speed against the student's in PyTorch
in the same round (against the first contestant without --run). From words to labels: pieces, numbers, model,
decoding. Words that were split before are remembered by the labeller, as when serving. spaCy's pipeline is untrained:
vectors of hashes, four convolutions and a transition-based parser, as in en_core_web_sm; it computes on one thread.

Under load, `raykd serve` runs in a process of its own, and 32 clients of this process send a sentence each, on
127.0.0.1, until there were 2,000 requests; ten such passes, with the server's memory after each: it is flat where the
last passes add nothing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

from raykd.serving.labeller import FLOAT32, INT8, load

Words = list[str]
Label = Callable[[list[Words]], object]
BATCHES, THREADS = (1, 32), (1, 2)


def sentences_of(file: str, column: int) -> Iterator[Words]:
    """The words of each sentence of a CoNLL file."""
    words: Words = []
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        cells = line.split("\t") if "\t" in line else line.split()
        if cells and not line.startswith("# "):
            words.append(cells[column])
        elif words and not line.strip():
            yield words
            words = []
    if words:
        yield words


def contestants(given: argparse.Namespace, threads: int) -> dict[str, Label]:
    """Name → what labels a batch on so many threads."""
    found: dict[str, Label] = {}
    if given.run:
        found["student, PyTorch"] = in_pytorch(given.run, threads)
    found["student, exported"] = load(given.student, threads=threads).label
    found["student, exported, 8 bits"] = load(given.student, file=INT8, threads=threads).label
    if given.teacher:
        found["teacher, exported"] = load(given.teacher, file=FLOAT32, threads=threads).label
    if threads == 1:
        found["spaCy, small CNN"] = in_spacy(load(given.student).labels)
    return found


def in_pytorch(run: str, threads: int) -> Label:
    """The run that the student was exported from."""
    import torch

    from raykd.training.load import load_tagger

    tagger = load_tagger(run)

    def label(batch: list[Words]) -> object:
        torch.set_num_threads(threads)
        return tagger.label(batch)

    return label


def in_spacy(labels: tuple[str, ...]) -> Label:
    """Words to entities by an untrained pipeline of en_core_web_sm's shape."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example

    nlp = spacy.blank("en")
    tok2vec = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2", "width": 96, "include_static_vectors": False,
            "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE", "SPACY", "IS_SPACE"],
            "rows": [5000, 1000, 2500, 2500, 50, 50],
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 96, "depth": 4, "window_size": 1,
            "maxout_pieces": 3,
        },
    }  # fmt: skip
    parser = {
        "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner", "extra_state_tokens": False,
        "hidden_width": 64, "maxout_pieces": 2, "use_upper": True, "tok2vec": tok2vec,
    }  # fmt: skip
    ner = nlp.add_pipe("ner", config={"model": parser})
    for name in sorted({label.partition("-")[2] or label for label in labels} - {"O"}):
        ner.add_label(name)
    words = ["Ada", "lives"]
    nlp.initialize(lambda: [Example.from_dict(Doc(nlp.vocab, words), {"entities": ["O", "O"]})])
    return lambda batch: list(nlp.pipe([Doc(nlp.vocab, own) for own in batch], batch_size=len(batch)))


def compare(given: argparse.Namespace, sentences: list[Words]) -> None:
    """Print sentences per second, and ratios."""
    print("| threads | batch | | sentences/s | ratio |\n|---:|---:|---|---:|---:|")
    for threads in THREADS:
        found = contestants(given, threads)
        for batch in BATCHES:
            speeds: dict[str, list[float]] = {name: [] for name in found}
            for _ in range(given.rounds + 1):
                for name, label in found.items():
                    started = time.perf_counter()
                    for first in range(0, len(sentences), batch):
                        label(sentences[first : first + batch])
                    speeds[name].append(len(sentences) / (time.perf_counter() - started))
            base = next(iter(speeds.values()))[1:]  # the first round was to warm up
            for name, own in speeds.items():
                ratio = median(a / b for a, b in zip(own[1:], base, strict=True))
                print(f"| {threads} | {batch} | {name} | {median(own[1:]):,.0f} | {ratio:.2f}× |", flush=True)


def serve_under_load(given: argparse.Namespace, sentences: list[Words]) -> None:
    """Print requests per second, latencies, errors and memory."""
    command = [sys.executable, "-c", "from raykd.cli.main import main; main()", "serve", given.student]
    wide = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(
        [*command, "--port", "0", *given.serve.split()], stdout=subprocess.PIPE, text=True, env=wide
    ) as process:
        assert process.stdout is not None
        try:
            place = process.stdout.readline().strip().rpartition("//")[2]
            print(f"before the first request: {resident_mib(process.pid):.1f} MiB\n")
            print("| pass | requests | at once | requests/s | p50 | p99 | errors | memory after |")
            print("|---:|---:|---:|---:|---:|---:|---:|---:|")
            for number in range(1, given.passes + 1):
                seconds, waits, errors = requests(place, sentences, given.requests, given.clients)
                cuts = quantiles(waits, n=100)
                print(
                    f"| {number} | {given.requests:,} | {given.clients} | {given.requests / seconds:,.0f} "
                    f"| {1000 * cuts[49]:.1f} ms | {1000 * cuts[98]:.1f} ms | {errors} "
                    f"| {resident_mib(process.pid):.1f} MiB |",
                    flush=True,
                )
        finally:
            process.terminate()
            process.wait()


def requests(place: str, sentences: list[Words], count: int, clients: int) -> tuple[float, list[float], int]:
    """(seconds of all, seconds of each, errors) of so many requests of one sentence; a client keeps its connection."""
    own = threading.local()

    def ask(number: int) -> tuple[float, bool]:
        if not hasattr(own, "connection"):
            own.connection = http.client.HTTPConnection(place, timeout=60)
        body = json.dumps({"tokens": [sentences[number % len(sentences)]]})
        started = time.perf_counter()
        try:
            own.connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
            answer = own.connection.getresponse()
            answer.read()
        except OSError:
            del own.connection
            return time.perf_counter() - started, False
        return time.perf_counter() - started, answer.status == 200

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        done = list(pool.map(ask, range(count)))
    return time.perf_counter() - started, [wait for wait, _ in done], sum(not well for _, well in done)


def resident_mib(pid: int) -> float:
    """Memory of a process."""
    import psutil

    return psutil.Process(pid).memory_info().rss / 2**20


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("student", help="an exported folder")
    parser.add_argument("file", help="sentences in CoNLL columns")
    parser.add_argument("--column", type=int, default=0, help="of the words")
    parser.add_argument("--run", help="the folder of the student's run, for PyTorch")
    parser.add_argument("--teacher", help="the exported folder of its teacher")
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=2000, help="of a pass")
    parser.add_argument(
        "--passes", type=int, default=10, help="of so many requests, with the memory after each"
    )
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--serve", default="", help="further options of raykd serve, in one string")
    parser.add_argument("--only", choices=["speed", "load"])
    given = parser.parse_args()
    sentences = list(islice(sentences_of(given.file, given.column), given.sentences))
    words = sum(map(len, sentences))
    print(f"{len(sentences)} sentences, {words / len(sentences):.1f} words on average\n", flush=True)
    if given.only != "load":
        compare(given, sentences)
        print()
    if given.only != "speed":
        serve_under_load(given, sentences)


if __name__ == "__main__":
    main()
