"""Publish a sweep in MLflow: open it before anything is computed, and close it in any case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from raykd.cluster.listener import Listener, unit_here
from raykd.deploy.export import Export, export_run
from raykd.figures.front import find_gold_twin, pareto_front
from raykd.figures.trial import Trial
from raykd.pluralise import pluralise
from raykd.recipes.run import objective_name
from raykd.redact import redact
from raykd.storage.store import Storage
from raykd.sweep.lease import Lease
from raykd.sweep.records import SweepRecords
from raykd.sweep.spec import search_identity
from raykd.sweep.sweep import Sweep
from raykd.sweep.trial_models import seeds_of
from raykd.tracking.origin import origin_tags
from raykd.tracking.pages import dataset, searched_params, texts
from raykd.tracking.publisher import Publisher
from raykd.tracking.sweep_pages import Ending, Gain, SweepPages
from raykd.tracking.views import Experiment, front_links

Card = Callable[[Export], str]
"""Returns the model card of an export, as Markdown."""


@contextmanager
def published(sweep: Sweep, lease: Lease, listener: Listener) -> Iterator[Publisher]:
    """Publish the sweep in MLflow while the body runs; at the end, publish how it ended.

    Args:
        sweep: The sweep.
        lease: The lease of the sweep; nothing is written without it.
        listener: Shows notes and warnings.

    Raises:
        TrackingError: the server cannot be reached; raised before anything is computed.
    """
    publisher = Publisher(
        sweep.file.tracking.uri, _experiment(sweep), _pages(sweep),
        warn=listener.warn, may_write=lambda: not lease.lost_to,
    )  # fmt: skip
    sweep.records.save_run(publisher.place)
    sweep.records.load()  # from now on the publisher's thread does not read the store
    publisher.start()
    try:
        yield publisher
    except BaseException:
        publisher.close("FAILED")
        raise
    listener.begin("tracking", 1)
    with unit_here(listener, "tracking", "MLflow"):
        missing = publisher.close("COMPLETE")
    listener.end("tracking", "not all is in MLflow" if missing else "all is in MLflow")
    if missing:
        trouble, *runs = missing
        listener.warn(
            f"not shown in MLflow: {pluralise(len(runs), 'run')} or a part of them ({trouble}). "
            "The store has everything: the same command with --resume logs it when the server answers"
        )


def _experiment(sweep: Sweep) -> Experiment:
    task, first = sweep.file.task_entry, sweep.first_setting
    stages = [
        [objective_name(stage.objective.model_dump(mode="json")) for stage in variant.all_stages]
        for variant in sweep.variants
    ]
    return Experiment(
        sweep.file.name, task.score_name, task.score_label,
        targets=any(bool(preparation.preparation.corpus.targets) for preparation in sweep.preparations.values()),
        agreement=task.has_gold and sweep.file.teachers.gives_answers,
        run=first.run_name(first.run_ids[0]), stages=stages, artifacts=sweep.file.tracking.artifacts,
    )  # fmt: skip


def _pages(sweep: Sweep) -> SweepPages:
    section, records = sweep.file.corpus, sweep.records
    source = redact(str(getattr(section, "root", section.source)))
    preparations = (preparation.preparation for preparation in sweep.preparations.values())
    corpora = {preparation.corpus_id: preparation.corpus for preparation in preparations}
    tree = json.loads(redact(json.dumps(sweep.document.tree)))
    written = StringIO()
    YAML().dump(tree, written)
    tags = origin_tags() | ({"transfer_id": sweep.transfer_id} if sweep.transfer_id else {})
    return SweepPages(
        sweep.file.name, search_identity(sweep.document), lambda: [record.trial for record in records.load()],
        sweep.file.task_entry.score_name, sweep.file.objectives,
        tags=texts(tags), params=searched_params(tree),
        corpora=[
            dataset(
                f"{section.source} {' '.join(corpus.languages)}", corpus_id, source=source,
                schema={"tags": list(corpus.tag_set.tags)}, profile=corpus.report.to_plain(),
            )
            for corpus_id, corpus in corpora.items()
        ],
        files={"sweep.yaml": written.getvalue().encode()},
    )  # fmt: skip


def publish_end(
    sweep: Sweep,
    publisher: Publisher,
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
    """Show the front in MLflow: tags, table and files at the sweep's run, and the students as models.

    Args:
        sweep: The sweep.
        publisher: The open run in MLflow.
        trials: All trials.
        files: Content of the files to attach, by name.
        table: The table of the front.
        scratch: Folder for copies of the models, needed until the publisher is closed.
        listener: Shows the progress.
        verdict: A sentence on the result.
        ship: The recommended student, if any.
        card: Returns the function that writes a student's model card.
    """
    front = pareto_front(trials, sweep.file.objectives)
    exports: dict[int, Path | None] = {}
    # What pretrains is no model that labels; its checkpoint is what raykd export writes.
    if sweep.file.tracking.models == "front" and front and sweep.file.task_entry.form.labels_text:
        # A student on labels alone may be the one to ship; baselines stand beside the front.
        models = front if ship is None or ship.number in {trial.number for trial in front} else [*front, ship]
        exports = export_students(sweep.records, publisher, models, scratch, listener=listener, card=card)
    number = None if ship is None else ship.number
    publisher.pages.ending = Ending(
        frozenset(trial.number for trial in front), gains_of(trials), number, verdict,
        f"{front_links(publisher.experiment_id, publisher.published.sweep_run)}\n\n{table}", files, exports,
    )  # fmt: skip


def gains_of(trials: Sequence[Trial]) -> dict[int, Gain]:
    """Return the gain of each student over the same student on labels alone, by trial number."""
    gains = {}
    for trial in (trial for trial in trials if trial.role == "search" and trial.state == "COMPLETE"):
        twin = find_gold_twin(trial, trials)
        if twin is None:
            continue
        scores, alone = trial.scores, twin.scores
        pairs = {
            "over_gold": (scores.mean("dev"), alone.mean("dev")),
            "over_gold_test": (scores.mean("test"), alone.mean("test")),
        }
        figures = {name: a - b for name, (a, b) in pairs.items() if a is not None and b is not None}
        gains[trial.number] = Gain(twin.number, figures)
    return gains


def export_students(
    records: SweepRecords,
    publisher: Publisher,
    front: Sequence[Trial],
    scratch: Path,
    *,
    listener: Listener,
    card: Callable[[Trial], Card],
) -> dict[int, Path | None]:
    """Export the students of the front that MLflow lacks.

    Returns:
        The folder of the export by trial number, for all students that MLflow has or will have; None if it has them.
    """
    missing = [t for t in front if not publisher.published.has_model(publisher.pages.trial_key(t.number))]
    listener.begin("models", len(front), done_before=len(front) - len(missing))
    exports: dict[int, Path | None] = {}
    for trial in front:
        folder = scratch / str(trial.number) if trial in missing else None
        try:
            if folder is not None:
                with unit_here(listener, "models", trial.name):
                    _export(records, trial, Storage(str(folder)), card(trial))
                listener.advance("models", detail=trial.name)
            exports[trial.number] = folder
        # Whatever it is, the sweep is complete without it.
        except Exception as error:
            listener.warn(f"{trial.name} is not logged as a model: {error}")
    exported = sum(folder is not None for folder in exports.values())
    listener.end("models", f"{exported} exported, {len(front) - len(missing)} found in MLflow")
    return exports


def _export(records: SweepRecords, trial: Trial, target: Storage, card: Card) -> None:
    """Export the student of the trial's first seed; students of single languages go to folders below."""
    first, *_ = seeds_of(records, trial)
    for model in first:
        model_target = target.child(model.folder) if model.folder else target
        folder = records.storage.child(*model.run.folder)
        export_run(folder, model_target, store=records.storage, model_card=card)
