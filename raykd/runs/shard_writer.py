"""The actor of the precompute pipeline: it holds teachers and turns one row, a range of sentences, into
shards.

It knows nothing of Ray: it is built from plain data, called with a plain row and answers with one.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import torch

from raykd import errors
from raykd.errors import RaykdError, RunError
from raykd.signals import CHAIN, SIGNALS
from raykd.storage import Storage
from raykd.transfer import (
    Origin,
    RowRange,
    ShardEntry,
    Text,
    Transitions,
    buckets,
    find_shard,
    kbest_batch,
    open_shard,
    open_text,
    origin_folder,
    token_batch,
    told_batch,
    transition_batch,
    transitions_of,
    verify_shards,
    write_shard,
)

if TYPE_CHECKING:
    from jaxtyping import Float


@runtime_checkable
class LoadedTeacher(Protocol):
    """A teacher in memory."""

    def emit(self, sentences: list[list[str]], token_budget: int) -> Sequence[Float[np.ndarray, "_ tag"]]:
        """Of every sentence float32 [T, Y]: emissions of a chain, log token marginals of any other teacher."""
        ...

    def decode(self, sentences: list[list[str]], token_budget: int) -> Sequence[tuple[np.ndarray, float]]:
        """The best path [T] of every sentence and its score. Only a teacher that is no chain is asked."""
        ...

    @property
    def transitions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Transitions [Y, Y] (from, to), start [Y] and end [Y] scores, float32. Only a chain is asked."""
        ...


Loader = Callable[[Storage, str], LoadedTeacher]


@dataclass(frozen=True)
class TeacherHandle:
    """How an actor finds a teacher: `loader(Storage(store), teacher_id)`.

    `loader` is "module:function" or the function itself; a function defined in `__main__` is sent along.
    `weights_sha256` may stay empty in a plan that is made before the teacher is trained. `offers` are the signals
    that it tells: the scores of a chain, or token marginals (and its best path).
    """

    store: str
    teacher_id: str
    loader: str | Loader
    tags: int
    weights_sha256: str = ""
    offers: tuple[str, ...] = CHAIN

    @property
    def chain(self) -> bool:
        """Whether it tells a chain's scores, from which best paths derive."""
        return set(CHAIN) <= set(self.offers)

    def load(self) -> LoadedTeacher:
        """The teacher in memory."""
        loader = self.loader
        if isinstance(loader, str):
            module, _, function = loader.partition(":")
            loader = getattr(importlib.import_module(module), function)
        return loader(Storage(self.store), self.teacher_id)


@dataclass(frozen=True)
class ShardJob:
    """What an actor must know to write the shards of one teacher about one text."""

    teacher: TeacherHandle
    text_id: str
    tokens: Origin
    """What is stored of each token: emissions, or token marginals."""
    transitions: Origin | None


