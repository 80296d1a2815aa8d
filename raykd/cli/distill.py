"""`raykd distill`: train the first setting of a sweep file."""

from __future__ import annotations

from raykd.cli.cluster import phase_session
from raykd.cli.console import stdout
from raykd.cli.options import (
    Address,
    Overrides,
    Plain,
    Small,
    SweepPath,
    Variants,
    file_arguments,
    load_document,
)
from raykd.figures.trial import Teacher, format_scores
from raykd.pluralise import pluralise
from raykd.sweep.driver import run_phases, transfer_phases
from raykd.sweep.phases.teachers import RunsPhase
from raykd.sweep.sweep import Sweep
from raykd.tasks import find_task
from raykd.training.execute import find_result


class Distillation(RunsPhase):
    """The phase `distill`: train the runs of one setting."""

    name, role = "distill", "students"


def distill(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
    plain: Plain = False,
) -> None:
    """Train one student: the first alternative of each search in FILE (choose others with --set)."""
    sweep = Sweep(load_document(file, variant, small, set_))
    with phase_session(sweep, "distill", address, plain=plain) as context:
        run_phases(context, transfer_phases(context))
        runs = [(run.id, run) for run in sweep.first_setting.runs]
        run_phases(context, [Distillation(context, runs)])
    for name, run in runs:
        result = find_result(sweep.storage, run)
        if result is not None:
            scored = Teacher(name, result.scores, score_label=find_task(run.task).score_label)
            stdout.print(f"{name}: {format_scores(scored)}, best epoch {result.best_epoch + 1}")
    stdout.print(
        f"distill: {pluralise(len(runs), 'run')} in {sweep.storage.child('runs').address}. "
        f"Next: raykd sweep {file_arguments(file, variant, small, set_)}"
    )
