"""Texts, a deterministic fake teacher and whole transfer sets for tests, without Ray."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from raykd.runs.precompute import Placement, PrecomputePlan, PrecomputeTask, precompute
from raykd.runs.shard_writer import ShardWriter, TeacherHandle
from raykd.storage import Storage
from raykd.transfer import Text

TAGS = 5


def sentences(count: int, *, seed: int = 0, longest: int = 12) -> list[list[str]]:
    draw = np.random.default_rng(seed)
    return [[f"w{draw.integers(99)}" for _ in range(draw.integers(1, longest + 1))] for _ in range(count)]


class FakeTeacher:
    """Scores that depend on the teacher, the word and its place; it writes down what it is asked."""

    def __init__(self, name: str, *, tags: int = TAGS, scale: float = 3.0):
        self.name, self.tags, self.scale = name, tags, scale
        self.asked: list[list[str]] = []

    def scores(self, sentence: list[str]) -> np.ndarray:
        keys = [f"{self.name}/{place}/{word}" for place, word in enumerate(sentence)]
        seeds = [int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) for key in keys]
        drawn = [np.random.default_rng(seed).normal(size=self.tags) for seed in seeds]
        return (self.scale * np.stack(drawn)).astype(np.float32)

    def emit(self, sentences: list[list[str]], token_budget: int) -> list[np.ndarray]:
        self.asked += sentences
        return [self.scores(sentence) for sentence in sentences]

    def decode(self, sentences: list[list[str]], token_budget: int) -> list[tuple[np.ndarray, float]]:
        """Tags by the length of the words and their place, so none that its scores would give."""
        paths = [
            np.array([(len(word) + place) % self.tags for place, word in enumerate(words)])
            for words in sentences
        ]
        return [(path, float(len(path)) / 2) for path in paths]

    @property
    def transitions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(len(self.name))
        shapes = ((self.tags, self.tags), (self.tags,), (self.tags,))
        return tuple(draw.normal(size=shape).astype(np.float32) for shape in shapes)


class School:
    """Teachers by name, loaded through handles; `loaded` counts how often each was."""

    def __init__(self, *teachers: FakeTeacher):
        self.teachers = {teacher.name: teacher for teacher in teachers}
        self.loaded: list[str] = []

    def load(self, store: Storage, teacher_id: str) -> FakeTeacher:
        self.loaded.append(teacher_id)
        return self.teachers[teacher_id]

    def handle(self, store: Path, name: str, **changes) -> TeacherHandle:
        return TeacherHandle(str(store), name, self.load, **{"tags": TAGS, **changes})

    def plan(self, store: Path, texts: dict[str, Text], **changes) -> PrecomputePlan:
        tasks = tuple(PrecomputeTask(self.handle(store, name), text) for name, text in texts.items())
        return PrecomputePlan(str(store), tasks, **{"shard_sentences": 10, "token_budget": 40, **changes})


def here(plan: PrecomputePlan, rows, placement: Placement):
    """Launch in this process: one actor, no Ray."""
    actor = ShardWriter(plan.store, plan.assignments(), plan.token_budget)
    for row in rows:
        yield actor(row)


def compute(plan: PrecomputePlan, **changes):
    return precompute(plan, **{"launch": here, **changes})
