"""What of a sweep is shown on the tracking server: opened before anything is computed, closed whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from raykd.cluster.listener import Listener, unit_here
from raykd.counted import counted
from raykd.deploy.export import Exported, export_run
from raykd.figures.front import front_of, gold_twin
from raykd.figures.trial import Trial
from raykd.recipes.run import objective_name
from raykd.redact import redacted
from raykd.storage.store import Storage
from raykd.sweep.lease import Lease
from raykd.sweep.records import SweepRecords
from raykd.sweep.spec import search_identity
from raykd.sweep.sweep import Sweep
from raykd.sweep.trial_models import seeds_of
from raykd.tracking.origin import git_commit
from raykd.tracking.tracker import Tracker

Card = Callable[[Exported], str]
"""What makes the model card of an export."""


@contextmanager
def tracked(sweep: Sweep, lease: Lease, listener: Listener) -> Iterator[Tracker]:
    """Open the sweep's MLflow runs, and close them with how the sweep ended; without its lease nothing is written.

    Raises:
        TrackingError: if the server cannot be reached, before anything is computed.
    """
    task = sweep.file.labels
    tags = {"transfer_id": sweep.transfer_id, "git_commit": git_commit()}
    preparations = [each.preparation for each in sweep.preparations.values()]
    first = sweep.first_setting
    stages = [
        [objective_name(stage.objective.model_dump(mode="json")) for stage in variant.all_stages]
        for variant in sweep.variants
    ]
    tracker = Tracker.open(
        sweep.file.tracking.uri, sweep=sweep.file.name, sweep_id=search_identity(sweep.document),
        score_name=task.score_name, score_label=task.score_label,
        targets=any(bool(each.corpus.targets) for each in preparations),
        run=first.run_name(first.run_ids[0]), stages=stages,
        tags={name: value for name, value in tags.items() if value}, artifacts=sweep.file.tracking.artifacts,
        warn=listener.warn,
        may_write=lambda: not lease.lost_to,
    )  # fmt: skip
    sweep.records.save_run(tracker.place)
    corpora = {each.corpus_id: each.corpus for each in preparations}
    source = redacted(str(getattr(sweep.file.corpus, "root", sweep.file.corpus.source)))
    for corpus_id, corpus in corpora.items():
        tracker.log_corpus(
            f"{sweep.file.corpus.source} {' '.join(corpus.languages)}", corpus_id, source=source,
            schema={"tags": list(corpus.tag_set.tags)}, profile=corpus.report.to_plain(),
        )  # fmt: skip
    tree = json.loads(redacted(json.dumps(sweep.document.tree)))
    written = StringIO()
    YAML().dump(tree, written)
    tracker.log_sweep_file(tree, written.getvalue().encode())
    try:
        yield tracker
    except BaseException:
        tracker.close("FAILED")
        raise
    listener.begin("tracking", 1)
    with unit_here(listener, "tracking", "MLflow"):
        missing = tracker.close("COMPLETE")
    listener.end("tracking", "not all is in MLflow" if missing else "all is in MLflow")
    if missing:
        trouble, *runs = missing
        listener.warn(
            f"not shown in MLflow: {counted(len(runs), 'run')} or a part of them ({trouble}). "
            "The store has everything: the same command with --resume logs it when the server answers"
        )


def publish(
    sweep: Sweep,
    tracker: Tracker,
    trials: list[Trial],
    files: dict[str, bytes],
    table: str,
    scratch: Path,
    *,
    listener: Listener,
    verdict: str = "",
    ship: Trial | None = None,
    card: Callable[[Trial], Card] = lambda trial: lambda exported: "",
) -> None:
    """Show the front on the tracking server: tags, table and files at the sweep's run, the front's students as models
    with their `card`, and which of them to `ship`.

    `scratch` holds copies of the models until the tracker is closed.
    """
    front = front_of(trials, sweep.file.objectives)
    log_gains(tracker, trials)
    tracker.mark_front([trial.number for trial in front], ship=ship.number if ship else None, verdict=verdict)
    for name, data in files.items():
        tracker.log_file(name, data)
    tracker.describe(table)
    # What pretrains is no model that labels; its checkpoint is what raykd export writes.
    if sweep.file.tracking.models == "front" and front and sweep.file.labels.form.labels_text:
        why = {ship.number: verdict} if ship else {}
        # A student on labels alone may be the one to ship; baselines stand beside the front.
        models = front if ship is None or ship.number in {trial.number for trial in front} else [*front, ship]
        log_models(sweep.records, tracker, models, scratch, why=why, listener=listener, card=card)


def log_gains(tracker: Tracker, trials: Sequence[Trial]) -> None:
    """Show what each student gains over the same student on labels alone."""
    for trial in (each for each in trials if each.role == "search" and each.state == "COMPLETE"):
        twin = gold_twin(trial, trials)
        if twin is None:
            continue
        scores, alone = trial.scores, twin.scores
        pairs = {
            "over_gold": (scores.mean("dev"), alone.mean("dev")),
            "over_gold_test": (scores.mean("test"), alone.mean("test")),
        }
        gains = {name: a - b for name, (a, b) in pairs.items() if a is not None and b is not None}
        tracker.log_gain(trial.number, twin.number, gains)


def log_models(
    records: SweepRecords,
    tracker: Tracker,
    front: Sequence[Trial],
    scratch: Path,
    *,
    why: Mapping[int, str],
    listener: Listener,
    card: Callable[[Trial], Card],
) -> None:
    """Export the students of the front that MLflow does not have yet, and log and register all of them; `why`: the
    number of the one to ship, and the reason."""
    missing = [trial for trial in front if not tracker.has_model(trial.number)]
    listener.begin("models", len(front), done=len(front) - len(missing))
    exported = 0
    for trial in front:
        folder = scratch / str(trial.number) if trial in missing else None
        try:
            if folder is not None:
                with unit_here(listener, "models", trial.name):
                    _export(records, trial, Storage(str(folder)), card(trial))
                exported += 1
                listener.advance("models", detail=trial.name)
        # Whatever it is, the sweep is complete without it.
        except Exception as error:
            listener.warn(f"{trial.name} is not logged as a model: {error}")
            continue
        tracker.log_model(trial.number, folder, ship=why.get(trial.number, ""))
    listener.end("models", f"{exported} exported, {len(front) - len(missing)} found in MLflow")


def _export(records: SweepRecords, trial: Trial, target: Storage, card: Card) -> None:
    """The student of the trial's first seed; where there is one for each language, each in a folder below."""
    first, *_ = seeds_of(records, trial)
    for model in first:
        own = target.child(model.folder) if model.folder else target
        folder = records.storage.child(*model.run.folder)
        export_run(folder, own, store=records.storage, card=card)
