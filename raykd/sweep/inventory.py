"""What is in a store, for people: its sweeps with their state, its parts with what they are. Reads small files only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raykd.corpora.corpus import MANIFEST as CORPUS
from raykd.errors import OtherVersionError, RaykdError, StoreError
from raykd.front import front_of
from raykd.results import RunResult
from raykd.runs.models import MODEL, RESULT
from raykd.storage import Stamp, Storage
from raykd.sweep.lease import holder
from raykd.sweep.records import SweepRecords, sweeps_in
from raykd.sweep.uses import WRITTEN, Part, has_ended, parts_of, used_by
from raykd.transfer import read_manifest
from raykd.transfer.names import MANIFEST


@dataclass(frozen=True)
class Summary:
    """One sweep of a store."""

    name: str
    state: str
    """running, ended, stopped (it has trials to do, and no driver), damaged, or of another version of raykd."""
    trials: Mapping[str, int] = field(default_factory=dict)
    """State → how many."""
    best: float | None = None
    """The best score on dev of the front's students."""
    modified_ns: int | None = None
    bytes: int = 0
    """Of its records and its runs; what it shares with other sweeps is not counted."""
    note: str = ""
    """Who drives it, or what is damaged."""


@dataclass(frozen=True)
class Row:
    """One part of a store."""

    part: Part
    about: str
    sweeps: Sequence[str]
    """Those that use it; where a sweep has not ended, as far as it is known."""


def summaries(storage: Storage, files: Mapping[str, Stamp]) -> list[Summary]:
    """Every sweep of the store, of which `files` is the listing; the one that changed last comes first."""
    runs: dict[str, int] = defaultdict(int)
    for name, stamp in files.items():
        if name.startswith("runs/"):
            runs[name.split("/")[1]] += stamp.bytes
    found = [_summary(records, files, runs) for records in sweeps_in(storage)]
    return sorted(found, key=lambda each: (-(each.modified_ns or 0), each.name))


def rows(storage: Storage, kind: str, files: Mapping[str, Stamp]) -> list[Row]:
    """Every part of a kind.

    Raises:
        StoreError: a record of a sweep or the model of a run is damaged.
    """
    users: dict[str, list[str]] = defaultdict(list)
    for records in sweeps_in(storage):
        for name in used_by(storage, [records], ended=False)[kind]:
            users[name].append(records.name)
    own = [part for part in parts_of(storage, files) if part.kind == kind]
    return [Row(part, _about(storage, part), users[part.name]) for part in own]


def totals(files: Mapping[str, Stamp]) -> dict[str, tuple[int, int]]:
    """Kind of part → how many there are, and their bytes; `other` is what no part has."""
    names: dict[str, set[str]] = defaultdict(set)
    size: dict[str, int] = defaultdict(int)
    for name, stamp in files.items():
        kind, _, below = name.partition("/")
        known = kind in WRITTEN and WRITTEN[kind].fullmatch(below)
        key = kind if known or kind == "sweeps" else "other"
        names[key].add(below.partition("/")[0] if key != "other" else name)
        size[key] += stamp.bytes
    names["corpora"].discard("sources")
    order = ["sweeps", *WRITTEN, "other"]
    return {kind: (len(names[kind]), size[kind]) for kind in order if size[kind]}


def _summary(records: SweepRecords, files: Mapping[str, Stamp], runs: Mapping[str, int]) -> Summary:
    own = [stamp for name, stamp in files.items() if name.startswith(f"sweeps/{records.name}/")]
    modified = max((stamp.modified_ns for stamp in own if stamp.modified_ns), default=None)
    try:
        trials, held = records.trials(), holder(records.folder)
        objectives = records.objectives
    except RaykdError as error:
        state = "other version" if isinstance(error, OtherVersionError) else "damaged"
        return Summary(records.name, state, modified_ns=modified, note=str(error))
    counts = Counter(trial.state for trial in trials)
    state = "running" if held and held[1] else "ended" if has_ended(trials) else "stopped"
    scores = [trial.scores.mean("dev") for trial in front_of(trials, objectives)]
    used = {run_id for trial in trials for run_id in trial.run_ids}
    return Summary(
        records.name,
        state,
        counts,
        max((score for score in scores if score is not None), default=None),
        modified,
        sum(stamp.bytes for stamp in own) + sum(runs[run_id] for run_id in used if run_id in runs),
        held[0] if held and held[1] else "",
    )


def _about(storage: Storage, part: Part) -> str:
    """What a part is, in a few words; empty where its name says all."""
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
    return storage.read_json(manifest, lambda plain: _words(plain["languages"], plain["tag_set"]["tags"]))


def _words(languages: Iterable[str], tags: Sequence[str]) -> str:
    return f"{' '.join(languages)}, {len(tags)} tags"


_ABOUT = {"runs": _of_run, "teachers": _of_run, "transfer": _of_signal, "corpora": _of_corpus}
