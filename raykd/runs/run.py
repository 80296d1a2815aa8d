"""A run: one model trained once. Plain data, so that it crosses processes and hashes to its identity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
    trained on as well.
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

    def _deciding(self) -> dict[str, Any]:
        fields = asdict(self)
        if self.objective["kind"] in LABELS:
            # Where λ has nothing to weigh, every annealing rate is the same run.
            fields["schedule"] = {"epochs": self.schedule["epochs"]}
        if self.model.get("checksum"):
            # A checkpoint that is given is named by its files' content, wherever they lie.
            fields["model"] = {key: value for key, value in self.model.items() if key != "path"}
            del fields["vocabulary_id"]
        if (self.model.get("contextual") or {}).get("checksum"):
            encoder = {key: value for key, value in self.model["contextual"].items() if key != "path"}
            fields["model"] = {**self.model, "contextual": encoder}
        return fields

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
