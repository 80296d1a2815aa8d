"""Trials from the results of their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from raykd.figures.cost_grid import Grid
from raykd.figures.figure_values import combine_model_costs
from raykd.figures.results import Cost, RunResult, Scores
from raykd.figures.table import COSTS
from raykd.figures.trial import Teacher, Trial
from raykd.identity import PlainObject, PlainValue
from raykd.recipes.recipe import SEED
from raykd.recipes.run import Run

PLAIN = ("all", "dev", None)
"""Defaults of a stage's `layers`, `select` and `head`."""


def flatten_settings(run: Run) -> PlainObject:
    """Return dotted path → value for all settings of a run.

    Paths are such as `student.embedding_dim` and `training.learning_rate`. Checksums of files are left out, as users do
    not set them. A single stage shows as its objective and schedule. Several stages show as `stages.0.objective.kind`,
    …, with the `schedule` of all together.

    Args:
        run: The run.
    """
    sections: dict[str, Any] = {"student": run.model}
    if len(run.stages) == 1:
        (stage,) = run.stages
        sections |= {name: stage[name] for name in ("objective", "schedule")}
        sections |= {
            name: stage[name] for name in ("layers", "select", "head") if stage.get(name) not in PLAIN
        }
        sections["training"] = {**run.training, **stage["training"]}
    else:
        sections |= {"stages": dict(enumerate(run.stages)), "schedule": _whole_schedule(run)}
        sections["training"] = run.training
    sections |= {"decoding": run.decoding} if run.decoding else {}
    values = [item for name, section in sections.items() for item in dotted_values(name, section)]
    return {path: value for path, value in values if not path.endswith(".checksum")}


def seed_paths(student: PlainObject) -> PlainObject:
    """Return the student's settings with `{seed}`, as written in the sweep file.

    In the run of each seed the seed's number takes the place of `{seed}`.

    Args:
        student: The student's section.
    """
    return {path: value for path, value in dotted_values("student", student) if SEED in str(value)}


def _whole_schedule(run: Run) -> PlainObject:
    """Return the schedule of all stages together: epochs and steps added up, and patience if they share it."""
    schedules = [stage["schedule"] for stage in run.stages]
    sums = {
        name: None if None in values else sum(values)
        for name in ("epochs", "max_steps")
        if (values := [schedule[name] for schedule in schedules])
    }
    patience = {schedule["patience"] for schedule in schedules}
    return {**sums, "patience": patience.pop() if len(patience) == 1 else None}


def dotted_values(prefix: str, value: PlainValue) -> list[tuple[str, PlainValue]]:
    """Return (dotted key path, value) for all values below `prefix`; a list is one value unless it has mappings."""
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        value = {str(number): item for number, item in enumerate(value)}
    if isinstance(value, Mapping):
        return [item for key, inner in value.items() for item in dotted_values(f"{prefix}.{key}", inner)]
    return [(prefix, value)]


def complete_trial(
    trial: Trial, results: Sequence[RunResult], cost: Cost, grid: Grid = MappingProxyType({})
) -> Trial:
    """Return `trial` as complete, with the scores of its runs, which differ by seed, and the cost of its shape.

    Args:
        trial: The trial.
        results: One result per seed.
        cost: Cost of its shape, with ratios to the teachers.
        grid: The grid on which costs are compared.
    """
    return replace(
        with_cost(trial, cost, grid),
        state="COMPLETE",
        scores=Scores.over_seeds(result.scores for result in results),
        wall_s=round(sum(result.wall_s for result in results), 1),
        steps=max(result.steps for result in results),
        still_rises=sum(result.still_rises for result in results),
    )


def with_cost(trial: Trial, cost: Cost, grid: Grid = MappingProxyType({})) -> Trial:
    """Return `trial` with the cost of its shape and the grid for comparing costs."""
    return replace(trial, cost=dict(cost.figures), grid=dict(grid), cost_notes=cost.remarks)


def with_teacher_ratios(cost: Cost, teachers: Sequence[Cost]) -> Cost:
    """Return `cost` with all ratios to the teachers known on both sides.

    Compression is the bytes of all teachers, each of which would have to be served, over the student's bytes, both with
    only the pieces of the text. A speed-up is the mean latency of a teacher over the student's latency, both in the
    same runtime on one thread. If a teacher has no export, a note says why both are missing.

    Args:
        cost: The student's cost.
        teachers: The cost of each teacher.
    """
    together = combine_model_costs(teachers)
    ratios = {
        figure.name: together[figure.against] / cost[figure.against]
        for figure in COSTS
        if figure.against in together and figure.against in cost.figures
    }
    without = [teacher.no_export for teacher in teachers if teacher.no_export]
    notes = [f"no speed-up and no compression: the teacher has no export ({without[0]})"] if without else []
    return replace(
        cost, figures={**cost.figures, **ratios}, notes=(*cost.notes, *(notes if not cost.no_export else ()))
    )


def teacher_row(
    name: str,
    results: Sequence[RunResult],
    costs: Sequence[Cost],
    *,
    score_name: str,
    score_label: str,
    members: Sequence[Teacher] = (),
) -> Teacher:
    """Return one row for all teachers of the sweep; each language's score is that of its teacher.

    Args:
        name: Name of the kind of teacher.
        results: Result of each teacher.
        costs: Cost of each teacher.
        score_name: Name of the task's score.
        score_label: Readable name of the score.
        members: Rows of an ensemble's members.
    """
    return Teacher(
        name=name if len(results) == 1 else f"{name} × {len(results)}",
        scores=Scores.over_languages(result.scores for result in results),
        cost=combine_model_costs(costs),
        cost_notes=tuple(dict.fromkeys(remark for cost in costs for remark in cost.remarks)),
        still_rises=sum(result.still_rises for result in results),
        members=tuple(members),
        score_name=score_name,
        score_label=score_label,
    )
