"""What of a sweep is shown on the tracking server: opened before anything is computed, closed whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raykd.front import front_of
from raykd.redact import redacted
from raykd.runs.data import corpus_of
from raykd.runs.models import ARCHITECTURE, FILES, MODEL
from raykd.runs.progress import Listener
from raykd.runs.run import Run, objective_name
from raykd.storage import Storage
from raykd.sweep.driver import Sweep
from raykd.sweep.lease import Lease
from raykd.sweep.spec import search_identity
from raykd.tracking import Tracker, git_commit
from raykd.trial import Trial


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
        tags={name: value for name, value in tags.items() if value}, warn=listener.warn,
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
    try:
        yield tracker
    except BaseException:
        tracker.close("FAILED")
        raise
    for missing in tracker.close("COMPLETE"):
        listener.warn(f"not shown in MLflow: {missing}; the store has everything")


def publish(
    sweep: Sweep,
    tracker: Tracker,
    trials: list[Trial],
    files: dict[str, bytes],
    table: str,
    scratch: Path,
    *,
    ship: Trial | None = None,
    verdict: str = "",
) -> None:
    """Show the front on the tracking server: tags, table and files at the sweep's run, the front's students as models,
    and which of them to `ship`.

    `scratch` holds copies of the models until the tracker is closed.
    """
    front = front_of(trials, sweep.file.objectives)
    tracker.mark_front([trial.number for trial in front], ship=ship.number if ship else None, verdict=verdict)
    for name, data in files.items():
        tracker.log_file(name, data)
    tracker.describe(table)
    for trial in front:
        tracker.log_model(trial.number, model_files(sweep.storage, trial, scratch / str(trial.number)))


def model_files(storage: Storage, trial: Trial, folder: Path) -> Path:
    """A trial's student, trained from the first seed, in one local folder wherever the store is: what `raykd.load`
    reads. Where it is one model for each language, each is a folder below, named after its language."""
    runs = [storage.read_json(f"runs/{run_id}/{MODEL}", Run.from_plain) for run_id in trial.run_ids]
    first = [run for run in runs if run.training["seed"] == runs[0].training["seed"]]
    for run in first:
        own = (
            folder if len(first) == 1 else folder / "-".join(corpus_of(storage.uri, run.corpus_id).languages)
        )
        own.mkdir(parents=True)
        source = storage.child(*run.folder)
        for name in FILES:
            if name != ARCHITECTURE or source.exists(name):
                (own / name).write_bytes(source.read(name))
    return folder
