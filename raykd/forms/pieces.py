"""Pieces that are hidden in raw text, and what a masked language model says of them.

Shapes: N sentences, B of a batch, M hidden pieces of the sentence with the most of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, SupportsIndex

import numpy as np

from raykd.forms.form import CorpusFacts, ExportedModel, LabelForm, StringLists
from raykd.forms.targets import ModelOutput
from raykd.identity import PlainObject

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.forms.form import TagSet
    from raykd.forms.labels import Labels
    from raykd.forms.targets import Targets


class HidingText(Protocol):
    """A text some of whose pieces are hidden."""

    @property
    def size(self) -> int:
        """Pieces of its vocabulary."""
        ...

    def __len__(self) -> int: ...

    @cached_property
    def lengths(self) -> np.ndarray:
        """Hidden pieces of each sentence, int64 [N]."""
        ...

    def hidden(self, indices: np.ndarray) -> np.ndarray:
        """Those of the sentences at `indices`, int64 [B, M], 0 behind them."""
        ...


@dataclass(frozen=True)
class PieceLabels:
    """The pieces of a vocabulary, which a masked language model predicts."""

    size: int

    @property
    def tags(self) -> tuple[str, ...]:
        """None: pieces have numbers alone."""
        return ()

    def __len__(self) -> int:
        return self.size

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """The numbers themselves, as text."""
        return [str(int(number)) for number in numbers]

    def allowed_places(self) -> None:
        """Any piece may be hidden anywhere."""

    def legal(self) -> None:
        """Any piece may follow any other."""

    def to_plain(self) -> PlainObject:
        """JSON-able form."""
        return {"scheme": PIECES.scheme, "size": self.size}


@dataclass(frozen=True)
class HiddenPieces:
    """The targets of a text: the pieces that it hides. Every sentence has some."""

    text: HidingText

    def __len__(self) -> int:
        return len(self.text)

    @property
    def lengths(self) -> np.ndarray:
        """Of each sentence, int64 [N]."""
        return self.text.lengths

    @property
    def labelled(self) -> np.ndarray:
        """All sentences, bool [N]."""
        return np.ones(len(self), bool)

    def gather(self, rows: np.ndarray) -> Targets:
        """The hidden pieces of the sentences at `rows`, in that order."""
        import torch

        from raykd.forms.targets import Targets

        return Targets(torch.from_numpy(self.text.hidden(rows)), torch.ones(len(rows), dtype=torch.bool))


class Guess(NamedTuple):
    """What a model says of the hidden pieces of one sentence."""

    log_p_M: np.ndarray
    """Of each its log-probability, in nats."""
    right_M: np.ndarray
    """Whether it is the most probable one."""
    pieces: int
    """Of the vocabulary."""


@dataclass(frozen=True)
class Pieces(LabelForm):
    """Hidden pieces; tags are not read."""

    name: ClassVar[str] = "pieces"
    scheme: ClassVar[str] = "pieces"
    reads: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = "hidden pieces"
    columns: ClassVar[Sequence[str]] = ("tokens", "language")
    calls: ClassVar[tuple[str, ...]] = ()
    labels_text: ClassVar[bool] = False
    hides_pieces: ClassVar[bool] = True

    def labels_from(self, plain: PlainObject) -> PieceLabels:
        return PieceLabels(plain["size"])

    def no_labels_reason(self, labels: Labels) -> str:
        return "a masked language model gives no labels; raykd export writes it for Transformers"

    def fault(self, corpus: CorpusFacts, task: str) -> None:
        """Any text will do."""

    def best_labellings(self, gold: HiddenPieces, output: ModelOutput, rows: np.ndarray) -> list[Guess]:
        """How probable the hidden pieces of the sentences at `rows` are."""
        import torch

        from raykd.structures import chunked_scores

        chain: Any = output.distribution
        gold_BM = gold.gather(rows).tags_BT.to(chain.device)
        guesses = [_guess(*pair) for pair in chunked_scores(chain, gold_BM)]
        log_p_BM, right_BM = (
            torch.cat(parts).view_as(gold_BM).cpu().numpy() for parts in zip(*guesses, strict=True)
        )
        lengths_B = chain.lengths_B.tolist()
        return [
            Guess(log_p_BM[row, :length], right_BM[row, :length], gold.text.size)
            for row, length in enumerate(lengths_B)
        ]

    def metric_inputs(
        self, gold: HiddenPieces, predicted: Sequence[Guess], tag_set: TagSet
    ) -> tuple[Sequence[Guess], Sequence[Guess]]:
        """What is predicted says itself how good it is."""
        return predicted, predicted

    def most_frequent(self, gold: StringLists) -> None:
        """Words have no labels."""

    def exported_labels(self, model: ExportedModel) -> Collection[str]:
        return ()


def _guess(scores_NV: Tensor, gold_N: Tensor) -> tuple[Tensor, Tensor]:
    own_N = scores_NV.gather(1, gold_N[:, None])[:, 0]
    return (own_N - scores_NV.logsumexp(1)).double(), own_N >= scores_NV.amax(1)


PIECES = Pieces()
