"""Masked language modelling: the pieces that are hidden in raw text, scored by perplexity.

The score is 1 − ln(perplexity) / ln(V) of a vocabulary of V pieces: 0 where every piece is as probable as any other,
below it where a model is worse than that, 1 where each is certain. So larger is better, as of every other score, and
models of one vocabulary stand in the order of their perplexities, which are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from raykd.forms import PIECES, LabelForm
from raykd.metrics import score_beside

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.corpora.corpus import Corpus
    from raykd.corpora.encoding import EncodedText
    from raykd.corpora.masking import MaskedPieces, MaskedText
    from raykd.corpora.pieces import Vocabulary
    from raykd.figures.results import Group, Score
    from raykd.layers.model import Output


class Guess(NamedTuple):
    """What a model says of the hidden pieces of one sentence."""

    log_p_M: np.ndarray
    """Of each its log-probability, in nats."""
    right_M: np.ndarray
    """Whether it is the most probable one."""


@dataclass(frozen=True, kw_only=True)
class MaskedLMTask:
    """Predicts hidden pieces; tags are not read."""

    name: str = "masked_lm"
    score_name: str = "mlm_score"
    score_label: str = "MLM score"
    unit: Literal["word"] = "word"
    scheme: Literal["flat"] = "flat"
    pairs: ClassVar[bool] = False
    form: ClassVar[LabelForm] = PIECES
    structure: ClassVar[Literal["pieces"]] = "pieces"
    columns: ClassVar[Sequence[str]] = ("tokens", "language")
    """The columns of a corpus part that it reads."""

    def check(self, corpus: Corpus, where: str) -> None:
        """Any text will do."""

    def masked(self, text: EncodedText, vocabulary: Vocabulary) -> tuple[MaskedText, MaskedPieces]:
        """The text with pieces hidden, and these.

        Raises ValueError where the vocabulary has no mask.
        """
        from raykd.corpora.masking import MaskedPieces, MaskedText

        hidden = MaskedText(text, vocabulary.special, vocabulary.size)
        return hidden, MaskedPieces(hidden)

    def decode(self, gold: MaskedPieces, output: Output, rows: np.ndarray) -> list[Guess]:
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
        return [Guess(log_p_BM[row, :length], right_BM[row, :length]) for row, length in enumerate(lengths_B)]

    def score(
        self,
        gold: MaskedPieces,
        predicted: Sequence[Guess],
        *,
        tag_set: object,
        languages: Sequence[str],
        targets: Collection[str] = (),
    ) -> Mapping[Group, Score]:
        """The score over source languages and, where there are any, over the `targets`; beside it the
        perplexity, and the share of pieces that are guessed."""
        own = partial(_score, pieces=gold.text.size)
        return score_beside(own, BESIDE, predicted, predicted, languages, targets=targets)


def _guess(scores_NV: Tensor, gold_N: Tensor) -> tuple[Tensor, Tensor]:
    own_N = scores_NV.gather(1, gold_N[:, None])[:, 0]
    return (own_N - scores_NV.logsumexp(1)).double(), own_N >= scores_NV.amax(1)


def _score(_: Sequence[Guess], predicted: Sequence[Guess], *, pieces: int) -> float:
    mean = np.concatenate([guess.log_p_M for guess in predicted]).mean()
    return float(1 + mean / np.log(pieces))


def _perplexity(_: Sequence[Guess], predicted: Sequence[Guess]) -> float:
    return float(np.exp(-np.concatenate([guess.log_p_M for guess in predicted]).mean()))


def _right(_: Sequence[Guess], predicted: Sequence[Guess]) -> float:
    return float(np.concatenate([guess.right_M for guess in predicted]).mean())


BESIDE: Mapping[str, Callable[..., float]] = MappingProxyType({"perplexity": _perplexity, "guessed": _right})
MASKED_LM = MaskedLMTask()
