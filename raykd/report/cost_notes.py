"""Notes on missing or uncertain costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raykd.figures.trial import Teacher, Trial


def cost_notes(students: Iterable[Trial], teachers: Sequence[Teacher]) -> list[str]:
    """Return each note once, with the trials or teachers concerned.

    Args:
        students: Trials, named by their numbers.
        teachers: Teachers, named by their names.
    """
    about: dict[str, list[str]] = {}
    for teacher in teachers:
        for note in teacher.cost_notes:
            about.setdefault(note, []).append(f"the teacher {teacher.name}")
    for trial in sorted(students, key=lambda trial: trial.number):
        for note in trial.cost_notes:
            about.setdefault(note, []).append(f"#{trial.number:02d}")
    return [f"{', '.join(names)}: {note}" for note, names in about.items()]
