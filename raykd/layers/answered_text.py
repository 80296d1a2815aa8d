"""The answers of an annotator as a text, and the annotator as a model: it returns what it answered.

Shapes: N sentences, B of a batch, K labellings, T labels of a sentence (one per word, or one), Y tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from raykd.corpora.answers import Answer, AnswerError, LabelNames
from raykd.corpora.answers.label_names import LeftOutError
from raykd.forms.tag_schemes import has_span_form
from raykd.layers.label_map import LabelMap
from raykd.layers.model import Model, Output
from raykd.metrics.bioes import OUTSIDE
from raykd.structures import Chain, WeightedPaths
from raykd.structures.device import to_device

if TYPE_CHECKING:
    from raykd.forms import TagSet


@dataclass(frozen=True)
class AnsweredBatch:
    """The answers about B sentences: labellings with log-weights, or the log-probabilities of tags.

    Attributes:
        lengths_B: Words of each sentence.
        label_lengths_B: Labels of each sentence.
        paths_BKT: Labellings, int64.
        log_weights_BK: Their log-weights; −∞ where there are fewer.
        log_probabilities_BTY: Log-probabilities of tags, in place of labellings.
    """

    lengths_B: Tensor
    label_lengths_B: Tensor
    paths_BKT: Tensor | None = None
    log_weights_BK: Tensor | None = None
    log_probabilities_BTY: Tensor | None = None

    def __len__(self) -> int:
        return len(self.lengths_B)

    def to(self, device: torch.device | str) -> AnsweredBatch:
        """Return the batch on a device."""
        return self.map(lambda part: to_device(part, device))

    def map(self, function: Callable[[Tensor], Tensor]) -> AnsweredBatch:
        """Return the batch with `function` applied to all tensors."""
        return AnsweredBatch(
            **{name: function(part) for name, part in vars(self).items() if part is not None}
        )


class AnsweredText:
    """N sentences with their answers, in the place of an encoded text."""

    features = None

    def __init__(
        self,
        lengths: Sequence[int],
        answers: Sequence[Answer],
        tag_set: TagSet,
        names: LabelNames,
        samples: int,
    ):
        """Prepare the text.

        Args:
            lengths: Words of each sentence.
            answers: The answer about each sentence.
            tag_set: The tags.
            names: Labels of the annotator as labels of the corpus.
            samples: K, the number of labellings of a sentence for which batches have room.

        Raises:
            AnswerError: A distribution has no probability for any tag of the corpus.
        """
        self.piece_lengths = np.asarray(lengths, np.int64)
        self.samples = samples
        numbers = {tag: number for number, tag in enumerate(tag_set.tags)}
        self._paths = [
            [
                (np.array([numbers[tag] for tag in tags]), weight)
                for tags, weight in answer.labellings[:samples]
            ]
            for answer in answers
        ]
        self._logs = [
            None if answer.probabilities is None else log_probabilities(answer.probabilities, tag_set, names)
            for answer in answers
        ]

    def __len__(self) -> int:
        return len(self.piece_lengths)

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence, int64 [N]."""
        return self.piece_lengths

    def gather(self, indices: np.ndarray) -> AnsweredBatch:
        """Return the answers about the sentences at `indices`, padded."""
        rows = np.asarray(indices, np.int64).tolist()
        lengths_B = torch.from_numpy(self.piece_lengths[rows])
        if any(self._logs[row] is not None for row in rows):
            logs = [self._logs[row] for row in rows]
            padded_BTY = torch.nn.utils.rnn.pad_sequence(
                [part for part in logs if part is not None], batch_first=True
            )
            label_lengths_B = torch.tensor([len(part) for part in logs if part is not None])
            return AnsweredBatch(lengths_B, label_lengths_B, log_probabilities_BTY=padded_BTY)
        label_lengths = [len(self._paths[row][0][0]) for row in rows]
        paths_BKT = np.zeros((len(rows), self.samples, max(label_lengths, default=0)), np.int64)
        weights_BK = np.full((len(rows), self.samples), -np.inf, np.float32)
        for place, row in enumerate(rows):
            for k, (tags, weight) in enumerate(self._paths[row]):
                paths_BKT[place, k, : len(tags)], weights_BK[place, k] = tags, weight
        return AnsweredBatch(
            lengths_B, torch.tensor(label_lengths), torch.from_numpy(paths_BKT), torch.from_numpy(weights_BK)
        )


class Annotator(Model):
    """An annotator as a model without parameters: its output is its answers."""

    def __init__(self, tags: int):
        super().__init__()
        self._tags = tags

    @override
    def forward(self, batch: AnsweredBatch, *, layers: Sequence[int] = ()) -> Output:  # pyright: ignore
        """Return the answers as distributions.

        Args:
            batch: The answers.
            layers: Must be empty.

        Raises:
            ValueError: Hidden states are asked for.
        """
        for layer in layers:
            self.hidden_size(layer)
        if batch.log_probabilities_BTY is not None:
            return Output(Chain(batch.log_probabilities_BTY, batch.label_lengths_B), legal=self.legal)
        assert batch.paths_BKT is not None
        assert batch.log_weights_BK is not None
        paths = WeightedPaths(batch.paths_BKT, batch.log_weights_BK, batch.label_lengths_B, self._tags)
        return Output(paths, legal=self.legal)


def log_probabilities(rows: Sequence[Mapping[str, float]], tag_set: TagSet, names: LabelNames) -> Tensor:
    """Return the log-probabilities of tags [T, Y] for one sentence; −∞ for impossible tags.

    IOB2 becomes BIOES exactly (`label_map.py`).

    Args:
        rows: For each word the probability of each of the annotator's tags.
        tag_set: The tags of the corpus.
        names: Types (or tags) of the annotator as those of the corpus; what is left out is renormalised.

    Raises:
        AnswerError: A word has no probability for any tag of the corpus.
        UnmappedError: A tag is none of the corpus.
    """
    spans = tag_set.form.bioes
    ends = any(has_span_form(tag, "ES") for row in rows for tag in row)
    types = tuple(tag_set.labels) if spans and not ends else ()
    iob2 = spans and not ends
    columns = (OUTSIDE, *(f"{letter}-{x}" for letter in "BI" for x in types)) if iob2 else tag_set.tags
    places = {tag: place for place, tag in enumerate(columns)}
    mass_TN = torch.zeros(len(rows), len(columns), dtype=torch.float64)
    for t, row in enumerate(rows):
        for tag, mass in row.items():
            try:
                mass_TN[t, places[_renamed(tag, names, spans=spans)]] += mass
            except LeftOutError:
                continue
    if bool((mass_TN.sum(1) == 0).any()):
        raise AnswerError("a word has no probability for any tag of the corpus")
    if not iob2:
        return (mass_TN / mass_TN.sum(1, keepdim=True)).log().float()
    converted = (OUTSIDE, *(f"{letter}-{x}" for letter in "BIES" for x in types))
    groups = tuple((place,) for place in range(len(columns)))
    order = tuple(converted.index(tag) for tag in tag_set.tags)
    emissions_1TY = LabelMap(groups, "iob2", types, order).emissions(
        mass_TN.log()[None], torch.tensor([len(rows)])
    )
    return emissions_1TY[0].float()


def _renamed(tag: str, names: LabelNames, *, spans: bool) -> str:
    """A tag with the type, or the name, of the corpus."""
    if not spans or not has_span_form(tag):
        return OUTSIDE if tag == OUTSIDE else names.rename(tag)
    name = names.rename(tag[2:])
    return OUTSIDE if name == OUTSIDE else f"{tag[0]}-{name}"
