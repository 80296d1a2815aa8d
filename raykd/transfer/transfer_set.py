"""A transfer set: the signals of several teachers joined over one training table, gathered into batches.

Each teacher covers some rows of the table, in the order of its text; every row has at most one teacher.

Shapes: G rows of the training table, B batch, T time, Y tags, K best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import torch

from raykd.errors import SignalError
from raykd.signals import Need, TeacherBatch, to_read
from raykd.storage import Storage
from raykd.structures import Chain
from raykd.transfer.names import signal_folder
from raykd.transfer.ragged import Ragged, join
from raykd.transfer.shard import transitions_of
from raykd.transfer.signal_store import SignalStore, open_kbest

if TYPE_CHECKING:
    from jaxtyping import Int


@runtime_checkable
class Source(Protocol):
    """The signals of one teacher about one text: signal name → signal id."""

    @property
    def signals(self) -> Mapping[str, str]: ...


class TransferSet:
    """What the teachers of one run say about its training table. Build it with `open`."""

    def __init__(
        self,
        teacher_G: np.ndarray,
        covered: Sequence[np.ndarray],
        stores: Sequence[Mapping[str, SignalStore]],
        *,
        k: int,
    ):
        def column(signal: str, name: str) -> Ragged | None:
            columns = [store[signal].column(name) for store in stores if signal in store]
            return join(columns, covered, len(teacher_G)) if columns else None

        self._teacher_G, self._k = teacher_G, k
        self._emissions = column("emissions", "emissions")
        self._marginals = column("token_marginals", "token_marginals")
        self._paths, self._scores = column("kbest", "paths"), column("kbest", "scores")
        said = [transitions_of(store["transitions"].batches[0]) for store in stores if "transitions" in store]
        self._transitions = [
            torch.from_numpy(np.stack([getattr(each, part) for each in said]))
            for part in (("transitions_YY", "start_Y", "end_Y") if said else ())
        ]
        self.manifests = tuple(opened.manifest for store in stores for opened in store.values())

    @staticmethod
    def open(
        storage: Storage,
        covered: Iterable[tuple[Source, Int[np.ndarray, " _"]]],
        needs: Iterable[Need],
        *,
        verify: bool = True,
    ) -> TransferSet:
        """Map the signals that `needs` reads.

        `covered` gives for each teacher the rows of the training table that it covers, in the order of
        its text; a table may stop before the text does. `verify=False` spares the checksums: for workers,
        once the driver has verified.

        Raises StoreError when a signal is missing or damaged, SignalError when two teachers cover one
        row, do not have the same tags, or a table has more rows than its text.
        """
        joined = tuple(covered)
        wanted = tuple(needs)
        teacher_G = _teacher_of_rows([rows for _, rows in joined])
        stores = [_open_source(storage, source, wanted, verify=verify) for source, _ in joined]
        _check(joined, stores)
        k = max((need.k for need in wanted if need.signal == "kbest"), default=0)
        return TransferSet(teacher_G, [rows for _, rows in joined], stores, k=k)

    def gather(self, sentence_rows: np.ndarray, device: torch.device | str = "cpu") -> TeacherBatch:
        """What the teachers say about these rows of the training table, padded, on `device`.

        Raises SignalError when no teacher covers one of the rows.
        """
        rows_B = np.asarray(sentence_rows, np.int64)
        teacher_B = self._teacher_G[rows_B]
        if (teacher_B < 0).any():
            row = int(rows_B[np.argmax(teacher_B < 0)])
            raise SignalError(f"row {row} of the training table is covered by no teacher of the transfer set")
        chain = marginals = paths_BKT = scores_BK = None
        if self._emissions is not None:
            chain = self._chain(self._emissions, rows_B, teacher_B, device)
        if self._marginals is not None:
            stored_BTY, lengths_B = _gathered(self._marginals, rows_B, device)
            marginals = Chain(torch.log_softmax(stored_BTY, 2), lengths_B)
        if self._paths is not None and self._scores is not None:
            paths_BTK = torch.from_numpy(self._paths.gather(rows_B)[:, :, : self._k])
            paths_BKT = paths_BTK.to(device).transpose(1, 2).long()
            scores_BK = torch.from_numpy(self._scores.gather(rows_B)[:, 0, : self._k]).to(device)
        return TeacherBatch(chain, paths_BKT, scores_BK, marginals)

    def _chain(
        self, emissions: Ragged, rows_B: np.ndarray, teacher_B: np.ndarray, device: torch.device | str
    ) -> Chain:
        emissions_BTY, lengths_B = _gathered(emissions, rows_B, device)
        index_B = torch.from_numpy(teacher_B.astype(np.int64))
        parts = [part[index_B].to(device) for part in self._transitions] or [None] * 3
        return Chain(emissions_BTY, lengths_B, transitions=parts[0], start=parts[1], end=parts[2])


def _gathered(
    scores: Ragged, rows_B: np.ndarray, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores [B, T, Y] in float32, zero on padding, and lengths [B]."""
    lengths_B = torch.from_numpy(scores.length_G[rows_B].astype(np.int64))
    return torch.from_numpy(scores.gather(rows_B)).to(device).float(), lengths_B.to(device)


def _teacher_of_rows(covered: Sequence[np.ndarray]) -> np.ndarray:
    rows = 1 + max((int(np.max(covers, initial=-1)) for covers in covered), default=-1)
    teacher_G = np.full(rows, -1, np.int32)
    for teacher, covers in enumerate(covered):
        if len(np.unique(covers)) != len(covers) or (teacher_G[covers] >= 0).any():
            raise SignalError("two teachers of the transfer set cover one row of the training table")
        teacher_G[covers] = teacher
    return teacher_G


def _open_source(
    storage: Storage, source: Source, needs: Sequence[Need], *, verify: bool
) -> dict[str, SignalStore]:
    reads = {need.signal: need.k for need in to_read(needs, source.signals)}
    stores = {
        signal: SignalStore.open(signal_folder(storage, signal, source.signals[signal]), verify=verify)
        for signal in reads
        if signal != "kbest"
    }
    if "kbest" in reads:
        tokens = stores.get("emissions") or stores.get("token_marginals")
        manifest = None if tokens is None else tokens.manifest
        stores["kbest"] = open_kbest(
            storage, source.signals["kbest"], reads["kbest"], tokens=manifest, verify=verify
        )
    return stores


def _check(joined: Sequence[tuple[Source, np.ndarray]], stores: Sequence[Mapping[str, SignalStore]]) -> None:
    tags = {store.manifest.origin.tags for opened in stores for store in opened.values()}
    if len(tags) > 1:
        raise SignalError(
            f"the teachers of one transfer set must have the same tags, got {sorted(tags)} tags"
        )
    for (_, rows), opened in zip(joined, stores, strict=True):
        for signal, store in opened.items():
            if signal != "transitions" and len(rows) > store.manifest.rows:
                raise SignalError(
                    f"{store.folder.uri} covers {store.manifest.rows} sentences, fewer than {len(rows)}"
                )
