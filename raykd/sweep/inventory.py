"""The sweeps of a store with their state, for people, and how much there is of each kind of part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from raykd.errors import OtherVersionError, RaykdError
from raykd.figures.front import pareto_front
from raykd.figures.trial import all_trials_ended
from raykd.storage.layout import FILE_PATTERNS
from raykd.storage.store import Stamp, Storage
from raykd.sweep.lease import holder
from raykd.sweep.records import SweepRecords, sweeps_in


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


def summaries(storage: Storage, files: Mapping[str, Stamp]) -> list[Summary]:
    """Every sweep of the store, of which `files` is the listing; the one that changed last comes first."""
    runs: dict[str, int] = defaultdict(int)
    for name, stamp in files.items():
        if name.startswith("runs/"):
            runs[name.split("/")[1]] += stamp.bytes
    found = [_summary(records, files, runs) for records in sweeps_in(storage)]
    return sorted(found, key=lambda each: (-(each.modified_ns or 0), each.name))


def totals(files: Mapping[str, Stamp]) -> dict[str, tuple[int, int]]:
    """Kind of part → how many there are, and their bytes; `other` is what no part has."""
    names: dict[str, set[str]] = defaultdict(set)
    size: dict[str, int] = defaultdict(int)
    for name, stamp in files.items():
        kind, _, below = name.partition("/")
        known = kind in FILE_PATTERNS and FILE_PATTERNS[kind].fullmatch(below)
        key = kind if known or kind == "sweeps" else "other"
        names[key].add(below.partition("/")[0] if key != "other" else name)
        size[key] += stamp.bytes
    names["corpora"].discard("sources")
    order = ["sweeps", *FILE_PATTERNS, "other"]
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
    state = "running" if held and held[1] else "ended" if all_trials_ended(trials) else "stopped"
    scores = [trial.scores.mean("dev") for trial in pareto_front(trials, objectives)]
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
