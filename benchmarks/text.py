"""Reading a corpus of any size: seconds, sentences a second, and peak memory of each step.

    python benchmarks/text.py                       200,000 sentences (half a minute)
    python benchmarks/text.py 200000 2000000        two sizes
    python benchmarks/text.py 200000 --folder DIR   keep the corpus, and take it from there the next time

The benchmark makes a corpus of CoNLL columns: four languages, about 12 words a sentence, words as frequent as in text
(Zipf), half of the sentences without tags. Steps run in separate processes:

    read    from the files into the store
    open    again, by the key of the files
    text    from the stored corpus to the text that a teacher reads, in the store

Memory is what a process needs beyond its imports, in MiB: with pages of mapped files, which the system takes back when
it needs them (`MiB`), and without (`unmapped`). `busy` is seconds of the processor; look at these on a machine that has
other work.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

LANGUAGES = ("da", "de", "nl", "sv")
WORDS = 60_000
STEPS = ("read", "open", "text")
MIB = 2**20


def make(folder: Path, count: int) -> None:
    """Write a corpus of `count` sentences into `folder`, unless the folder has one already."""
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sentences_per_language = count // len(LANGUAGES)
    parts = {
        "dev": sentences_per_language // 100,
        "test": sentences_per_language // 100,
        "train": sentences_per_language // 2 - sentences_per_language // 50,
    }
    for number, language in enumerate(LANGUAGES):
        draw = np.random.default_rng(number)
        words = [f"{language}{spelling(place)}" for place in range(WORDS)]
        for part, sentences in {**parts, "unlabelled": sentences_per_language - sum(parts.values())}.items():
            with (folder / f"{language}.{part}").open("w", encoding="utf-8") as file:
                for first in range(0, sentences, 10_000):
                    file.write(lines(draw, words, min(10_000, sentences - first), part != "unlabelled"))
    (folder / "complete").write_text("")


def spelling(place: int) -> str:
    """Return a word for a rank of frequency; frequent words are short."""
    letters = ""
    while place:
        place, letter = divmod(place, 21)
        letters += "aeionrstldmkpugbvfhyø"[letter]
    return letters


def lines(draw: np.random.Generator, words: list[str], sentences: int, tagged: bool) -> str:
    lengths = draw.poisson(11, sentences) + 1
    places = np.minimum(draw.zipf(1.2, lengths.sum()) - 1, draw.integers(0, WORDS, lengths.sum()))
    tags = np.array(["O", "B-PER", "B-LOC", "B-ORG"])[
        draw.choice(4, lengths.sum(), p=[0.91, 0.03, 0.03, 0.03])
    ]
    rows = [words[place] for place in places.tolist()]
    if tagged:
        rows = [f"{word}\t{tag}" for word, tag in zip(rows, tags.tolist(), strict=True)]
    bounds = np.cumsum(lengths).tolist()
    return "".join("\n".join(rows[a:b]) + "\n\n" for a, b in zip([0, *bounds[:-1]], bounds, strict=True))


def step(name: str, folder: Path, store: Path) -> dict[str, float]:
    """Run one step in the current process, and return seconds and memory."""
    from raykd.corpora.conll import ConllSource
    from raykd.corpora.stored_sources import find_corpus
    from raykd.storage.store import Storage
    from raykd.training.prepare import training_text
    from raykd.transfer import write_text

    plain = {"source": "conll", "root": str(folder), "languages": LANGUAGES}
    plain |= {part: f"{{lang}}.{part}" for part in ("train", "dev", "test", "unlabelled")}
    config, storage = ConllSource.model_validate_json(json.dumps(plain)), Storage(str(store))

    def done() -> None:
        corpus, _ = find_corpus(config, storage)
        if name == "text":
            write_text(storage, training_text(corpus))

    return measured(done)


def measured(do) -> dict[str, float]:
    before, anonymous_before = peak(), own_memory()
    anonymous, ended = [anonymous_before], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            anonymous.append(own_memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start, busy = time.perf_counter(), time.process_time()
    do()
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    ended.set()
    watcher.join()
    return {
        "seconds": seconds,
        "busy": busy,
        "all": (peak() - before) / MIB,
        "own": (max(anonymous) - anonymous_before) / MIB,
    }


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def own_memory() -> int:
    """Return the anonymous memory (pages of no file) of the current process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sentences", type=int, nargs="*", default=[200_000])
    parser.add_argument("--folder", type=Path, help="where the corpora are kept")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(step(arguments.step, arguments.folder, arguments.store)))
        return
    print(
        f"{'sentences':>12} {'step':<6} {'seconds':>8} {'busy':>8} {'a second':>10} {'MiB':>7} {'unmapped':>9}"
    )
    for count in arguments.sentences:
        with tempfile.TemporaryDirectory() as scratch:
            folder = (arguments.folder or Path(scratch)) / f"corpus-{count}"
            make(folder, count)
            for name in STEPS:
                words = ["--step", name, "--folder", str(folder), "--store", f"{scratch}/store"]
                process = subprocess.run(
                    [sys.executable, __file__, *words], capture_output=True, text=True, check=False
                )
                if process.returncode:
                    sys.exit(process.stderr)
                figures = json.loads(process.stdout)
                seconds, busy = figures["seconds"], figures["busy"]
                print(
                    f"{count:>12,} {name:<6} {seconds:>8.2f} {busy:>8.2f} {count / seconds:>10,.0f} "
                    f"{figures['all']:>7.0f} {figures['own']:>9.0f}"
                )


if __name__ == "__main__":
    main()
