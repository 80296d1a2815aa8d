"""A sweep as the tracking server is to see it: opened before anything is computed, closed whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raykd.front import front_of
from raykd.runs.execute import MODEL, RESULT, WEIGHTS
from raykd.runs.progress import Listener
from raykd.runs.recipe import TASKS
from raykd.storage import Storage
from raykd.sweep.driver import Sweep
from raykd.sweep.spec import search_identity
from raykd.tracking import Tracker, git_commit
from raykd.trial import Trial


@contextmanager
def tracked(sweep: Sweep, listener: Listener) -> Iterator[Tracker]:
    """Open the sweep's MLflow runs, and close them with how the sweep ended.

    Raises:
        TrackingError: if the server cannot be reached, before anything is computed.
    """
    tags = {"transfer_id": sweep.transfer_id, "git_commit": git_commit()}
    tracker = Tracker.open(
        sweep.file.tracking.uri, sweep=sweep.file.name, sweep_id=search_identity(sweep.document),
        metric=TASKS[sweep.file.task].label, targets=bool(sweep.preparation.corpus.targets),
        tags={name: value for name, value in tags.items() if value}, warn=listener.warn,
    )  # fmt: skip
    corpus, name = sweep.preparation.corpus, sweep.preparation.corpus_id
    source = str(getattr(sweep.file.corpus, "root", sweep.file.corpus.source))
    tracker.log_corpus(
        f"{sweep.file.corpus.source} {' '.join(corpus.languages)}", name, source=source,
        schema={"tags": list(corpus.tag_set.tags)}, profile=corpus.report.to_plain(),
    )  # fmt: skip
    try:
        yield tracker
    except BaseException:
        tracker.close("FAILED")
        raise
    for missing in tracker.close("COMPLETE"):
        listener.warn(f"not shown in MLflow: {missing}; everything stands in the store")


def publish(
    sweep: Sweep, tracker: Tracker, trials: list[Trial], files: dict[str, bytes], table: str, scratch: Path
) -> None:
    """Put the front where people look: tags, table and files on the parent run, the front's students as models.

    `scratch` holds copies of the models until the tracker is closed.
    """
    front = front_of(trials, sweep.file.search.objectives)
    tracker.mark_front([trial.number for trial in front])
    for name, data in files.items():
        tracker.log_file(name, data)
    tracker.describe(table)
    for trial in front:
        tracker.log_model(
            trial.number, _model_files(sweep.storage, trial.run_ids[0], scratch / str(trial.number))
        )


def _model_files(storage: Storage, run_id: str, folder: Path) -> Path:
    """The files of a student in one local folder, wherever the store is."""
    folder.mkdir(parents=True)
    for name in (WEIGHTS, MODEL, RESULT):
        (folder / name).write_bytes(storage.read(f"runs/{run_id}/{name}"))
    return folder
