"""The sweeps of a store with their state, and the number and size of stored parts by kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from raykd.errors import OtherVersionError, RaykdError
from raykd.figures.front import pareto_front
from raykd.figures.trial import all_trials_ended
from raykd.storage.layout import FILE_PATTERNS
from raykd.storage.store import Stamp, Storage
from raykd.sweep.lease import lease_holder
from raykd.sweep.records import SweepRecords, sweeps_in


@dataclass(frozen=True)
class SweepSummary:
    """One sweep of a store.

    Attributes:
        state: running, ended, stopped (trials to do, but no driver), damaged, or other version (written by another
            raykd).
        trials: State of a trial → number of trials.
        best: The best dev score on the front.
        modified_ns: Time of the last change, in nanoseconds.
        bytes: Bytes of its records and runs, without parts shared with other sweeps.
        note: The process that drives it, or its damage.
    """

    name: str
    state: str
    trials: Mapping[str, int] = field(default_factory=dict)
    best: float | None = None
    modified_ns: int | None = None
    bytes: int = 0
    note: str = ""


def sweep_summaries(storage: Storage, files: Mapping[str, Stamp]) -> list[SweepSummary]:
    """Return the sweeps of the store, the last changed first.

    Args:
        storage: The store.
        files: Listing of the store.
    """
    runs: dict[str, int] = defaultdict(int)
    for name, stamp in files.items():
        if name.startswith("runs/"):
            runs[name.split("/")[1]] += stamp.bytes
    summaries = [_summary(records, files, runs) for records in sweeps_in(storage)]
    return sorted(summaries, key=lambda summary: (-(summary.modified_ns or 0), summary.name))


def count_parts(files: Mapping[str, Stamp]) -> dict[str, tuple[int, int]]:
    """Return kind of part → (number of parts, their bytes); `other` counts files that belong to no part.

    Args:
        files: Listing of the store.
    """
    names: dict[str, set[str]] = defaultdict(set)
    size: dict[str, int] = defaultdict(int)
    for name, stamp in files.items():
        kind, _, below = name.partition("/")
        is_part = kind in FILE_PATTERNS and FILE_PATTERNS[kind].fullmatch(below)
        key = kind if is_part or kind == "sweeps" else "other"
        names[key].add(below.partition("/")[0] if key != "other" else name)
        size[key] += stamp.bytes
    names["corpora"].discard("sources")
    order = ["sweeps", *FILE_PATTERNS, "other"]
    return {kind: (len(names[kind]), size[kind]) for kind in order if size[kind]}


def _summary(records: SweepRecords, files: Mapping[str, Stamp], runs: Mapping[str, int]) -> SweepSummary:
    stamps = [stamp for name, stamp in files.items() if name.startswith(f"sweeps/{records.name}/")]
    modified = max((stamp.modified_ns for stamp in stamps if stamp.modified_ns), default=None)
    try:
        trials, holder = records.trials(), lease_holder(records.folder)
        objectives = records.objectives
    except RaykdError as error:
        state = "other version" if isinstance(error, OtherVersionError) else "damaged"
        return SweepSummary(records.name, state, modified_ns=modified, note=str(error))
    counts = Counter(trial.state for trial in trials)
    driver = holder.process if holder and holder.lives else ""
    state = "running" if driver else "ended" if all_trials_ended(trials) else "stopped"
    scores = [trial.scores.mean("dev") for trial in pareto_front(trials, objectives)]
    run_ids = {run_id for trial in trials for run_id in trial.run_ids}
    return SweepSummary(
        records.name,
        state,
        counts,
        max((score for score in scores if score is not None), default=None),
        modified,
        sum(stamp.bytes for stamp in stamps) + sum(runs[run_id] for run_id in run_ids if run_id in runs),
        driver,
    )
