"""List the parts of one kind in a store: a description of each, and the sweeps that use it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raykd.errors import StoreError
from raykd.figures.results import RunResult
from raykd.storage.layout import CORPUS, MANIFEST, MODEL, RESULT
from raykd.storage.store import Stamp, Storage
from raykd.sweep.records import sweeps_in
from raykd.sweep.uses import Part, parts_of, used_by
from raykd.transfer import read_manifest


@dataclass(frozen=True)
class Row:
    """One part of a store."""

    part: Part
    about: str
    """Description in a few words; empty if the name of the part says all."""
    sweeps: Sequence[str]
    """Names of the sweeps that use the part; the needs of an unfinished sweep are only partly known."""


def rows(storage: Storage, kind: str, files: Mapping[str, Stamp]) -> list[Row]:
    """Return the parts of a kind.

    Args:
        storage: The store.
        kind: Kind of the parts, a folder of the store.
        files: Files of the store, with sizes and times.

    Raises:
        StoreError: a record of a sweep or the model of a run is damaged.
    """
    users: dict[str, list[str]] = defaultdict(list)
    for records in sweeps_in(storage):
        for name in used_by(storage, [records], ended=False)[kind]:
            users[name].append(records.name)
    parts = [part for part in parts_of(storage, files) if part.kind == kind]
    return [Row(part, _about(storage, part), users[part.name]) for part in parts]


def _about(storage: Storage, part: Part) -> str:
    """Return a description of a part in a few words; empty if the name says all."""
    try:
        return _ABOUT[part.kind](storage, part) if part.kind in _ABOUT else ""
    except StoreError as error:
        return f"damaged: {error.problem}"


def _of_run(storage: Storage, part: Part) -> str:
    folder = storage.child(part.kind, part.name)
    if f"{part.kind}/{part.name}/{MODEL}" not in part.files:
        return "not finished"
    plain: Mapping[str, Any] = folder.read_json(MODEL)
    model = plain["model"].get("kind", "")
    if f"{part.kind}/{part.name}/{RESULT}" not in part.files:
        return f"{model}, not finished"
    scores = folder.read_json(RESULT, RunResult.from_plain).scores
    test = scores.mean("test")
    languages = " ".join(scores.by_language("test"))
    return f"{model}, {plain['task']} {languages}" + ("" if test is None else f", test {100 * test:.1f}")


def _of_signal(storage: Storage, part: Part) -> str:
    manifests = [name for name in part.files if name.endswith(f"/{MANIFEST}")]
    if not manifests:
        return "text" if part.name.startswith("text-") else "not finished"
    origin = read_manifest(storage.child(*manifests[0].split("/")[:-1])).origin
    layer = "" if origin.layer is None else f" of layer {origin.layer}"
    return f"{origin.signal}{layer} of {origin.teacher_id}"


def _of_corpus(storage: Storage, part: Part) -> str:
    manifest = f"corpora/{part.name}/{CORPUS}"
    if manifest not in part.files:
        return "not finished"
    return storage.read_json(
        manifest, lambda plain: f"{' '.join(plain['languages'])}, {len(plain['tag_set']['tags'])} tags"
    )


_ABOUT = {"runs": _of_run, "teachers": _of_run, "transfer": _of_signal, "corpora": _of_corpus}
