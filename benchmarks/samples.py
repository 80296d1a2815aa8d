"""Students of a whole distribution, and of 1, 5 and 20 samples drawn from it: what a sample of a teacher is worth.

    python benchmarks/samples.py OUT --corpus FOLDER    CoNLL files {lang}/{part}, such as WikiAnn's

One CRF teacher is trained. It teaches once as a model, and once more as an annotator that gives so many samples for
each text; fewer are the first of more. Top-WK and posterior distil the same student from each, over three seeds. What
is finished is not computed again: call it again after a kill.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

SAMPLES = (1, 5, 20)
SWEEP = """\
name: {name}
task: ner
corpus: {{source: conll, root: '{root}', languages: [{languages}], train: '{{lang}}/train.*', dev: '{{lang}}/val.*',
          test: '{{lang}}/test.*', columns: {{token: 1, tag: 2}}, cap: 3000, dev_cap: 2000, test_cap: 4000,
          unlabelled: rest, unlabelled_cap: {unlabelled}}}
teachers: {teachers}
student: {{kind: bilstm, embedding_dim: 32, hidden_dim: 64, decoder: crf, vocabulary: {{kind: wordpiece, size: 8000}}}}
objective: {{choice: [{objectives}]}}
schedule: {{epochs: {epochs}, anneal_rate: 0}}
training: {{optimiser: adam, learning_rate: 2e-3, batch_tokens: 2000}}
search: {{trials: {trials}, sampler: grid, runs_per_setting: {seeds}, objectives: {{f1: max, latency_ms: min}}}}
store: {out}/store
tracking: {{uri: 'sqlite:///{out}/mlflow.db'}}
"""
CRF = "{kind: bilstm_crf, embedding_dim: 100, hidden_dim: 128, epochs: 15, training: {optimiser: adam, " + (
    "learning_rate: 2e-3, batch_tokens: 1000, dropout: 0.3}}"
)
OF_SAMPLES = ("{kind: top_wk}", "{kind: posterior}")
OF_MODEL = (*OF_SAMPLES, "{kind: top_wk, k: 20}", "{kind: structural}")


def sweep_file(options: argparse.Namespace, name: str, teachers: str, objectives: Sequence[str]) -> Path:
    """Write a sweep file; return its path."""
    file = options.out / f"{name}.yaml"
    file.write_text(
        SWEEP.format(
            name=name, root=options.corpus, languages=", ".join(options.languages), teachers=teachers,
            objectives=", ".join(objectives), trials=len(objectives), seeds=options.seeds, out=options.out,
            epochs=options.epochs, unlabelled=options.unlabelled,
        )
    )  # fmt: skip
    return file


def run_sweep(file: Path) -> None:
    """Run a sweep to its end, in a process of its own."""
    code = subprocess.run(["raykd", "sweep", str(file), "--resume"]).returncode
    if code:
        sys.exit(code)


def draw_samples(file: Path, answers: Path) -> None:
    """Draw the most samples for every text of the sweep's corpus from its teacher, and write them as answers.

    Args:
        file: Sweep file of the teacher, which is trained.
        answers: File to write, JSON Lines.
    """
    from raykd.precompute.open_teacher import load_teacher
    from raykd.spec import load
    from raykd.structures import sample
    from raykd.sweep.sweep import Sweep
    from raykd.training.data import cached_corpus

    sweep = Sweep(load(file))
    corpus = sweep.preparation.corpus
    generator, partial = torch.Generator().manual_seed(0), answers.with_suffix(".partial")
    with partial.open("w") as out:
        for _, run in sweep.teachers:  # one for each language
            teacher = load_teacher(sweep.storage, run.id)
            languages = cached_corpus(sweep.storage.uri, run.corpus_id).languages
            for table in corpus.parts.values():
                sentences = [row["tokens"] for row in table.to_pylist() if row["language"] in languages]
                for places, _, output in teacher.outputs(sentences, 8000):
                    drawn_BST = sample(output.distribution, max(SAMPLES), generator)
                    for place, labels_ST in zip(places, drawn_BST.tolist(), strict=True):
                        words = sentences[place]
                        samples = [
                            {"labels": corpus.tag_set.decode(labels_T[: len(words)])}
                            for labels_T in labels_ST
                        ]
                        record = {"tokens": words, "samples": samples}
                        out.write(json.dumps(record, ensure_ascii=False) + "\n")
    partial.rename(answers)


def first_samples(answers: Path, count: int) -> Path:
    """Write the first samples of each answer to a file; return its path."""
    file = answers.with_name(f"samples-{count}.jsonl")
    with answers.open() as lines, file.open("w") as out:
        for line in lines:
            record = json.loads(line)
            record["samples"] = record["samples"][:count]
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
    return file


def show(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Print dev and test F1 of each objective from each teacher, means and standard deviations over seeds."""
    from raykd.storage.store import Storage
    from raykd.sweep.records import SweepRecords

    print("| teacher | objective | dev F1 | test F1 | sd |\n| --- | --- | ---: | ---: | ---: |")
    for name in names:
        records = SweepRecords(Storage(f"{options.out}/store"), name)
        for trial in sorted(records.trials(), key=lambda trial: trial.number):
            test = trial.scores.get("test")
            if trial.role != "search" or test is None:
                continue
            settings = {key: value for key, value in trial.settings.items() if key.startswith("objective.")}
            objective = " ".join(
                str(settings[key]) for key in ("objective.kind", "objective.k") if key in settings
            )
            dev = 100 * (trial.scores.mean("dev") or 0.0)
            print(
                f"| {name} | {objective} | {dev:.1f} | {100 * test.mean:.1f} | {100 * (test.sd or 0.0):.1f} |"
            )


def main() -> None:
    """Train the teacher, draw the samples, run the sweeps, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", default=["en", "de"])
    parser.add_argument("--unlabelled", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    options.out, options.corpus = options.out.absolute(), options.corpus.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    whole = sweep_file(options, "model", CRF, OF_MODEL)
    run_sweep(whole)
    answers = options.out / "answers.jsonl"
    if not answers.exists():
        draw_samples(whole, answers)
    for count in SAMPLES:
        teachers = f"{{kind: annotations, path: '{first_samples(answers, count)}', answers: samples}}"
        run_sweep(sweep_file(options, f"samples-{count}", teachers, OF_SAMPLES))
    show(options, ["model", *(f"samples-{count}" for count in SAMPLES)])


if __name__ == "__main__":
    main()
