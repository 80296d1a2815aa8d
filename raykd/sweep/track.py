"""Publishes a sweep in MLflow: opened before anything is computed, closed whatever happens."""

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
"""What makes the model card of an export."""


@contextmanager
def published(sweep: Sweep, lease: Lease, listener: Listener) -> Iterator[Publisher]:
    """Publish the sweep in MLflow, and at the end how it ended; without its lease nothing is written.

    Raises:
        TrackingError: if the server cannot be reached, before anything is computed.
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
        targets=any(bool(each.preparation.corpus.targets) for each in sweep.preparations.values()),
        run=first.run_name(first.run_ids[0]), stages=stages, artifacts=sweep.file.tracking.artifacts,
    )  # fmt: skip


def _pages(sweep: Sweep) -> SweepPages:
    section, records = sweep.file.corpus, sweep.records
    source = redact(str(getattr(section, "root", section.source)))
    preparations = (each.preparation for each in sweep.preparations.values())
    corpora = {each.corpus_id: each.corpus for each in preparations}
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
    """Show the front in MLflow: tags, table and files at the sweep's run, the front's students as models with their
    `card`, and which of them to `ship`.

    `scratch` holds copies of the models until the publisher is closed.
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
    """Return what each student gains over the same student on labels alone, by its number."""
    gains = {}
    for trial in (each for each in trials if each.role == "search" and each.state == "COMPLETE"):
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
    """Export the students of the front that MLflow does not have yet.

    Returns:
        By the number of each that MLflow has or will have, the folder with its export; None where it has it.
    """
    missing = [t for t in front if not publisher.published.has_model(publisher.pages.trial_key(t.number))]
    listener.begin("models", len(front), done=len(front) - len(missing))
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
    """The student of the trial's first seed; where there is one for each language, each in a folder below."""
    first, *_ = seeds_of(records, trial)
    for model in first:
        own = target.child(model.folder) if model.folder else target
        folder = records.storage.child(*model.run.folder)
        export_run(folder, own, store=records.storage, card=card)
