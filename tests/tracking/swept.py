"""A sweep that is published in MLflow, without anything that computes it: its trials are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import State, Trial
from raykd.tracking.pages import StudentModel, charted, searched_params
from raykd.tracking.publisher import Publisher
from raykd.tracking.server import Experiment
from raykd.tracking.sweep_pages import SweepPages
from raykd.tracking.views import score_columns

FIGURES = ("dev_f1", "latency_ms")


class Swept:
    """One driver's publishing. It publishes in `publish` and `close` alone, where no `seconds` are given."""

    def __init__(
        self,
        uri: str,
        name: str,
        *,
        sweep_id: str = "sweep-1",
        score_name: str = "f1",
        score_label: str = "F1",
        targets: bool = False,
        run: str = "",
        stages: Sequence[Sequence[str]] = (("",),),
        artifacts: str | None = None,
        tree: Mapping[str, Any] | None = None,
        warn: Callable[[str], None] = lambda message: None,
        seconds: float = 1e6,
        **more: Any,
    ):
        self._trials: dict[int, Trial] = {}
        self.pages = SweepPages(
            name, sweep_id, lambda: list(self._trials.values()), score_name=score_name, objectives=OBJECTIVES,
            params=searched_params(tree or {}), **more,
        )  # fmt: skip
        scores = score_columns(score_name, targets=targets)
        views = Experiment(name, scores, score_label, charted(scores[0], run, stages), artifacts)
        self.publisher = Publisher(uri, views, self.pages.sweep(), warn=warn)
        self.pages.grown = self.publisher.front_step
        self.publisher.start(self.pages, seconds)

    @property
    def shown(self) -> Any:
        """What the publisher knows of the server, with the client that asks it."""
        return self.publisher._shown

    def record(self, *trials: Trial) -> None:
        """Trials begin, or end."""
        self._trials |= {trial.number: trial for trial in trials}

    def publish(self) -> tuple[str, ...]:
        """Publish now. Returns what is missing."""
        return self.publisher.publish(self.pages())

    def close(self, state: State = "COMPLETE") -> tuple[str, ...]:
        """The sweep ends. Returns what is missing."""
        self.pages.state = state
        return self.publisher.close(patient=state == "COMPLETE")

    def student(self, number: int, export: Path | None, ship: str = "") -> StudentModel:
        """The student of a trial, to be logged as a model."""
        return StudentModel(f"student-{number:02d}", export, self.pages.name, FIGURES, ship)
