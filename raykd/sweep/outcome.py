"""From the results of a setting's runs to its trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from raykd.runs.run import Run
from raykd.trial import Teacher, Trial


def flat_settings(run: Run) -> dict[str, Any]:
    """Dotted path → value of all that was set for the run: `student.embedding_dim`, `training.learning_rate`, …"""
    sections = {
        "student": run.model, "objective": run.objective, "schedule": run.schedule, "training": run.training
    }  # fmt: skip
    return {path: value for name, section in sections.items() for path, value in _flat(name, section)}


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [item for key, inner in value.items() for item in _flat(f"{prefix}.{key}", inner)]
    return [(prefix, value)]


def finished(trial: Trial, results: Sequence[Mapping[str, Any]], cost: Mapping[str, Any]) -> Trial:
    """`trial` with each seed's score, the mean over seeds of its results, and the cost of its shape."""
    scores = {}
    for part in ("dev", "test"):
        means = [result[part]["mean"] for result in results]
        languages = results[0][part]["by_language"]
        scores |= {
            f"{part}_f1": fmean(means),
            f"{part}_f1_sd": stdev(means) if len(means) > 1 else None,
            f"{part}_f1_by_seed": tuple(means),
            f"{part}_f1_languages_sd": fmean(result[part]["standard_deviation"] for result in results),
            f"{part}_f1_by_language": {
                language: fmean(result[part]["by_language"][language] for result in results)
                for language in languages
            },
        }
    scores |= _apart([result["test"] for result in results])
    return replace(
        with_cost(trial, cost), state="COMPLETE", wall_s=round(sum(r["wall_s"] for r in results), 1), **scores
    )


def _apart(tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the seeds' runs say of target languages; nothing where the corpus has none."""
    # Results of before there were targets do not name them.
    means = [float(mean) for test in tests if (mean := test.get("target_mean")) is not None]
    if not means:
        return {}
    return {
        "targets": tuple(tests[0]["targets"]),
        "test_f1_target": fmean(means),
        "test_f1_target_sd": stdev(means) if len(means) > 1 else None,
        "test_f1_target_by_seed": tuple(means),
        "test_f1_target_languages_sd": fmean(test["target_standard_deviation"] for test in tests),
    }


def with_cost(trial: Trial, cost: Mapping[str, Any]) -> Trial:
    """`trial` with what its shape costs, absolutely and against the teachers."""
    names = (
        "parameters",
        "bytes",
        "latency_ms",
        "latency_ms_p90",
        "latency_ms_batch32",
        "compression",
        "speedup",
    )
    return replace(trial, **{name: cost[name] for name in names if name in cost})


def against_teachers(cost: Mapping[str, Any], teachers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`cost` with compression (parameters of all teachers, each of which would have to be served, over the student's)
    and speed-up (mean latency of a teacher over the student's, both at batch 1 on one thread in PyTorch)."""
    return {
        **cost,
        "compression": sum(t["parameters"] for t in teachers) / cost["parameters"],
        "speedup": fmean(t["latency_ms"] for t in teachers) / cost["latency_ms"],
    }


def teacher_row(
    name: str,
    results: Sequence[Mapping[str, Any]],
    costs: Sequence[Mapping[str, Any]],
    *,
    metric: str = "F1",
    members: Sequence[Teacher] = (),
) -> Teacher:
    """One row for all teachers of the sweep: each language's score is its own teacher's."""
    scores = {
        part: {k: v for r in results for k, v in r[part]["by_language"].items()} for part in ("dev", "test")
    }
    targets = tuple(dict.fromkeys(name for r in results for name in r["test"].get("targets", ())))
    own = [f1 for language, f1 in scores["test"].items() if language not in targets]
    return Teacher(
        name=name if len(results) == 1 else f"{name} × {len(results)}",
        metric=metric,
        dev_f1=fmean(scores["dev"].values()),
        test_f1=fmean(own),
        test_f1_target=fmean(scores["test"][language] for language in targets) if targets else None,
        targets=targets,
        dev_f1_by_language=scores["dev"],
        test_f1_by_language=scores["test"],
        parameters=sum(cost["parameters"] for cost in costs) or None,
        bytes=sum(cost["bytes"] for cost in costs) or None,
        latency_ms=fmean(cost["latency_ms"] for cost in costs) if costs else None,
        members=tuple(members),
    )
