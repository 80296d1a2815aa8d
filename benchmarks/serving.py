"""Sentences a second of an exported student compared with peers, and `raykd serve` under load.

    python benchmarks/serving.py student test.conllu --column 1 --run .raykd/runs/run-… --teacher teacher
    python benchmarks/serving.py student test.conllu --column 1 --only load

`student` and `teacher` are folders that `raykd export` wrote. `--run` is the run of the student, for PyTorch.

Contestants alternate after one round to warm up, on the same sentences of words (CoNLL columns), at batch 1 and 32, on
1 and 2 threads. A ratio compares a contestant with the student in PyTorch in the same round (without --run: with the
first contestant); the table has the median over rounds. All steps from words to labels are timed: pieces, numbers,
model, decoding. The labeller remembers words that it has split, as in serving. spaCy's pipeline is untrained: vectors
of hashes, four convolutions and a transition-based parser, as in en_core_web_sm, on one thread.

Under load, `raykd serve` runs in a separate process. 32 clients of this process send one sentence at a time to
127.0.0.1, 2,000 requests in a pass. There are ten passes, with the server's memory after each. The memory is flat if
the last passes add nothing.
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
    """Yield the sentences of a CoNLL file as lists of words."""
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


def contestants(arguments: argparse.Namespace, threads: int) -> dict[str, Label]:
    """Return the labelling functions by name of the contestant."""
    labellers: dict[str, Label] = {}
    if arguments.run:
        labellers["student, PyTorch"] = in_pytorch(arguments.run, threads)
    labellers["student, exported"] = load(arguments.student, threads=threads).label
    labellers["student, exported, 8 bits"] = load(arguments.student, file=INT8, threads=threads).label
    if arguments.teacher:
        labellers["teacher, exported"] = load(arguments.teacher, file=FLOAT32, threads=threads).label
    if threads == 1:
        labellers["spaCy, small CNN"] = in_spacy(load(arguments.student).labels)
    return labellers


def in_pytorch(run: str, threads: int) -> Label:
    """Return the labelling function of a run in PyTorch."""
    import torch

    from raykd.training.load import load_tagger

    tagger = load_tagger(run)

    def label(batch: list[Words]) -> object:
        torch.set_num_threads(threads)
        return tagger.label(batch)

    return label


def in_spacy(labels: tuple[str, ...]) -> Label:
    """Return the labelling function of an untrained spaCy pipeline, in shape like en_core_web_sm."""
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
    return lambda batch: list(
        nlp.pipe([Doc(nlp.vocab, sentence) for sentence in batch], batch_size=len(batch))
    )


def compare(arguments: argparse.Namespace, sentences: list[Words]) -> None:
    """Print sentences a second and ratios."""
    print("| threads | batch | | sentences/s | ratio |\n|---:|---:|---|---:|---:|")
    for threads in THREADS:
        labellers = contestants(arguments, threads)
        for batch in BATCHES:
            speeds: dict[str, list[float]] = {name: [] for name in labellers}
            for _ in range(arguments.rounds + 1):
                for name, label in labellers.items():
                    started = time.perf_counter()
                    for first in range(0, len(sentences), batch):
                        label(sentences[first : first + batch])
                    speeds[name].append(len(sentences) / (time.perf_counter() - started))
            base = next(iter(speeds.values()))[1:]  # without the first round, which warms up
            for name, rates in speeds.items():
                ratio = median(a / b for a, b in zip(rates[1:], base, strict=True))
                print(
                    f"| {threads} | {batch} | {name} | {median(rates[1:]):,.0f} | {ratio:.2f}× |", flush=True
                )


def serve_under_load(arguments: argparse.Namespace, sentences: list[Words]) -> None:
    """Print requests a second, latencies, errors and memory of the server."""
    command = [sys.executable, "-c", "from raykd.cli.main import main; main()", "serve", arguments.student]
    wide = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(
        [*command, "--port", "0", *arguments.serve.split()], stdout=subprocess.PIPE, text=True, env=wide
    ) as process:
        assert process.stdout is not None
        try:
            place = process.stdout.readline().strip().rpartition("//")[2]
            print(f"before the first request: {resident_mib(process.pid):.1f} MiB\n")
            print("| pass | requests | at once | requests/s | p50 | p99 | errors | memory after |")
            print("|---:|---:|---:|---:|---:|---:|---:|---:|")
            for number in range(1, arguments.passes + 1):
                seconds, waits, errors = requests(place, sentences, arguments.requests, arguments.clients)
                cuts = quantiles(waits, n=100)
                print(
                    f"| {number} | {arguments.requests:,} | {arguments.clients} | {arguments.requests / seconds:,.0f} "
                    f"| {1000 * cuts[49]:.1f} ms | {1000 * cuts[98]:.1f} ms | {errors} "
                    f"| {resident_mib(process.pid):.1f} MiB |",
                    flush=True,
                )
        finally:
            process.terminate()
            process.wait()


def requests(place: str, sentences: list[Words], count: int, clients: int) -> tuple[float, list[float], int]:
    """Send `count` requests of one sentence; a client keeps its connection.

    Returns:
        Seconds of all requests together, seconds by request, and the number of errors.
    """
    local = threading.local()

    def ask(number: int) -> tuple[float, bool]:
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection(place, timeout=60)
        body = json.dumps({"tokens": [sentences[number % len(sentences)]]})
        started = time.perf_counter()
        try:
            local.connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
            answer = local.connection.getresponse()
            answer.read()
        except OSError:
            del local.connection
            return time.perf_counter() - started, False
        return time.perf_counter() - started, answer.status == 200

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(ask, range(count)))
    return time.perf_counter() - started, [wait for wait, _ in answers], sum(not well for _, well in answers)


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    import psutil

    return psutil.Process(pid).memory_info().rss / 2**20


def main() -> None:
    """Print the tables of speed and load."""
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
    arguments = parser.parse_args()
    sentences = list(islice(sentences_of(arguments.file, arguments.column), arguments.sentences))
    words = sum(map(len, sentences))
    print(f"{len(sentences)} sentences, {words / len(sentences):.1f} words on average\n", flush=True)
    if arguments.only != "load":
        compare(arguments, sentences)
        print()
    if arguments.only != "speed":
        serve_under_load(arguments, sentences)


if __name__ == "__main__":
    main()
