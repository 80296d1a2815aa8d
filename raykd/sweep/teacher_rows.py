"""The rows of the teachers, with which students are compared, and the check that a teacher learnt something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raykd.cluster.listener import Listener
from raykd.corpora import Corpus
from raykd.corpora.label_counts import label_counts
from raykd.errors import UnlearntError
from raykd.figures.trial import Teacher, format_scores
from raykd.pluralise import pluralise
from raykd.recipes.run import Run
from raykd.sweep.outcome import teacher_row
from raykd.sweep.records import TrainingLabels
from raykd.sweep.sweep import Sweep
from raykd.tracking.sweep_pages import SweepPages
from raykd.training.execute import find_result

FEW_LABELS = 20
"""Labels of dev below which finding none of them proves nothing: a teacher that finds one in seven misses twenty in a
row one time in twenty."""


def refuse_unlearnt(sweep: Sweep, listener: Listener) -> None:
    """Warn of languages in which teachers learnt nothing, and stop if they learnt nothing at all.

    A teacher learnt nothing if its dev score is not above that of the most frequent label. Nothing stops if no
    objective reads a teacher, or if `teachers_must_learn` is false. Masked language models are not judged: they do not
    predict labels of the corpus.

    Raises:
        UnlearntError: no teacher learnt anything, and dev has enough labels to tell.
    """
    teachers_are_read = any(
        preparation.needs or preparation.live for preparation in sweep.preparations.values()
    )
    if not teachers_are_read or sweep.file.task_entry.form.hides_pieces:
        return
    rows = [row for row in teacher_rows(sweep, costs=False) if row.unlearnt]
    if not rows:
        return
    names = "; ".join(map(_name_with_scores, rows))
    labels = _labels(sweep.preparation.corpus, "dev")
    count = sum(labels.get(language, 0) for language in {name for row in rows for name in row.unlearnt})
    if _all_unlearnt(sweep, rows) and count >= FEW_LABELS and sweep.file.teachers_must_learn:
        steps = pluralise(_steps(sweep), "optimiser step")
        raise UnlearntError(names, steps, trained=sweep.file.teachers.trained)
    doubt = f" (dev has {pluralise(count, 'label')} there, too few to be sure)" if count < FEW_LABELS else ""
    listener.warn(
        f"no more than the most frequent label is predicted by {names}{doubt}; students learn nothing of that"
    )


def _name_with_scores(row: Teacher) -> str:
    """The teacher's name with the languages in which it learnt nothing: `bilstm_crf × 2 (de dev F1 0.0)`."""
    scores = ", ".join(
        f"{language} dev {row.score_label} {100 * value:.1f}" for language, value in row.unlearnt.items()
    )
    return f"{row.name} ({scores})"


def _all_unlearnt(sweep: Sweep, rows: Sequence[Teacher]) -> bool:
    """True if `rows`, with a language in which nothing was learnt, are all rows, and learnt nothing in any language."""
    whole = all(len(row.unlearnt) == len(row.scores.by_language("dev")) for row in rows)
    return whole and len(rows) == len(sweep.teacher_groups)


def _steps(sweep: Sweep) -> int:
    """Optimiser steps of the longest training of a teacher."""
    results = (find_result(sweep.storage, run) for _, run in sweep.members)
    return max((result.steps for result in results if result is not None), default=0)


def save_teachers(sweep: Sweep, listener: Listener) -> list[Teacher]:
    """Save and show the teachers' rows."""
    rows = teacher_rows(sweep)
    corpora = {
        preparation.preparation.corpus_id: preparation.preparation.corpus
        for preparation in sweep.preparations.values()
    }
    counts = {
        part: {key: _labels(corpus, part) for key, corpus in corpora.items()} for part in ("dev", "train")
    }
    training = [
        TrainingLabels(preparation.differences, counts["train"][preparation.preparation.corpus_id])
        for preparation in sweep.preparations.values()
    ]
    # What a masked language model predicts is no label of the corpus.
    hidden = sweep.file.task_entry.form.hides_pieces
    dev_labels = None if hidden else min(sum(labels.values()) for labels in counts["dev"].values())
    sweep.records.save_teachers(rows, dev_labels=dev_labels, training=training)
    for teacher in (reported for row in rows for reported in (row, *row.members)):
        listener.note(f"teacher {teacher.name}: {format_scores(teacher)}")
    return rows


def log_teachers(sweep: Sweep, rows: Sequence[Teacher], pages: SweepPages) -> None:
    """Show the teachers in MLflow, with the curves of single teachers."""
    curves = []
    for row, (_, teachers) in zip(rows, sweep.teacher_groups, strict=True):
        run_results = [] if row.members else [find_result(sweep.storage, teacher.run) for teacher in teachers]
        results = [result for result in run_results if result is not None]
        several = len(results) > 1
        epochs = {
            "+".join(result.scores.by_language("dev")) if several else "": result.epochs for result in results
        }
        curves.append((row, epochs))
    pages.log_teachers(curves)


def _labels(corpus: Corpus, part: str) -> dict[str, int]:
    """Number of labels of a part, by language."""
    counts = label_counts(corpus.parts[part], corpus.tag_set)
    return {language: sum(labels.values()) for language, labels in counts.items() if labels}


def teacher_rows(sweep: Sweep, *, costs: bool = True) -> list[Teacher]:
    """Return one row for all teachers of an alternative; below it, one row for each seed of an ensemble.

    Args:
        sweep: The sweep.
        costs: Add the costs of the teachers, which must be measured already.
    """
    rows = []
    for title, teachers in sweep.teacher_groups:
        members = [
            _row(sweep, f"{seed[0].model['kind']} seed {seed[0].training['seed']}", seed, costs=False)
            for seed in zip(*(teacher.run.members for teacher in teachers), strict=True)
        ]
        rows.append(_row(sweep, title, [teacher.run for teacher in teachers], costs=costs, members=members))
    return rows


def _row(
    sweep: Sweep,
    name: str,
    runs: Sequence[Run],
    *,
    costs: bool,
    members: Sequence[Teacher] = (),
) -> Teacher:
    results = (find_result(sweep.storage, run) for run in runs)
    measured = [sweep.cost(run) for run in runs] if costs else ()
    task = sweep.file.task_entry
    row = teacher_row(
        name, [result for result in results if result is not None], measured, members=members,
        score_name=task.score_name, score_label=task.score_label,
    )  # fmt: skip
    score = row.scores.get("dev")
    languages = () if score is None else score.by_language
    return replace(row, majority={name: sweep.majority[name] for name in languages if name in sweep.majority})
