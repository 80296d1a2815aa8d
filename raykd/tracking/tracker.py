"""The sweep's side of MLflow: what happens is recorded here, and a thread writes it every few seconds.

The driver never waits for the server (`delivery.py`). A server that dies or hangs does not stop a sweep: what it missed
is kept, written when it answers again, and named by `close` if it never does. After `kill -9` of the driver the next
one finds parent and children again by their tags; recording finished trials once more changes nothing.

Names in MLflow: results have the names of `raykd/figures/table.py` (`dev_f1`, `latency_ms`), results by language
are below them (`dev_f1/en`), curves over epochs below `epoch/`, there the losses of each of several stages below its
own name (`epoch/stage2_logits/loss`), the growth of the front below `front/`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from mlflow.entities import Dataset, LoggedModel, LoggedModelStatus, Metric
from mlflow.entities import Run as MlflowRun
from mlflow.tracking import MlflowClient

from raykd.errors import TrackingError
from raykd.figures.table import COLUMNS, scores_of
from raykd.figures.trial import Teacher, Trial
from raykd.redact import redacted
from raykd.tracking.database import ANSWER_SECONDS
from raykd.tracking.delivery import ANSWER_S, Delivery, reason
from raykd.tracking.origin import origin
from raykd.tracking.record import (
    STATUS,
    Record,
    charted,
    clean,
    curve_prefix,
    epoch_values,
    flatten,
    results,
    rounded,
    searched_params,
    text,
    trial_tags,
)
from raykd.tracking.registry import StudentModel, shipped
from raykd.tracking.server import check, experiment_of, quick_requests, reachable
from raykd.tracking.views import NOTE_TAG, file_link, run_link, score_columns, view_link
from raykd.tracking.writer import Writer, adopt

FLUSH_SECONDS = 5.0
SWEEP_TAG, TRIAL_TAG, PARENT_TAG = "raykd.sweep_id", "raykd.figures.trial", "mlflow.parentRunId"
TEACHER_TAG = "raykd.teacher"
LOCAL_PAGES = "http://127.0.0.1:5000"
"""Where `mlflow ui` shows a local database."""
PARENT_NAME = "sweep "
MORE_FIGURES = ("bytes", "bytes_int8", "over_gold")
"""Beside the scores and the columns of tables, what a version in the registry shows."""
DIGEST_LENGTH = 36  # MLflow's limit


class Tracker:
    """One sweep in MLflow.

    Open it with `Tracker.open`, in the driver only; close it, or use it in a `with`.
    """

    def __init__(
        self,
        uri: str,
        writer: Writer,
        sweep: Record,
        lock: threading.Lock,
        warn: Callable[[str], None],
        score_name: str,
        may_write: Callable[[], bool] = lambda: True,
    ):
        self.uri, self.sweep_id = uri, sweep.found_by[1]
        self._writer, self._sweep, self._lock = writer, sweep, lock
        self._score_name = score_name
        self._name = sweep.name.removeprefix(PARENT_NAME)
        self._trials: dict[int, Record] = {}
        self._teachers: dict[str, Record] = {}
        self._common_tags: dict[str, str] = {}
        self._corpora: list[Dataset] = []
        self._delivery = Delivery(
            uri, writer, lambda: self._records, lock=lock, warn=warn, may_write=may_write
        )

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        sweep: str,
        sweep_id: str,
        score_name: str,
        score_label: str,
        targets: bool = False,
        run: str = "",
        stages: Iterable[Sequence[str]] = (("",),),
        tags: Mapping[str, Any] | None = None,
        artifacts: str | None = None,
        warn: Callable[[str], None] = lambda message: None,
        may_write: Callable[[], bool] = lambda: True,
        flush_seconds: float | None = FLUSH_SECONDS,
    ) -> Tracker:
        """Find the sweep's experiment, parent run and children again, or make experiment and parent.

        `sweep` names the experiment, `sweep_id` identifies the sweep within it. Scores are named after
        `score_name` (`dev_accuracy`), and the views call them by `score_label`. With `targets` the views show the
        mean over target languages. They chart the curves of each trial's `run`; `stages` has what the stages of a
        trial are called, for each way of training in the sweep. `tags` (git commit, …) go to the parent and every
        child. `artifacts`: folder or URI below which the files of a new experiment are, where no server chooses
        (`experiment_of`). `warn` is called, from another thread, with one sentence when the server stops answering
        and when it answers again. Nothing is written while `may_write` says no: the sweep has another driver.
        `flush_seconds` None: write in `sync` and `close` only.

        Raises:
            TrackingError: the server cannot be used, within seconds (`check`).
        """
        uri = check(uri)
        client, lock = MlflowClient(uri), threading.Lock()
        try:
            with quick_requests(ANSWER_S):
                columns = score_columns(score_name, targets=targets)
                curves = charted(columns[0], run, stages)
                experiment = experiment_of(client, uri, sweep, artifacts, columns, score_label, curves)
                writer = Writer(client, experiment, lock, warn)
                record = Record(f"{PARENT_NAME}{sweep}", (SWEEP_TAG, sweep_id), started_ms=_now_ms())
                self = cls(uri, writer, record, lock, warn, score_name, may_write)
                self._common_tags = {
                    clean(key): text(value)
                    for key, value in (origin() | dict(tags or {})).items()
                    if value is not None
                }
                record.tags = {**self._common_tags, "role": "sweep"}
                writer.write(record)
                self._inherit()
        except TrackingError:
            raise
        except Exception as error:
            raise TrackingError(
                f"tracking.uri: {redacted(uri)} cannot be written: {reason(error)}"
            ) from error
        if flush_seconds is not None:
            self._delivery.start(flush_seconds)
        return self

    def start_trial(self, trial: Trial, *, tags: Mapping[str, Any] | None = None) -> None:
        """Show `trial` as running, with its settings and what is known of it before training (its costs).

        A trial that was recorded before is continued.
        """
        with self._lock:
            record = self._record(trial)
            record.status, record.ended_ms = "RUNNING", None
            record.add(results(trial), _now_ms())
            self._tag(record, trial, tags)

    def log_epoch(
        self,
        number: int,
        epoch: int,
        metrics: Mapping[str, Any],
        *,
        run: str = "",
        stages: Sequence[str] = ("",),
        timestamp_ms: int | None = None,
    ) -> None:
        """Add a point to each curve of a started trial: `epoch/loss`, `epoch/dev_f1`, `epoch/dev_f1/en`.

        `metrics` has the keys of a run's epochs (`RunResult.epochs`). With `run` each run of a trial has its own
        curves: `epoch/seed 1/dev_f1`, `epoch/en/dev_f1`; `stages`: what its stages are called. Raises KeyError for a
        trial that was not started.
        """
        moment = timestamp_ms or _now_ms()
        values = epoch_values(metrics, self._score_name, curve_prefix(run), stages)
        points = [Metric(key, value, moment, epoch) for key, value in values.items()]
        with self._lock:
            self._trials[number].metrics += points

    def finish_trial(self, trial: Trial, *, tags: Mapping[str, Any] | None = None) -> None:
        """Show how `trial` ended, with its results. Safe to repeat, for trials of an earlier driver too."""
        with self._lock:
            record = self._record(trial)
            record.status, record.ended_ms = STATUS[trial.state], _now_ms()
            record.add(results(trial), record.ended_ms)
            self._tag(record, trial, tags)

    def log_teacher(
        self, teacher: Teacher, epochs: Mapping[str, Iterable[Mapping[str, Any]]] = MappingProxyType({})
    ) -> None:
        """Show what students are compared with as a run of its own, tagged `role: teacher`. `epochs` has those of each
        of its models, by what its curves are called (empty of a single one). Safe to repeat.
        """
        with self._lock:
            record = self._teachers.get(teacher.name)
            if record is None:
                # A quote would end the text that the run is searched by.
                key = f"{self.sweep_id}/{teacher.name}".replace("'", "")
                record = Record(f"teacher {teacher.name}", (TEACHER_TAG, key), started_ms=_now_ms())
                record.datasets = list(self._corpora)
                self._teachers[teacher.name] = record
            record.tags |= {**self._common_tags, PARENT_TAG: str(self._sweep.run_id), "role": "teacher"}
            record.status, record.ended_ms = "FINISHED", _now_ms()
            record.add(results(teacher), record.ended_ms)
            for run, of_run in epochs.items():
                for metrics in of_run:
                    values = epoch_values(metrics, self._score_name, curve_prefix(run))
                    record.metrics += [
                        Metric(key, value, record.ended_ms, int(metrics["epoch"]))
                        for key, value in values.items()
                    ]

    def log_gain(self, number: int, twin: int, gains: Mapping[str, float]) -> None:
        """What a recorded trial gains over the same student on labels alone, the trial `twin`: `over_gold`, …"""
        with self._lock:
            record = self._trials[number]
            record.add(rounded(gains), _now_ms())
            record.tags["gold_twin"] = str(twin)

    def log_sweep_file(self, tree: Mapping[str, Any], data: bytes) -> None:
        """Show the sweep file at the sweep's run: as `sweep.yaml`, and its values as parameters. Parameters cannot
        change in MLflow: of a resumed sweep the first ones stay."""
        with self._lock:
            self._sweep.params = searched_params(tree)
            self._sweep.artifacts["sweep.yaml"] = data

    def log_corpus(
        self, name: str, corpus_id: str, *, source: str, schema: Any = None, profile: Any = None
    ) -> None:
        """Log the corpus as the dataset of the sweep and of every trial recorded from now on.

        `source` says where it came from (a URI, "builtin"), `schema` and `profile` are JSON-able (tags;
        sentences per language and part).
        """
        corpus = Dataset(
            name=name[:500],
            digest=corpus_id[:DIGEST_LENGTH],
            source_type="raykd",
            source=json.dumps({"uri": source}),
            schema=None if schema is None else json.dumps(schema),
            profile=None if profile is None else json.dumps(profile),
        )
        with self._lock:
            self._corpora.append(corpus)
            self._sweep.datasets.append(corpus)

    def log_front(self, finished: int, *, hypervolume: float, students: int) -> None:
        """Add a point to `front/hypervolume` and `front/students`, over the number of finished trials."""
        values = flatten({"hypervolume": hypervolume, "students": students}, "front/")
        with self._lock:
            self._sweep.metrics += [Metric(key, value, _now_ms(), finished) for key, value in values.items()]

    def mark_front(self, numbers: Collection[int], *, ship: int | None = None, verdict: str = "") -> None:
        """Tag every child `on_front` and `ship` true or false, those of earlier drivers included, and the parent with
        the `verdict`."""
        with self._lock:
            for number, record in self._trials.items():
                record.tags["on_front"] = str(number in numbers).lower()
                record.tags["ship"] = str(number == ship).lower()
            if verdict:
                self._sweep.tags["verdict"] = text(verdict)

    def log_file(self, name: str, data: bytes) -> None:
        """Keep a file on the parent run (`front.html`, `front.csv`), in place of what had that name."""
        with self._lock:
            self._sweep.artifacts[name] = data

    def describe(self, markdown: str) -> None:
        """Set what the parent run's page opens with: links to picture and runs of the front, then `markdown`."""
        experiment_id = self._writer.experiment_id
        picture = file_link(experiment_id, str(self._sweep.run_id), "front.html")
        links = f"[The front as a picture]({picture}) · [as runs]({view_link(experiment_id, 'raykd-front')})"
        with self._lock:
            self._sweep.tags[NOTE_TAG] = text(f"{links}\n\n{markdown}")

    @property
    def place(self) -> str:
        """Where the parent run is shown, as it follows the server's URI."""
        return run_link(self._writer.experiment_id, str(self._sweep.run_id))

    def has_model(self, number: int) -> bool:
        """Whether the student of a recorded trial is a model in MLflow already."""
        with self._lock:
            return self._trials[number].model_is_whole

    def log_model(self, number: int, export: Path | None = None, *, ship: str = "") -> None:
        """Log a trial's student as a model that MLflow serves, and register it as a version under the sweep's name.

        `export` is what `raykd export` wrote, one folder or one for each language, and is there until `close`; None
        where `has_model`. Logged and registered once per trial. With `ship`, which says why, the registry's alias
        `ship` names it, unless a person has set or removed that alias. Raises KeyError for a trial that was never
        recorded.
        """
        scores = [figure.called(self._score_name) for figure in scores_of(self._score_name, targets=True)]
        figures = (*scores, *(figure.name for figure in COLUMNS), *MORE_FIGURES)
        with self._lock:
            self._trials[number].model = StudentModel(
                f"student-{number:02d}", export, registered_as=self._name, figures=figures, ship=ship
            )

    def shipped(self) -> str:
        """Which version the registry's alias `ship` names, whoever set it; empty where none does, or the server does
        not answer."""
        if self._delivery.trouble:
            return ""
        try:
            reachable(self.uri)
            with quick_requests(ANSWER_SECONDS):
                return shipped(self._writer.client, self._name)
        # Whatever the server or its client does must not reach the sweep.
        except Exception:
            return ""

    def sync(self) -> tuple[str, ...]:
        """Write all that waits now. Returns what is still missing on the server, one line per run."""
        self._delivery.flush()
        return self.missing()

    @property
    def waiting(self) -> int:
        """How many values, files and changes of state the server does not show yet."""
        with self._lock:
            return sum(record.waiting for record in self._records)

    def missing(self) -> tuple[str, ...]:
        """What the server does not show yet, one line per run; empty when it shows everything."""
        with self._lock:
            records = self._records
            return tuple(f"{r.name}: {r.waiting} values not written" for r in records if r.waiting)

    def close(self, state: Literal["COMPLETE", "FAILED", "PRUNED"] = "COMPLETE") -> tuple[str, ...]:
        """Write what waits, end the parent and every child that still runs, and stop. Returns what is
        missing, as `sync`.

        Where the server is away and the sweep is complete, it is tried for `LAST_S` more; what hangs is left after
        `CLOSE_S` at most (`delivery.py`).
        """
        with self._lock:
            self._sweep.status, self._sweep.ended_ms = STATUS[state], _now_ms()
            for record in self._trials.values():
                if record.status == "RUNNING":
                    record.status, record.ended_ms = "KILLED", _now_ms()
        self._delivery.stop(patient=state == "COMPLETE")
        missing = self.missing()
        trouble = self._delivery.trouble or "it does not answer in time"
        return (f"tracking server: {trouble}", *missing) if missing else ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if not self._delivery.stopped:
            self.close("COMPLETE" if kind is None else "FAILED")

    @property
    def _records(self) -> list[Record]:
        return [self._sweep, *self._teachers.values(), *self._trials.values()]

    @property
    def link(self) -> str:
        """Where the sweep's run is shown: below the server's address, or below that of `mlflow ui`."""
        parts = urlsplit(self.uri)
        # A browser asks for user and password itself.
        server = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        at = server.rstrip("/") if parts.scheme in ("http", "https") else LOCAL_PAGES
        return f"{at}/{self.place}"

    def _record(self, trial: Trial) -> Record:
        """The trial's record, made if it is new, with its parameters and datasets. Call with the lock held."""
        if trial.number not in self._trials:
            started = _now_ms() - int(1000 * (trial.wall_s or 0))
            record = Record(trial.name, (TRIAL_TAG, self._trial_key(trial.number)), started_ms=started)
            record.tags = {**self._common_tags, PARENT_TAG: str(self._sweep.run_id), "on_front": "false"}
            self._trials[trial.number] = record
        record = self._trials[trial.number]
        # Of an inherited run too: its driver may have been killed after it made the run and before it wrote them.
        record.params = {clean(key): text(value) for key, value in trial.settings.items()}
        record.datasets = list(self._corpora)
        return record

    def _tag(self, record: Record, trial: Trial, tags: Mapping[str, Any] | None) -> None:
        more = {clean(key): text(value) for key, value in (tags or {}).items() if value is not None}
        record.tags |= trial_tags(trial) | more

    def _trial_key(self, number: int) -> str:
        return f"{self.sweep_id}/{number}"

    def _inherit(self) -> None:
        """Take over the children that earlier drivers of this sweep wrote, with their models."""
        models = self._writer.models()
        for run in self._writer.find(PARENT_TAG, str(self._sweep.run_id)):
            key = run.data.tags.get(TRIAL_TAG, "")
            if key.startswith(f"{self.sweep_id}/"):
                self._trials[int(key.rsplit("/", 1)[1])] = _inherited(run, key, models.get(run.info.run_id))


def _inherited(run: MlflowRun, key: str, model: LoggedModel | None) -> Record:
    record = Record(str(run.info.run_name), (TRIAL_TAG, key))
    adopt(record, run)
    if model is not None:
        record.model_id, record.model_is_whole = model.model_id, model.status == LoggedModelStatus.READY
    return replace(record, status=run.info.status, tags={}, started_ms=run.info.start_time or 0)


def _now_ms() -> int:
    return int(time.time() * 1000)
