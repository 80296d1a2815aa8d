"""Reading a corpus of any size: seconds, sentences a second, and the memory that each step needs at its peak.

    python benchmarks/text.py                       200,000 sentences (half a minute)
    python benchmarks/text.py 200000 2000000        two sizes
    python benchmarks/text.py 200000 --folder DIR   keep the corpus, and take it from there the next time

A corpus of CoNLL columns is made: four languages, about 12 words a sentence, words as frequent as in text (Zipf), half
of the sentences without tags. Each step runs in a process of its own: `read` from the files into the store, `open`
again by the key of the files, `text` from the stored corpus to what a teacher reads, in the store. Memory is what a
process needs beyond its imports, in MiB: all of it, pages of mapped files among it, which the system takes back where
it needs them; and without them. `busy` are seconds of the processor: what counts on a machine that has other work.
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
    """A corpus of `count` sentences in `folder`, unless it is there."""
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    own = count // len(LANGUAGES)
    parts = {"dev": own // 100, "test": own // 100, "train": own // 2 - own // 50}
    for number, language in enumerate(LANGUAGES):
        draw = np.random.default_rng(number)
        words = [f"{language}{spelling(place)}" for place in range(WORDS)]
        for part, sentences in {**parts, "unlabelled": own - sum(parts.values())}.items():
            with (folder / f"{language}.{part}").open("w", encoding="utf-8") as file:
                for first in range(0, sentences, 10_000):
                    file.write(lines(draw, words, min(10_000, sentences - first), part != "unlabelled"))
    (folder / "complete").write_text("")


def spelling(place: int) -> str:
    """A word: the more frequent ones are shorter."""
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
    """One step, in this process."""
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
    before, own_before = peak(), own_memory()
    own, ended = [own_before], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            own.append(own_memory())

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
        "own": (max(own) - own_before) / MIB,
    }


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def own_memory() -> int:
    """Bytes of this process that are no pages of files."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sentences", type=int, nargs="*", default=[200_000])
    parser.add_argument("--folder", type=Path, help="where the corpora are kept")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(step(given.step, given.folder, given.store)))
        return
    print(
        f"{'sentences':>12} {'step':<6} {'seconds':>8} {'busy':>8} {'a second':>10} {'MiB':>7} {'unmapped':>9}"
    )
    for count in given.sentences:
        with tempfile.TemporaryDirectory() as own:
            folder = (given.folder or Path(own)) / f"corpus-{count}"
            make(folder, count)
            for name in STEPS:
                words = ["--step", name, "--folder", str(folder), "--store", f"{own}/store"]
                done = subprocess.run(
                    [sys.executable, __file__, *words], capture_output=True, text=True, check=False
                )
                if done.returncode:
                    sys.exit(done.stderr)
                found = json.loads(done.stdout)
                seconds, busy = found["seconds"], found["busy"]
                print(
                    f"{count:>12,} {name:<6} {seconds:>8.2f} {busy:>8.2f} {count / seconds:>10,.0f} "
                    f"{found['all']:>7.0f} {found['own']:>9.0f}"
                )


if __name__ == "__main__":
    main()
