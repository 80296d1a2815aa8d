"""Scores by language beside the labels that each has (Mukherjee & Awadallah 2020, Figure 2), as numbers that the page
draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raykd.figures.results import Part
from raykd.figures.trial import Scored, Teacher, Trial
from raykd.report.front_rows import FrontRow

Labels = Mapping[int, Mapping[str, int]]
"""Trial → language → how many labels its training text has; languages without any are left out."""
PARTS: tuple[Part, ...] = ("dev", "test")


class Languages:
    """The languages of a sweep in the order of the picture: those with the most labels first; where settings train on
    different text, its largest counts."""

    def __init__(self, scored: Iterable[Scored], labels: Labels):
        # Sweeps that were recorded before labels were counted have none.
        self._labels = {number: own for number, own in labels.items() if own}
        found = dict.fromkeys(
            name for each in scored for part in PARTS for name in each.scores.by_language(part)
        )
        most = {name: max((own.get(name, 0) for own in self._labels.values()), default=0) for name in found}
        self.names = sorted(found, key=lambda name: -most[name])
        self._texts = list(dict.fromkeys(tuple(self._counts(own)) for own in self._labels.values()))

    def data(self, teachers: Sequence[Teacher], rows: Sequence[FrontRow]) -> dict[str, Any] | None:
        """What all students have in common: `names`, the `teacher` of each part (the best of each language), `labels`
        by language of each text that is trained on. None where there are fewer than two languages."""
        if len(self.names) < 2:
            return None
        best: dict[str, list[float | None]] = {}
        for part in PARTS:
            own: dict[str, float] = {}
            for teacher in teachers:
                for name, value in teacher.scores.by_language(part).items():
                    own[name] = max(value, own.get(name, 0.0))
            if own:
                best[part] = self._in_percent(own)
        return {
            "names": self.names,
            "teacher": best,
            "labels": [list(text) for text in self._texts],
            "front": [row.trial.number for row in rows],
        }

    def of(self, trial: Trial) -> dict[str, Any]:
        """A student's own scores of each part in percent, in the order of `names`, and which of the texts is its."""
        scores = {part: own for part in PARTS if (own := trial.scores.by_language(part))}
        labels = self._labels.get(trial.number)
        return {
            **{part: self._in_percent(own) for part, own in scores.items()},
            **({"labels": self._texts.index(tuple(self._counts(labels)))} if labels else {}),
        }

    def _in_percent(self, scores: Mapping[str, float]) -> list[float | None]:
        return [round(100 * scores[name], 2) if name in scores else None for name in self.names]

    def _counts(self, labels: Mapping[str, int]) -> list[int]:
        return [labels.get(name, 0) for name in self.names]
