"""A run: one model trained once, stage by stage. Plain data: it crosses processes and hashes to its identity."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal, TypeVar

from pydantic import TypeAdapter

from raykd.figures.results import RunResult
from raykd.identity import PlainObject, identity
from raykd.storage.layout import RESULT
from raykd.storage.store import Storage

FORMAT = 4

Config = TypeVar("Config")


@dataclass(frozen=True)
class Source:
    """The signals of one teacher that a run reads: which languages they cover and where they are stored.

    The stored signals may cover more text than the run's own (a larger transfer set serves a smaller one): then
    `text_id` names the text that they cover, and `stored` where they are. Neither decides what is computed.
    """

    teacher_id: str
    languages: tuple[str, ...]
    signals: dict[str, str]
    """`Need.name` → id of the signal for the run's own text: part of the run's identity."""
    text_id: str = ""
    stored: dict[str, str] = field(default_factory=dict)
    """`Need.name` → id under which the signal is stored, where that is another."""

    @property
    def folders(self) -> dict[str, str]:
        """`Need.name` → id under which the signal is stored."""
        return self.stored or self.signals


@dataclass(frozen=True)
class Run:
    """One model trained once, described completely.

    `role` "teacher" trains `model` (a teacher's configuration) on gold labels; "student" distils `model` from
    `sources`. `corpus_id` names a stored corpus that holds exactly the languages trained on, so a monolingual teacher
    is the same whatever languages a sweep adds. A teacher's run whose model has a `count` above 1 is an ensemble: it
    trains nothing, and is the mean of its members.
    """

    role: Literal["teacher", "student"]
    task: str
    corpus_id: str
    vocabulary_id: str
    model: PlainObject
    stages: tuple[PlainObject, ...]
    """Each stage, resolved: objective, text, schedule, and what of `training` is its own (`recipe.py`)."""
    training: PlainObject
    sources: tuple[Source, ...] = ()
    sampling_alpha: float = 1.0
    """Exponent of smoothed language sampling; 1 takes every sentence once an epoch."""
    start_from: dict[str, str] | None = None
    """The weights that training starts from: `folder` (a URI) and `weights_sha256`."""
    embeddings_from: dict[str, str] | None = None
    """Whose vectors of pieces the model's start from: `teacher_id`, or `path` and `checksum` of a checkpoint."""
    labels_id: str = ""
    """The stored labels that the model predicts, where they are not the tags of its corpus."""
    decoding: str = ""
    """How the best labelling is found where not all labels may follow each other: `legal` or `independent`; empty of
    other models."""

    @cached_property
    def id(self) -> str:
        """Hash of everything that decides the outcome: names, hosts and worker counts are not among the fields."""
        return identity(
            "teacher" if self.role == "teacher" else "run", {"format": FORMAT, **self._identity_fields()}
        )

    @property
    def stage_names(self) -> tuple[str, ...]:
        """What each stage trains on, as curves call it."""
        return tuple(objective_name(stage["objective"]) for stage in self.stages)

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

    def _identity_fields(self) -> PlainObject:
        if self.members:
            return {"members": [member.id for member in self.members], "combine": self.model["combine"]}
        fields = asdict(self)
        # One alone is the same however several would be combined; the corpus says which languages it is for.
        model = {key: value for key, value in self.model.items() if key not in ("count", "combine", "scope")}
        if model.get("checksum"):
            # A checkpoint that is given is named by its files' content, wherever they are.
            del model["path"], fields["vocabulary_id"]
            if isinstance(model.get("vocabulary"), dict):
                model["vocabulary"] = {
                    key: value for key, value in model["vocabulary"].items() if key != "path"
                }
        if model.get("contextual"):
            model["contextual"] = [without_location(part) for part in model["contextual"]]
        if model.get("embeddings"):
            model["embeddings"] = without_location(model["embeddings"])
        if self.embeddings_from:
            fields["embeddings_from"] = without_location(self.embeddings_from)
        for source in fields["sources"]:
            del source["text_id"], source["stored"]
        if self.start_from:
            fields["start_from"] = self.start_from["weights_sha256"]
        return {**fields, "model": model}

    @property
    def folder(self) -> tuple[str, str]:
        """Where the run is kept in the store."""
        return ("teachers" if self.role == "teacher" else "runs", self.id)

    def to_plain(self) -> PlainObject:
        """JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: PlainObject) -> Run:
        """The run that `to_plain` wrote (lists become tuples again)."""
        sources = tuple(Source(**{**s, "languages": tuple(s["languages"])}) for s in plain["sources"])
        return Run(**{**plain, "sources": sources, "stages": tuple(plain["stages"])})


def objective_name(objective: PlainObject) -> str:
    """What curves call an objective, given as plain data: its kind, or those of its parts, `representation+logits`."""
    parts = objective.get("parts", ())
    return "+".join(part["objective"]["kind"] for part in parts) or objective["kind"]


def without_location(part: PlainObject) -> PlainObject:
    """A checkpoint or file that is given, named by its content where its checksum is known."""
    known = bool(part.get("checksum"))
    return {key: value for key, value in part.items() if not (known and key in ("path", "vectors"))}


def validate_plain(model: type[Config], plain: PlainObject) -> Config:
    """The configuration that `plain` was dumped from."""
    # Strict mode accepts lists for tuples only from JSON, which is also how every configuration enters.
    return _adapter(model).validate_json(json.dumps(plain))


@lru_cache(maxsize=32)
def _adapter(model: type[Config]) -> TypeAdapter[Config]:
    return TypeAdapter(model)


def find_starting_run(name: str, storage: Storage) -> tuple[Storage, RunResult] | None:
    """Return the folder and the result of the run that `start_from` names: by its id in the store, or by its folder.

    None where there is no finished run.
    """
    is_id = name.startswith("run-") and "/" not in name
    folder = storage.child("runs", name) if is_id else Storage(name)
    result = folder.find_json(RESULT, RunResult.from_plain)
    return None if result is None else (folder, result)
