"""Scores by language beside the number of training labels (Mukherjee & Awadallah 2020, Figure 2), to be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from raykd.figures.results import Part
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher
from raykd.identity import PlainObject

Labels = Mapping[int, Mapping[str, int]]
"""Trial → language → number of labels in its training text; languages without labels are left out."""
PARTS: tuple[Part, ...] = ("dev", "test")


class LanguageScores:
    """The scores of a sweep by language, those with the most labels first.

    If settings train on different texts, the largest number of labels in a language counts for this order.
    """

    def __init__(self, scored: Iterable[TrialOrTeacher], labels: Labels):
        self._labels = {number: counts for number, counts in labels.items() if counts}
        names = dict.fromkeys(
            name for model in scored for part in PARTS for name in model.scores.by_language(part)
        )
        largest = {
            name: max((counts.get(name, 0) for counts in self._labels.values()), default=0) for name in names
        }
        self.names = sorted(names, key=lambda name: -largest[name])
        # Many trials train on the same text, so that the page holds its counts only once.
        self._texts = list(dict.fromkeys(map(self._counts, self._labels.values())))

    def common(self, teachers: Sequence[Teacher]) -> PlainObject | None:
        """Return the values shared by all students; None with fewer than two languages.

        Args:
            teachers: Teachers of the sweep.

        Returns:
            `names` of the languages; `teacher`: in each part the best teacher's score of each language; `labels`:
            number of labels by language for each text used in training.
        """
        if len(self.names) < 2:
            return None
        best: dict[Part, dict[str, float]] = {part: {} for part in PARTS}
        for part in PARTS:
            for teacher in teachers:
                for name, value in teacher.scores.by_language(part).items():
                    best[part][name] = max(value, best[part].get(name, 0.0))
        reference = {part: self._in_percent(scores) for part, scores in best.items() if scores}
        return {"names": self.names, "teacher": reference, "labels": self._texts}

    def student(self, trial: Trial) -> PlainObject:
        """Return a student's scores by part, in percent in the order of `names`, and the index of its training text."""
        scores = {part: part_scores for part in PARTS if (part_scores := trial.scores.by_language(part))}
        labels = self._labels.get(trial.number)
        return {
            **{part: self._in_percent(part_scores) for part, part_scores in scores.items()},
            **({"labels": self._texts.index(self._counts(labels))} if labels else {}),
        }

    def _in_percent(self, scores: Mapping[str, float]) -> list[float | None]:
        return [round(100 * scores[name], 2) if name in scores else None for name in self.names]

    def _counts(self, labels: Mapping[str, int]) -> tuple[int, ...]:
        """Numbers of labels in the order of `names`."""
        return tuple(labels.get(name, 0) for name in self.names)