class ShardWriter:
    """Computes one shard a call, and keeps the teachers it has loaded.

    At most two teachers stay in memory: rows come teacher by teacher, so only the turn from one to the
    next meets two.
    """

    def __init__(self, store: str, shard_jobs: Sequence[ShardJob], token_budget: int, threads: int = 1):
        torch.set_num_threads(threads)
        self._store, self._shard_jobs, self._token_budget = Storage(store), shard_jobs, token_budget
        self._teacher: Callable[[TeacherHandle], LoadedTeacher] = lru_cache(maxsize=2)(TeacherHandle.load)
        self._text: Callable[[str], Text] = lru_cache(maxsize=4)(lambda name: open_text(self._store, name))

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Write what `row` lacks.

        row: `task` (index of the shard_job), `first` and `last` (rows of the text; equal: transitions
        only), `standing` (the entry of the shard of tokens as JSON where it stands already, else ""), `k`
        (0: no paths). Answers with the entries, as JSON under their signal's name, of the shards that now
        stand ("" where there is none), or with the `error` that hindered it.
        """
        answer = {"task": row["task"], "sentences": row["last"] - row["first"], "error": ""}
        answer |= dict.fromkeys(SIGNALS, "")
        try:
            return answer | {name: entry.model_dump_json() for name, entry in self._write(row)}
        except Exception as error:
            return answer | {"error": _tell(error, row)}

    def _write(self, row: dict[str, Any]) -> Iterator[tuple[str, ShardEntry]]:
        work = self._shard_jobs[row["task"]]
        rows = RowRange(row["first"], row["last"])
        said = None
        if work.transitions is not None:
            said, transitions = self._transitions(work.teacher, work.transitions)
            yield "transitions", transitions
        if not len(rows):
            return
        tokens = self._standing(work, row["standing"]) or self._tokens(work, rows)
        yield work.tokens.signal, tokens
        if row["k"]:
            yield "kbest", self._kbest(work, tokens, said, row["k"])

    def _transitions(self, teacher: TeacherHandle, origin: Origin) -> tuple[Transitions, ShardEntry]:
        folder, rows = origin_folder(self._store, origin), RowRange(0, 1)
        entry = find_shard(folder, rows, origin=origin)
        if entry is None:
            # Actors may write this at the same time: they write the same bytes.
            said = Transitions(*self._teacher(teacher).transitions)
            entry = write_shard(folder, transition_batch(said), origin=origin, rows=rows)
        return transitions_of(open_shard(folder, rows.name)), entry

    def _standing(self, work: ShardJob, standing: str) -> ShardEntry | None:
        if not standing:
            return None
        entry = ShardEntry.model_validate_json(standing)
        verify_shards(origin_folder(self._store, work.tokens), [entry])
        return entry

    def _tokens(self, work: ShardJob, rows: RowRange) -> ShardEntry:
        folder = origin_folder(self._store, work.tokens)
        # Another sweep may have written it since this one looked.
        found = find_shard(folder, rows, origin=work.tokens)
        if found is not None:
            return found
        text = self._text(work.text_id)
        lengths_N = text.lengths[rows.first : rows.last]
        order_N = np.argsort(lengths_N, kind="stable")
        said = [
            scores
            for run in buckets(lengths_N[order_N], self._token_budget)
            for scores in self._emit(work, text, order_N[run] + rows.first)
        ]
        batch, error = token_batch(work.tokens.signal, order_N + rows.first, said)
        return write_shard(folder, batch, origin=work.tokens, rows=rows, largest_error=error)

    def _emit(self, work: ShardJob, text: Text, sentences_B: np.ndarray) -> Sequence[np.ndarray]:
        said = self._teacher(work.teacher).emit(text.sentences(sentences_B), self._token_budget)
        got = [np.shape(scores) for scores in said]
        expected = [(int(length), work.teacher.tags) for length in text.lengths[sentences_B]]
        if got != expected:
            wrong = next((pair for pair in zip(got, expected, strict=False) if pair[0] != pair[1]), None)
            told = f"{wrong[0]} where {wrong[1]} was expected" if wrong else f"{len(got)} of {len(expected)}"
            raise RunError(
                f"teacher {work.teacher.teacher_id} gave {work.tokens.signal} of the wrong shape: {told}"
            )
        return said

    def _kbest(self, work: ShardJob, tokens: ShardEntry, said: Transitions | None, k: int) -> ShardEntry:
        batch: pa.RecordBatch = open_shard(origin_folder(self._store, work.tokens), tokens.name)
        origin = work.tokens.model_copy(update={"signal": "kbest", "k": k})
        if said is None:
            # The best labelling is no function of token marginals: the teacher has to say it.
            sentences = self._text(work.text_id).sentences(batch["sentence"].to_numpy())
            told = self._teacher(work.teacher).decode(sentences, self._token_budget)
            paths = told_batch(batch, work.teacher.tags, told)
        else:
            # Always from the stored, rounded emissions: deriving the paths later gives the same bytes.
            paths = kbest_batch(batch, said, k, token_budget=self._token_budget)
        folder = origin_folder(self._store, origin)
        return write_shard(folder, paths, origin=origin, rows=tokens.rows, source=tokens.sha256)


def raise_told(told: str) -> None:
    """Raise the error that an actor told of, if it told of one."""
    if told:
        error = json.loads(told)
        raise getattr(errors, error["kind"])(*error["fields"])


def _tell(error: Exception, row: dict[str, Any]) -> str:
    # What a Ray Data function raises reaches the driver as text only, without its class and fields. So errors
    # travel as data: our own by name and fields, all others as a RunError.
    if not isinstance(error, RaykdError):
        logging.getLogger(__name__).exception("a teacher failed")
        where = f"on sentences {row['first']} to {row['last']}"
        error = RunError(f"the teacher failed {where}: {type(error).__name__}: {error}")
    return json.dumps({"kind": type(error).__name__, "fields": error.args})
