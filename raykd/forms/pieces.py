"""Hidden pieces of raw text, and the predictions of a masked language model for them.

Shapes: N sentences, B of a batch, M hidden pieces of the sentence with the most of them, C hidden pieces of a chunk,
V pieces of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, SupportsIndex

import numpy as np
from typing_extensions import override

from raykd.forms.form import LabelForm
from raykd.forms.form_types import CorpusFacts, ExportedModel, StringLists
from raykd.forms.targets import ModelOutput
from raykd.identity import PlainObject

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.forms.labels import Labels
    from raykd.forms.tag_set import TagSet
    from raykd.forms.targets import Targets


class TextWithHiddenPieces(Protocol):
    """A text with hidden pieces."""

    @property
    def size(self) -> int:
        """Number of pieces in the vocabulary."""
        ...

    def __len__(self) -> int: ...

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of hidden pieces per sentence, int64 [N]."""
        ...

    def hidden(self, indices: np.ndarray) -> np.ndarray:
        """Return the hidden pieces of the sentences at `indices`, int64 [B, M], padded with 0."""
        ...


@dataclass(frozen=True)
class PieceLabels:
    """The pieces of a vocabulary, as a masked language model predicts them."""

    size: int

    @property
    def tags(self) -> tuple[str, ...]:
        """An empty tuple: pieces are numbers only."""
        return ()

    def __len__(self) -> int:
        return self.size

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """Return the numbers as text."""
        return [str(int(number)) for number in numbers]

    def allowed_places(self) -> None:
        """None: any piece may be hidden anywhere."""

    def legal(self) -> None:
        """None: any piece may follow any other."""

    def to_plain(self) -> PlainObject:
        """Return a JSON-able object, read by `raykd.forms.labels_from`."""
        return {"scheme": PIECES.scheme, "size": self.size}


@dataclass(frozen=True)
class HiddenPieces:
    """The targets of a text: its hidden pieces, at least one in each sentence."""

    text: TextWithHiddenPieces

    def __len__(self) -> int:
        return len(self.text)

    @property
    def lengths(self) -> np.ndarray:
        """Number of hidden pieces per sentence, int64 [N]."""
        return self.text.lengths

    @property
    def labelled(self) -> np.ndarray:
        """True for all sentences, bool [N]."""
        return np.ones(len(self), bool)

    def gather(self, rows: np.ndarray) -> Targets:
        """Return the hidden pieces of the sentences at `rows`, in that order."""
        import torch

        from raykd.forms.targets import Targets

        return Targets(torch.from_numpy(self.text.hidden(rows)), torch.ones(len(rows), dtype=torch.bool))


class Guess(NamedTuple):
    """A model's predictions for the hidden pieces of one sentence."""

    log_p_M: np.ndarray
    """Log-probability of each hidden piece, in nats."""
    right_M: np.ndarray
    """True for each hidden piece that is the most probable one."""
    pieces: int
    """Number of pieces in the vocabulary."""


@dataclass(frozen=True)
class Pieces(LabelForm):
    """Hidden pieces of text; tags are not read."""

    name: ClassVar[str] = "pieces"
    scheme: ClassVar[str] = "pieces"
    reads: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = "hidden pieces"
    columns: ClassVar[Sequence[str]] = ("tokens", "language")
    calls: ClassVar[tuple[str, ...]] = ()
    labels_text: ClassVar[bool] = False
    hides_pieces: ClassVar[bool] = True

    @override
    def labels_from(self, plain: PlainObject) -> PieceLabels:
        return PieceLabels(plain["size"])

    @override
    def no_labels_reason(self, labels: Labels) -> str:
        return "a masked language model gives no labels; raykd export writes it for Transformers"

    @override
    def fault(self, corpus: CorpusFacts, task: str) -> None:
        """Accept any text."""

    @override
    def best_labellings(self, gold: HiddenPieces, output: ModelOutput, rows: np.ndarray) -> list[Guess]:
        """Return the probabilities of the hidden pieces of the sentences at `rows`."""
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

    @override
    def metric_inputs(
        self, gold: HiddenPieces, predicted: Sequence[Guess], tag_set: TagSet
    ) -> tuple[Sequence[Guess], Sequence[Guess]]:
        """Return the predictions twice: they contain the probabilities of the gold pieces, so no gold is needed."""
        return predicted, predicted

    @override
    def most_frequent(self, gold: StringLists) -> None:
        """Return None: words have no labels."""

    @override
    def exported_labels(self, model: ExportedModel) -> Collection[str]:
        return ()


def _guess(scores_CV: Tensor, gold_C: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities of gold pieces, and True for those that are the most probable, both [C]."""
    gold_scores_C = scores_CV.gather(1, gold_C[:, None])[:, 0]
    return (gold_scores_C - scores_CV.logsumexp(1)).double(), gold_scores_C >= scores_CV.amax(1)


PIECES = Pieces()
