"""Teachers of single languages on zero-shot languages (Wang et al. 2020, Tables 4 and 5, row Teachers).

    python benchmarks/teacher_targets.py STORE RUN    RUN: a student's run of a finished zero-shot sweep

Prints the score of every teacher of the run on all zero-shot languages, and the mean over languages of the best
teacher. This mean chooses teachers by the test itself, so it is the most that teachers can reach.
"""

from __future__ import annotations

import argparse
from functools import partial
from statistics import fmean

from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.layout import MODEL
from raykd.storage.store import Storage
from raykd.tasks import TASKS
from raykd.training.data import cached_corpus
from raykd.training.evaluate import predict
from raykd.training.model_folder import load_model
from raykd.training.worker import Worker


def scores(store: str, teacher_id: str, corpus_id: str) -> dict[str, float]:
    """Return the scores of a teacher on test, by zero-shot language of the corpus."""
    storage = Storage(store)
    run = storage.read_json(f"teachers/{teacher_id}/{MODEL}", Run.from_plain)
    corpus, task = cached_corpus(store, corpus_id), TASKS[run.task]
    if not corpus.targets:
        raise SystemExit(f"{corpus_id} has no zero-shot languages; name a run of a zero-shot sweep")
    table = corpus.select_languages(corpus.targets).parts["test"]
    text = open_vocabulary(storage, run.vocabulary_id).encode(table)
    gold = task.form.targets(table, pos=corpus.pos, labels=corpus.tag_set)
    predicted = predict(
        load_model(storage, run), text, partial(task.form.best_labellings, gold), worker=Worker()
    )
    languages = table["language"].to_pylist()
    result = task.score(gold, predicted, tag_set=corpus.tag_set, languages=languages)
    return dict(result["source"].by_language)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store")
    parser.add_argument("run")
    arguments = parser.parse_args()
    student = Storage(arguments.store).read_json(f"runs/{arguments.run}/{MODEL}", Run.from_plain)
    best: dict[str, float] = {}
    for source in student.sources:
        teacher_scores = scores(arguments.store, source.teacher_id, student.corpus_id)
        by_language = ", ".join(f"{language} {100 * value:.1f}" for language, value in teacher_scores.items())
        print(
            f"{'+'.join(source.languages)}: {100 * fmean(teacher_scores.values()):.1f} ({by_language})",
            flush=True,
        )
        best = {language: max(value, best.get(language, 0.0)) for language, value in teacher_scores.items()}
    by_language = ", ".join(f"{language} {100 * value:.1f}" for language, value in best.items())
    print(f"best of each language: {100 * fmean(best.values()):.1f} ({by_language})")


if __name__ == "__main__":
    main()
