"""A run: one model trained once. Plain data, so that it crosses processes and hashes to its identity."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from raykd.identity import identity
from raykd.objectives import LABELS

FORMAT = 1


@dataclass(frozen=True)
class Source:
    """The signals of one teacher that a run reads: which languages they cover and where they are stored."""

    teacher_id: str
    languages: tuple[str, ...]
    signals: dict[str, str]
    """Signal name → signal id."""


@dataclass(frozen=True)
class Run:
    """One model trained once, described completely.

    `role` "teacher" trains `model` (a teacher's configuration) on gold tags; "student" distils `model` with
    `objective` from `sources`. `corpus_id` names a stored corpus that holds exactly the languages trained on, so
    a monolingual teacher is the same whatever languages a sweep adds. `unlabelled`: whether unlabelled text is
    trained on as well. A teacher's run whose model has a `count` above 1 is an ensemble: it trains nothing, and is the
    mean of its members.
    """

    role: Literal["teacher", "student"]
    task: str
    corpus_id: str
    vocabulary_id: str
    model: dict[str, Any]
    objective: dict[str, Any]
    schedule: dict[str, Any]
    training: dict[str, Any]
    sources: tuple[Source, ...] = ()
    unlabelled: bool = False
    sampling_alpha: float = 1.0
    """Exponent of smoothed language sampling; 1 takes every sentence once an epoch."""

    @property
    def id(self) -> str:
        """Hash of everything that decides the outcome: names, hosts and worker counts are not among the fields."""
        return identity(
            "teacher" if self.role == "teacher" else "run", {"format": FORMAT, **self._deciding()}
        )

    @property
    def members(self) -> tuple[Run, ...]:
        """The runs whose mean an ensemble is, one per seed; none of a run that is no ensemble."""
        count = self.model.get("count", 1)
        if count == 1:
            return ()
        seeded = [{**self.training, "seed": self.training["seed"] + i} for i in range(count)]
        return tuple(
            replace(self, model={**self.model, "count": 1, "training": own}, training=own) for own in seeded
        )

    def _deciding(self) -> dict[str, Any]:
        if self.members:
            return {"members": [member.id for member in self.members], "combine": self.model["combine"]}
        fields = asdict(self)
        # One alone is what it is, however several would be combined.
        model = {key: value for key, value in self.model.items() if key not in ("count", "combine")}
        if self.objective["kind"] in LABELS:
            # Where λ has nothing to weigh, every annealing rate is the same run.
            fields["schedule"] = {"epochs": self.schedule["epochs"]}
        if model.get("checksum"):
            # A checkpoint that is given is named by its files' content, wherever they lie.
            del model["path"], fields["vocabulary_id"]
        if (model.get("contextual") or {}).get("checksum"):
            model["contextual"] = {k: value for k, value in model["contextual"].items() if k != "path"}
        return {**fields, "model": model}

    @property
    def folder(self) -> tuple[str, str]:
        """Where the run is kept in the store."""
        return ("teachers" if self.role == "teacher" else "runs", self.id)

    def to_plain(self) -> dict[str, Any]:
        """JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> Run:
        """The run that `to_plain` wrote (lists become tuples again)."""
        sources = tuple(
            Source(s["teacher_id"], tuple(s["languages"]), dict(s["signals"])) for s in plain["sources"]
        )
        return Run(**{**plain, "sources": sources})
