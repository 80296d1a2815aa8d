"""A run: one model trained once, stage by stage.

A run is plain data: it crosses processes and hashes to its identity.
"""

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
"""Part of the identity of every run. Raise it with any change after which the same settings train another model."""

WITHOUT_EFFECT = ("count", "combine", "scope", "latency_ms", "most_unusable")
"""Settings of a model that are no part of its identity.

`combine` has no effect on a single model; the languages that follow from `scope` are in `corpus_id`. The time and the
limit of an annotator change none of its answers."""

Config = TypeVar("Config")


@dataclass(frozen=True)
class Source:
    """The signals of one teacher for a run.

    A stored signal may cover more text than the run's: a larger transfer set serves a run on a part of its text.

    Attributes:
        languages: Languages that the teacher labels.
        signals: `Need.name` → id of the signal for the run's text; part of the run's identity.
        text_id: The text that the stored signals cover, if it is larger; not part of the identity.
        stored: `Need.name` → id under which the signal is stored, if another; not part of the identity.
    """

    teacher_id: str
    languages: tuple[str, ...]
    signals: dict[str, str]
    text_id: str = ""
    stored: dict[str, str] = field(default_factory=dict)

    @property
    def stored_ids(self) -> dict[str, str]:
        """`Need.name` → id under which the signal is stored."""
        return self.stored or self.signals


@dataclass(frozen=True)
class Run:
    """One model trained once, described completely.

    A teacher's run whose model has a `count` above 1 is an ensemble: it trains nothing, and is the mean of its members.

    Attributes:
        role: "teacher" trains `model` on gold labels; "student" distils `model` from `sources`.
        corpus_id: A stored corpus with exactly the languages trained on, so a monolingual teacher is the same whatever
            languages a sweep adds.
        model: Configuration of the teacher or student.
        stages: Each stage, resolved (`resolve_stage`): objective, text, schedule, and the training settings in which it
            differs from `training`.
        training: Training settings of the run.
        sampling_alpha: Exponent of smoothed language sampling; 1 takes every sentence once an epoch.
        start_from: The weights that training starts from: `folder` (a URI) and `weights_sha256`.
        embeddings_from: The model whose piece vectors the model starts from: `teacher_id`, or `path` and `checksum` of
            a checkpoint.
        labels_id: The stored labels that the model predicts, if they are not the tags of its corpus.
        decoding: How the best labelling is found if not all labels may follow each other: `legal` or `independent`;
            empty for other models.
        cut_from: Id of the teacher from whose weights the model is cut; empty for other models.
    """

    role: Literal["teacher", "student"]
    task: str
    corpus_id: str
    vocabulary_id: str
    model: PlainObject
    stages: tuple[PlainObject, ...]
    training: PlainObject
    sources: tuple[Source, ...] = ()
    sampling_alpha: float = 1.0
    start_from: dict[str, str] | None = None
    embeddings_from: dict[str, str] | None = None
    labels_id: str = ""
    decoding: str = ""
    cut_from: str = ""

    @cached_property
    def id(self) -> str:
        """Hash of all fields with an effect on the outcome; names, hosts and worker counts are no fields of a run."""
        kind = "teacher" if self.role == "teacher" else "run"
        return identity(kind, {"format": FORMAT, **self._identity_fields()})

    @property
    def stage_names(self) -> tuple[str, ...]:
        """The stages' objectives, by their names in learning curves."""
        return tuple(objective_name(stage["objective"]) for stage in self.stages)

    @property
    def members(self) -> tuple[Run, ...]:
        """The members of an ensemble, one run per seed; empty for a single model."""
        count = self.model.get("count", 1)
        if count == 1:
            return ()
        seeded = [{**self.training, "seed": self.training["seed"] + i} for i in range(count)]
        return tuple(
            replace(self, model={**self.model, "count": 1, "training": training}, training=training)
            for training in seeded
        )

    def _identity_fields(self) -> PlainObject:
        if self.members:
            return {"members": [member.id for member in self.members], "combine": self.model["combine"]}
        fields = asdict(self)
        model = {key: value for key, value in self.model.items() if key not in WITHOUT_EFFECT}
        if model.get("checksum"):
            # An existing checkpoint is identified by the content of its files, wherever they are.
            # An annotator that is asked has a stated version instead.
            model.pop("path", None)
            del fields["vocabulary_id"]
            if isinstance(model.get("vocabulary"), dict):
                model["vocabulary"] = {
                    key: value for key, value in model["vocabulary"].items() if key != "path"
                }
        if model.get("contextual"):
            model["contextual"] = [without_location(part) for part in model["contextual"]]
        if model.get("members"):
            model["members"] = [
                {key: value for key, value in without_location(member).items() if key not in WITHOUT_EFFECT}
                for member in model["members"]
            ]
        if model.get("embeddings"):
            model["embeddings"] = without_location(model["embeddings"])
        if self.embeddings_from:
            fields["embeddings_from"] = without_location(self.embeddings_from)
        if not self.cut_from:
            del fields["cut_from"]
        for source in fields["sources"]:
            del source["text_id"], source["stored"]
        if self.start_from:
            fields["start_from"] = self.start_from["weights_sha256"]
        return {**fields, "model": model}

    @property
    def folder(self) -> tuple[str, str]:
        """The run's folder in the store, as a path in parts."""
        return ("teachers" if self.role == "teacher" else "runs", self.id)

    def to_plain(self) -> PlainObject:
        """Return the JSON-able form; `from_plain` reads it back."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: PlainObject) -> Run:
        """Read a run back from the form of `to_plain` (lists become tuples again)."""
        sources = tuple(Source(**{**s, "languages": tuple(s["languages"])}) for s in plain["sources"])
        return Run(**{**plain, "sources": sources, "stages": tuple(plain["stages"])})


def objective_name(objective: PlainObject) -> str:
    """Return the name of an objective in learning curves: its kind, or those of its parts, `representation+logits`.

    Args:
        objective: The objective as plain data.
    """
    parts = objective.get("parts", ())
    return "+".join(part["objective"]["kind"] for part in parts) or objective["kind"]


def without_location(part: PlainObject) -> PlainObject:
    """Return the settings of a checkpoint or file without the path, if a checksum identifies the content.

    Args:
        part: Settings with `path` or `vectors`, and perhaps `checksum`.
    """
    has_checksum = bool(part.get("checksum"))
    return {key: value for key, value in part.items() if not (has_checksum and key in ("path", "vectors"))}


def validate_plain(model: type[Config], plain: PlainObject) -> Config:
    """Return the configuration for dumped data.

    Args:
        model: Type of the configuration, or a union of types.
        plain: The dumped configuration.

    Raises:
        pydantic.ValidationError: `plain` is not valid for the type.
    """
    # Strict mode accepts lists for tuples only from JSON, which is also how every configuration enters.
    return _adapter(model).validate_json(json.dumps(plain))


@lru_cache(maxsize=32)
def _adapter(model: type[Config]) -> TypeAdapter[Config]:
    return TypeAdapter(model)


def find_starting_run(name: str, storage: Storage) -> tuple[Storage, RunResult] | None:
    """Return the folder and the result of the run named by `start_from`.

    Args:
        name: Id of a run in the store, or the URI of its folder.
        storage: The store.

    Returns:
        Folder and result; None if there is no finished run.
    """
    is_id = name.startswith("run-") and "/" not in name
    folder = storage.child("runs", name) if is_id else Storage(name)
    result = folder.find_json(RESULT, RunResult.from_plain)
    return None if result is None else (folder, result)
