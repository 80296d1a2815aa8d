"""Scores by language beside the labels that each has (Mukherjee & Awadallah 2020, Figure 2), as numbers that the page
draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from raykd.figures.results import Part
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher
from raykd.identity import PlainObject

Labels = Mapping[int, Mapping[str, int]]
"""Trial → language → how many labels its training text has; languages without any are left out."""
PARTS: tuple[Part, ...] = ("dev", "test")


class LanguageScores:
    """The languages of a sweep in the order of the picture: those with the most labels first; where settings train on
    different text, its largest counts.
    """

    def __init__(self, scored: Iterable[TrialOrTeacher], labels: Labels):
        self._labels = {number: counts for number, counts in labels.items() if counts}
        names = dict.fromkeys(
            name for each in scored for part in PARTS for name in each.scores.by_language(part)
        )
        most = {
            name: max((counts.get(name, 0) for counts in self._labels.values()), default=0) for name in names
        }
        self.names = sorted(names, key=lambda name: -most[name])
        self._texts = list(dict.fromkeys(map(self._counts, self._labels.values())))

    def common(self, teachers: Sequence[Teacher]) -> PlainObject | None:
        """What all students have in common: `names`, the `teacher` of each part (the best of each language), `labels`
        by language of each text that is trained on. None where there are fewer than two languages.
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
        """A student's scores of each part in percent, in the order of `names`, and which of the texts is its."""
        scores = {part: found for part in PARTS if (found := trial.scores.by_language(part))}
        labels = self._labels.get(trial.number)
        return {
            **{part: self._in_percent(found) for part, found in scores.items()},
            **({"labels": self._texts.index(self._counts(labels))} if labels else {}),
        }

    def _in_percent(self, scores: Mapping[str, float]) -> list[float | None]:
        return [round(100 * scores[name], 2) if name in scores else None for name in self.names]

    def _counts(self, labels: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(labels.get(name, 0) for name in self.names)
