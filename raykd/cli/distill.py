"""`raykd distill`: one run, the first setting of a sweep file."""

from __future__ import annotations

from raykd.cli.cluster import at_work
from raykd.cli.console import stdout
from raykd.cli.options import Address, Overrides, Small, SweepPath, Variants, again, document
from raykd.errors import RunError
from raykd.runs.cluster import concurrency
from raykd.runs.execute import find_result
from raykd.runs.executor import work
from raykd.runs.recipe import TASKS
from raykd.runs.transfer import compute_transfer
from raykd.spec import covering
from raykd.sweep.driver import Sweep, train_teachers
from raykd.sweep.scheduler import RunList, missing_results
from raykd.trial import Teacher, scores_of


def distill(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
) -> None:
    """Distil one student: FILE's values, the first alternative of each choice (fix others with --set)."""
    sweep = Sweep(document(file, set_, variant, small))
    with at_work(sweep, address) as (cluster, heard):
        concurrent = concurrency(sweep.file.resources, cluster)
        train_teachers(sweep, concurrent, heard)
        compute_transfer(sweep.transfer(), sweep.file.resources, cluster, heard)
        runs = [(run.id, run) for run in sweep.runs_of(covering(sweep.document.tree)[0].tree)]
        todo = missing_results(sweep.storage, runs)
        heard.begin("distill", sum(run.schedule["epochs"] for _, run in todo))
        scheduler = RunList(todo, "distill", heard)
        if todo:
            work(
                scheduler, store_uri=sweep.storage.uri, resources=sweep.file.resources, concurrent=concurrent
            )
        if scheduler.failed:
            raise RunError("; ".join(f"{name} failed: {why}" for name, why in scheduler.failed.items()))
        heard.end("distill", f"{len(todo)} trained, {len(runs) - len(todo)} found")
    for name, run in runs:
        result = find_result(sweep.storage, run) or {}
        dev, test, metric = result["dev"], result["test"], TASKS[run.task].label
        scored = Teacher(
            name, dev["mean"], test["mean"], test_f1_target=test.get("target_mean"), metric=metric
        )
        stdout.print(f"{name}: {scores_of(scored)}, best epoch {result['best_epoch'] + 1}", highlight=False)
    stdout.print(
        f"distill: {len(runs)} runs in {sweep.storage.child('runs').uri}. "
        f"Next: raykd sweep {again(file, variant, small)}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
