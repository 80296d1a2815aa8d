"""A synthetic sweep."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

from raykd.figures.results import Score, Scores
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher
from tests.scores import score, scores

LANGUAGES = ("en", "de", "es", "nl")
LIFT = {"gold": 0.0, "top_wk": 0.021, "posterior": 0.027, "structural": 0.031}

TEACHER = Teacher(
    name="bilstm_crf × 4",
    scores=scores(
        score(0.874, languages={"en": 0.846, "de": 0.851, "es": 0.898, "nl": 0.901}),
        score(0.868, languages={"en": 0.839, "de": 0.846, "es": 0.893, "nl": 0.894}),
    ),
    cost={"parameters": 6_412_380, "bytes": 25_649_520, "latency_ms": 9.84},
)


def fake_trials(count: int = 28, *, seed: int = 0) -> list[Trial]:
    """`count` searched trials, two of them pruned and one failed, then a gold baseline of each shape."""
    draw = random.Random(seed)
    trials = [_searched(number, draw) for number in range(count)]
    shapes: dict[str, Trial] = {trial.shape: trial for trial in trials if trial.state == "COMPLETE"}
    baselines = [
        _trial(count + i, _student(twin), "gold", "COMPLETE", draw, role="baseline", hyper={})
        for i, twin in enumerate(shapes.values())
    ]
    return trials + baselines


def with_targets(scored: TrialOrTeacher, *, test: float, label: str = "F1") -> Any:
    """The same trial or teacher with scores of two target languages beside its own."""
    relabelled = replace(scored, score_label=label, score_name="accuracy" if label == "accuracy" else "f1")
    parts = relabelled.scores.by_part
    if "test" not in parts:
        return relabelled
    target = score(test, languages={"sv": test - 0.05, "tr": test + 0.05})
    return replace(relabelled, scores=Scores({**parts, "test": {**parts["test"], "target": target}}))


def _student(trial: Trial) -> dict[str, Any]:
    return {key: value for key, value in trial.settings.items() if key.startswith("student.")}


def _searched(number: int, draw: random.Random) -> Trial:
    student = {
        "student.kind": "bilstm",
        "student.embedding_dim": draw.choice([16, 32, 64]),
        "student.hidden_dim": draw.choice([32, 64, 128]),
        "student.decoder": draw.choice(["crf", "maxent"]),
    }
    kind = draw.choice(["top_wk", "posterior", "structural"])
    hyper: dict[str, Any] = {"temperature": draw.randint(1, 5)}
    if kind == "top_wk":
        hyper["k"] = draw.randint(1, 10)
    state = {5: "PRUNED", 11: "FAILED", 17: "PRUNED"}.get(number, "COMPLETE")
    return _trial(number, student, kind, state, draw, role="search", hyper=hyper)


def _trial(number, student, kind, state, draw, *, role, hyper) -> Trial:
    e, h = student["student.embedding_dim"], student["student.hidden_dim"]
    crf = student["student.decoder"] == "crf"
    settings = {**student, "objective.kind": kind, **{f"objective.{k}": v for k, v in hyper.items()}}
    settings |= {
        "schedule.epochs": 12,
        "schedule.anneal_rate": draw.choice([0.5, 1.0, 1.5]),
        "training.seed": 0,
    }
    if state == "FAILED":
        return Trial(
            number, state, settings, role, kind, message="CUDA out of memory", run_ids=(f"run-{number:016x}",)
        )
    parameters = 8000 * e + 8 * h * (e + h + 2) + 17 * (2 * h + 17 * crf)
    latency = 0.35 + 0.011 * h + 0.004 * e + 0.35 * crf
    f1 = 0.683 + 0.028 * math.log2(e / 8) + 0.024 * math.log2(h / 16) + 0.006 * crf + LIFT[kind]
    f1 -= 0.004 * abs(hyper.get("temperature", 2) - 2) - draw.gauss(0, 0.005)
    complete = state == "COMPLETE"
    dev = _score(f1 if complete else f1 - 0.2, draw)
    return Trial(
        number, state, settings, role, kind,
        run_ids=(f"run-{number:016x}", f"run-{number + 4096:016x}"),
        scores=scores(dev, _score(f1 - 0.006 + draw.gauss(0, 0.004), draw) if complete else None),
        cost={
            "latency_ms": round(latency, 3), "latency_ms_p90": round(latency * 1.17, 3),
            "latency_ms_batch32": round(latency * 9, 2), "latency_ms_batch32_p90": round(latency * 10, 2),
            "parameters": parameters, "bytes": 4 * parameters,
            "compression": 6_412_380 / parameters, "speedup": 9.84 / latency,
        },
        wall_s=40 + 2.0 * h,
        message="stopped after 4 of 12 epochs" if state == "PRUNED" else "",
    )  # fmt: skip


def _score(f1: float, draw: random.Random) -> Score:
    shift = {"en": -0.031, "de": -0.022, "es": 0.024, "nl": 0.029}
    one_run = Score.from_languages(
        {language: f1 + shift[language] + draw.gauss(0, 0.004) for language in LANGUAGES}
    )
    half = abs(draw.gauss(0.003, 0.001)) / math.sqrt(2)
    return replace(one_run, by_seed=(one_run.mean - half, one_run.mean + half))
