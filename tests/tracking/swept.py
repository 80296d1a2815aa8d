"""A sweep published in MLflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import State, Trial
from raykd.tracking.pages import searched_params, texts
from raykd.tracking.publisher import Publisher
from raykd.tracking.sweep_pages import SweepPages
from raykd.tracking.views import Experiment


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
        tags: Mapping[str, str] | None = None,
        warn: Callable[[str], None] = lambda message: None,
        seconds: float = 1e6,
        **more: Any,
    ):
        self._trials: dict[int, Trial] = {}
        self.pages = SweepPages(
            name, sweep_id, lambda: list(self._trials.values()), score_name=score_name, objectives=OBJECTIVES,
            params=searched_params(tree or {}), tags=texts(tags or {}), **more,
        )  # fmt: skip
        views = Experiment(name, score_name, score_label, targets, run, stages, artifacts)
        self.publisher = Publisher(uri, views, self.pages, warn=warn)
        self.publisher.start(seconds)

    @property
    def shown(self) -> Any:
        """The publisher's knowledge of the server, with its client."""
        return self.publisher.published

    def record(self, *trials: Trial) -> None:
        """Trials begin, or end."""
        for trial in trials:
            if trial.state != "RUNNING":
                self.pages.end_trial(trial.number)
        self._trials |= {trial.number: trial for trial in trials}

    def publish(self) -> tuple[str, ...]:
        """Publish now. Returns what is missing."""
        return self.publisher.publish()

    def close(self, state: State = "COMPLETE") -> tuple[str, ...]:
        """The sweep ends. Returns what is missing."""
        return self.publisher.close(state)
