"""Texts, a deterministic fake teacher and whole transfer sets for tests, without Ray."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from raykd.corpora.encoded_text import TokenBatch
from raykd.layers.model import Output
from raykd.needs import CHAIN, signals_to_store
from raykd.precompute.plan import Placement, PrecomputePlan, PrecomputeTask, precompute
from raykd.precompute.shard_writer import ShardWriter, TeacherHandle
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.structures import Chain, Mixture
from raykd.structures.labelled_arcs import FORBIDDEN, LabelledArcs
from raykd.transfer import Text, signal_id

TAGS = 5
NON_CHAIN = ("token_marginals", "kbest")


def sentences(count: int, *, seed: int = 0, longest: int = 12) -> list[list[str]]:
    draw = np.random.default_rng(seed)
    return [[f"w{draw.integers(99)}" for _ in range(draw.integers(1, longest + 1))] for _ in range(count)]


class FakeTeacher:
    """A teacher with scores from a hash of teacher, word and place; `labelled` collects the sentences that it labels.

    Without `chain` it is the mixture of two chains: its best path is not the path of its best tags.
    """

    def __init__(self, name: str, *, tags: int = TAGS, scale: float = 3.0, chain: bool = True):
        self.name, self.tags, self.scale, self.chain = name, tags, scale, chain
        self.labelled: list[list[str]] = []

    def scores(self, sentence: list[str]) -> np.ndarray:
        keys = [f"{self.name}/{place}/{word}" for place, word in enumerate(sentence)]
        seeds = [int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) for key in keys]
        drawn = [np.random.default_rng(seed).normal(size=self.tags) for seed in seeds]
        return (self.scale * np.stack(drawn)).astype(np.float32)

    def emit(self, sentences: list[list[str]], token_budget: int) -> list[np.ndarray]:
        self.labelled += sentences
        return [self.scores(sentence) for sentence in sentences]

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, Output]]:
        """Yield all sentences as one batch, one piece a word; scores on padding are not 0."""
        scores_N = self.emit([list(words) for words in sentences], token_budget)
        lengths_B = torch.tensor([len(scores_TY) for scores_TY in scores_N])
        emissions_BTY = pad_sequence(
            [torch.from_numpy(scores_TY) for scores_TY in scores_N], True, padding_value=7.0
        )
        positions_BT = torch.arange(emissions_BTY.shape[1]).expand(len(scores_N), -1)
        batch = TokenBatch(positions_BT, lengths_B, positions_BT, lengths_B)
        hidden = {layer: emissions_BTY * (layer + 1) for layer in layers}
        yield (
            list(range(len(scores_N))),
            batch,
            Output(self.distribution(emissions_BTY, lengths_B), hidden),
        )

    def distribution(self, emissions_BTY: torch.Tensor, lengths_B: torch.Tensor) -> Chain | Mixture:
        """Return the distribution with these scores."""
        parts = [torch.from_numpy(part) for part in self.transitions]
        chain = Chain(emissions_BTY, lengths_B, *parts)
        return chain if self.chain else Mixture((chain, Chain(-emissions_BTY, lengths_B, *parts)))

    @property
    def transitions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(len(self.name))
        shapes = ((self.tags, self.tags), (self.tags,), (self.tags,))
        return tuple(draw.normal(size=shape).astype(np.float32) for shape in shapes)


class FakeParser(FakeTeacher):
    """A parser with arcs and relations from a hash of parser and sentence; `tags` is the number of relations."""

    def scores(self, sentence: list[str]) -> np.ndarray:
        """Return scores [n, n + 1, 1 + relations] of words and heads: the arc, then its relations."""
        seed = hashlib.sha256(f"{self.name}/{' '.join(sentence)}".encode()).digest()
        shape = len(sentence), len(sentence) + 1, 1 + self.tags
        drawn = np.random.default_rng(int.from_bytes(seed[:4])).normal(size=shape)
        return (self.scale * drawn).astype(np.float32)

    def labelled_arcs(self, scores_N: Sequence[np.ndarray], *, padding: int = 0) -> LabelledArcs:
        """Return all sentences as one batch; scores on padding are not 0."""
        lengths_B = torch.tensor([len(scores_THR) for scores_THR in scores_N])
        time = int(lengths_B.max()) + padding
        arcs_BTH = torch.full((len(scores_N), time, time + 1), 7.0)
        relations_BTHR = torch.full((*arcs_BTH.shape, self.tags), 7.0)
        for i, scores_THR in enumerate(scores_N):
            n, drawn = len(scores_THR), torch.from_numpy(scores_THR)
            arcs_BTH[i, :n], relations_BTHR[i, :n, : n + 1] = FORBIDDEN, drawn[..., 1:]
            itself = torch.eye(n + 1, dtype=torch.bool)[1:]
            arcs_BTH[i, :n, : n + 1] = drawn[..., 0].masked_fill(itself, FORBIDDEN)
        return LabelledArcs(arcs_BTH.log_softmax(2), relations_BTHR.log_softmax(3), lengths_B)

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, Output]]:
        """Yield all sentences as one batch, one piece a word, with more padding than the longest sentence needs."""
        arcs = self.labelled_arcs(
            self.emit([list(words) for words in sentences], token_budget), padding=len(self.labelled) % 3
        )
        positions_BT = torch.arange(arcs.arcs_BTH.shape[1]).expand(len(sentences), -1)
        batch = TokenBatch(positions_BT, arcs.lengths_B, positions_BT, arcs.lengths_B)
        yield list(range(len(sentences))), batch, Output(arcs.chain())


@dataclass(frozen=True)
class Source:
    """Ids of the signals of one teacher for one text."""

    stored_ids: Mapping[str, str]

    @staticmethod
    def of(
        teacher_id: str, text: Text, needs: Sequence[Need] = (), *, offers: Sequence[str] = CHAIN
    ) -> Source:
        """Return the ids for some needs; without needs, for all signals of a teacher."""
        stored = signals_to_store(needs, offers) if needs else every_need(offers)
        return Source({n.name: signal_id(n, teacher_id=teacher_id, text_id=text.id) for n in stored})


def every_need(offers: Sequence[str] = CHAIN, *, k: int = 1) -> tuple[Need, ...]:
    """Return the needs for all stored signals of a teacher, with `k` best paths."""
    return signals_to_store(
        [*map(Need, (name for name in offers if name != "kbest")), *[Need("kbest", k)][:k]], offers
    )


class School:
    """Teachers by name, loaded through handles; `loaded` collects their names, `devices` where they were loaded to."""

    def __init__(self, *teachers: FakeTeacher):
        self.teachers = {teacher.name: teacher for teacher in teachers}
        self.loaded: list[str] = []
        self.devices: list[str] = []

    def load(self, store: Storage, teacher_id: str, device: torch.device) -> FakeTeacher:
        self.loaded.append(teacher_id)
        self.devices.append(device.type)
        return self.teachers[teacher_id]

    def handle(self, store: Path, name: str, *, tags: int = TAGS, **changes) -> TeacherHandle:
        return TeacherHandle(str(store), name, self.load, Sizes(tags), **changes)

    def task(self, store: Path, name: str, text: Text, *, k: int = 0, **changes) -> PrecomputeTask:
        """Return the task to compute all signals of a teacher, with `k` best paths."""
        handle = self.handle(store, name, **changes)
        return PrecomputeTask(handle, text, every_need(handle.offers, k=k))

    def plan(self, store: Path, texts: dict[str, Text], *, k: int = 0, **changes) -> PrecomputePlan:
        tasks = tuple(self.task(store, name, text, k=k) for name, text in texts.items())
        return PrecomputePlan(str(store), tasks, **{"shard_sentences": 10, "token_budget": 40, **changes})


def here(plan: PrecomputePlan, rows, placement: Placement):
    """Launch in the calling process: one actor, no Ray."""
    actor = ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget)
    for row in rows:
        yield actor(row)


def compute(plan: PrecomputePlan, **changes):
    return precompute(plan, **{"launch": here, **changes})
