"""The transfer sets of a sweep: which are needed, and the computation of missing shards."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from raykd.cluster.growth import wait_for_slots
from raykd.cluster.listener import Listener, Unit
from raykd.cluster.nodes import Nodes
from raykd.cluster.placement import reader_group, readers
from raykd.cluster.topology import Topology
from raykd.errors import RunError, StoreError
from raykd.precompute.features import encoder_tasks, feature_plan, mark_texts_encoded, store_encoder_config
from raykd.precompute.pipeline import Row, range_id
from raykd.precompute.plan import (
    Placement,
    PrecomputePlan,
    PrecomputeResult,
    PrecomputeTask,
    pending_rows,
    precompute,
)
from raykd.precompute.shard_writer import TeacherHandle
from raykd.recipes.resources import Resources
from raykd.recipes.run import Run
from raykd.recipes.signal_needs import storable_needs
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.tasks import find_task
from raykd.training.data import cached_corpus
from raykd.training.execute import find_result
from raykd.training.model_folder import legal_transitions, teacher_signals_id
from raykd.training.prepare import PlannedTeacher
from raykd.transfer import Text

LOADER = "raykd.precompute.open_teacher:load_teacher"


def transfer_plan(
    storage: Storage, requests: Iterable[tuple[PlannedTeacher, Sequence[Need]]]
) -> PrecomputePlan | None:
    """Return one plan for all teachers, each with all its needed signals; None if no objective reads a teacher.

    Args:
        storage: the store.
        requests: teachers with the signals that a recipe reads; a teacher may come several times.
    """
    teachers: dict[str, PlannedTeacher] = {}
    needs: dict[str, list[Need]] = {}
    for teacher, teacher_needs in requests:
        if stored := storable_needs(teacher.config, teacher_needs):
            teachers[teacher.run.id] = teacher
            needs.setdefault(teacher.run.id, []).extend(stored)
    tasks = tuple(_task(storage, teacher, needs[run_id]) for run_id, teacher in teachers.items())
    return PrecomputePlan(storage.uri, tasks) if tasks else None


def _task(storage: Storage, teacher: PlannedTeacher, needs: Sequence[Need]) -> PrecomputeTask:
    needs = storable_needs(teacher.config, needs)
    # A teacher's id is known before it is trained; its weights only after. Of an annotator, the number of samples of a
    # text may grow with further answers: shards with fewer do not fit to the others.
    result = find_result(storage, teacher.run)
    weights = result.weights_sha256 if result else ""
    if teacher.samples and result:
        weights += f" {teacher.samples} samples"
    tag_set = cached_corpus(storage.uri, teacher.run.corpus_id).tag_set
    handle = TeacherHandle(
        storage.uri, teacher.run.id, LOADER, teacher.sizes(len(tag_set), needs),
        weights_sha256=weights, offers=teacher.config.offers,
        unit=find_task(teacher.run.task).unit, signals_id=teacher_signals_id(teacher.run),
        decoding=teacher.run.decoding, legal=legal_transitions(teacher.run, tag_set),
    )  # fmt: skip
    return PrecomputeTask(handle, teacher.text, needs)


def compute_features(
    storage: Storage,
    runs: Iterable[Run],
    texts: Mapping[str, Text],
    resources: Resources,
    cluster: Topology,
    listener: Listener,
    nodes: Nodes | None = None,
) -> str:
    """Let the frozen encoders read all sentences without stored features, each once.

    Args:
        storage: the store.
        runs: their corpora are read.
        texts: run id of a teacher → the text that it labels.
        resources: of the reading actors.
        cluster: the cluster.
        listener: of the phase `features`.
        nodes: the nodes, if one at fault should be avoided.

    Returns:
        A summary in words; empty if no model has a frozen encoder.
    """
    tasks = encoder_tasks(storage, runs, texts)
    if not tasks:
        return ""
    for task in tasks:
        store_encoder_config(storage, task.config)
    plan, started = feature_plan(storage, tasks), time.monotonic()
    if plan is None:
        listener.begin("features", 0)
    else:
        compute_missing("features", plan, resources, cluster, listener, nodes)
    seconds = time.monotonic() - started
    for task in tasks:
        mark_texts_encoded(storage, task)
    counts = "; ".join(f"{task.new:,} of {task.sentences:,} through {task.config.title}" for task in tasks)
    sentences = sum(task.new for task in tasks)
    speed = f"; {sentences / seconds:.0f} sentences/s" if sentences else ""
    return f"sentences that were not read before: {counts}{speed}"


def compute_missing(
    phase: str,
    plan: PrecomputePlan,
    resources: Resources,
    cluster: Topology,
    listener: Listener,
    nodes: Nodes | None = None,
) -> PrecomputeResult:
    """Begin a phase and compute the missing shards of a plan; if a node is at fault, the others do the rest.

    Args:
        phase: name of the phase.
        plan: of the precompute.
        resources: of the actors.
        cluster: the cluster.
        listener: of the phase.
        nodes: the nodes, if one at fault should be avoided.

    Returns:
        The result of the precompute.
    """

    def on_range(row: Row) -> None:
        listener.ended(range_id(row))
        sentences = row["sentences"]
        listener.advance(phase, detail=f"{sentences} sentences in the last shard", sentences=sentences)

    while True:
        # A shard file holds one signal; a pipeline row writes all signals of one range of sentences.
        ranges, usable = [range_id(row) for row in pending_rows(plan.coverage())], cluster
        try:
            if nodes is not None and ranges:
                nodes.ask()
                usable = nodes.usable(cluster)
            placement = _placement(phase, len(ranges), resources, usable, listener)
            if nodes is not None:
                placement = replace(placement, avoid=nodes.avoid)
            listener.begin(phase, len(ranges))
            for key in ranges:
                listener.started(Unit(phase, key, {key: ""}))
            return precompute(plan, placement=placement, on_range=on_range)
        except (StoreError, RunError):
            if nodes is None or not nodes.ask(all_nodes=True):
                raise


def _placement(
    phase: str, rows: int, resources: Resources, cluster: Topology, listener: Listener
) -> Placement:
    # The rows are in the object store from the start, so Ray Data needs no CPU for tasks that read them.
    group, actors = reader_group(resources), min(readers(resources, cluster), rows)
    if rows:
        actors = wait_for_slots(phase, group, actors, cluster, listener, minutes=resources.wait_minutes)
    cpus, gpus = (group.worker_bundle.get(name, 0.0) for name in ("CPU", "GPU"))
    extra_resources = {
        name: amount for name, amount in group.worker_bundle.items() if name not in ("CPU", "GPU")
    }
    return Placement(
        actors or None,
        cpus,
        gpus,
        extra_resources,
        slots_asleep=cluster.slots_asleep,
        max_failures=resources.max_failures,
    )
