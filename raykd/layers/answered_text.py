"""The answers of an annotator as a text, and the annotator as a model: it returns what it answered.

Shapes: N sentences, B of a batch, K labellings, T labels of a sentence (one per word, or one), Y tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from raykd.corpora.answers import Answer, AnswerError, LabelNames
from raykd.corpora.answers.label_names import LeftOutError
from raykd.layers.label_map import LabelMap
from raykd.layers.model import Model, Output
from raykd.metrics.bioes import OUTSIDE
from raykd.structures import Chain, WeightedPaths
from raykd.structures.device import to_device
from raykd.structures.labelled_arcs import FORBIDDEN

if TYPE_CHECKING:
    from raykd.forms import TagSet


@dataclass(frozen=True)
class AnsweredBatch:
    """The answers about B sentences: labellings with log-weights, log-probabilities of tags, or trees.

    Attributes:
        lengths_B: Words of each sentence.
        label_lengths_B: Labels of each sentence.
        paths_BKT: Labellings, int64.
        log_weights_BK: Their log-weights; −∞ where there are fewer.
        log_probabilities_BTY: Log-probabilities of tags, in place of labellings.
        arcs_BT: Trees in place of labellings: head · R + relation of each word, of R relations.
    """

    lengths_B: Tensor
    label_lengths_B: Tensor
    paths_BKT: Tensor | None = None
    log_weights_BK: Tensor | None = None
    log_probabilities_BTY: Tensor | None = None
    arcs_BT: Tensor | None = None

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


class EncodedAnswer(NamedTuple):
    """The usable answer about one sentence, in the numbers of tags.

    Attributes:
        paths: Labellings, those of the largest weight first; int64 [T] each.
        log_weights: Their log-weights.
        log_probabilities_TY: Log-probabilities of tags in place of labellings.
        is_tree: True if the one labelling is of arcs: head · R + relation of each word.
    """

    paths: Sequence[np.ndarray]
    log_weights: Sequence[float]
    log_probabilities_TY: Tensor | None = None
    is_tree: bool = False

    @property
    def labels(self) -> int:
        """Number of labels of the sentence."""
        return len(self.paths[0] if self.log_probabilities_TY is None else self.log_probabilities_TY)

    def log_marginals(self, tags: int) -> Tensor:
        """Return the logarithm of the probability of each tag at each label [T, Y], −∞ for those that never occur.

        Args:
            tags: Number of tags Y.
        """
        if self.log_probabilities_TY is not None:
            return self.log_probabilities_TY.double()
        weights_K = torch.softmax(torch.tensor(self.log_weights, dtype=torch.float64), 0)
        paths_KT = torch.from_numpy(np.stack(self.paths))
        chosen_KTY = torch.nn.functional.one_hot(paths_KT, tags)
        return (weights_K[:, None, None] * chosen_KTY).sum(0).log()


class AnsweredText:
    """N sentences with their answers, in the place of an encoded text."""

    features = None

    def __init__(self, lengths: Sequence[int], answers: Sequence[EncodedAnswer], *, samples: int):
        """Prepare the text.

        Args:
            lengths: Words of each sentence.
            answers: The answer about each sentence, all labellings or all distributions.
            samples: K, the number of labellings of a sentence for which batches have room.
        """
        self.piece_lengths = np.asarray(lengths, np.int64)
        self._answers, self._samples = answers, samples

    def __len__(self) -> int:
        return len(self.piece_lengths)

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence, int64 [N]."""
        return self.piece_lengths

    def gather(self, indices: np.ndarray) -> AnsweredBatch:
        """Return the answers about the sentences at `indices`, padded."""
        answers = [self._answers[row] for row in np.asarray(indices, np.int64).tolist()]
        lengths_B = torch.from_numpy(self.piece_lengths[indices])
        label_lengths_B = torch.tensor([answer.labels for answer in answers])
        logs = [answer.log_probabilities_TY for answer in answers if answer.log_probabilities_TY is not None]
        if logs:
            padded_BTY = torch.nn.utils.rnn.pad_sequence(logs, batch_first=True)
            return AnsweredBatch(lengths_B, label_lengths_B, log_probabilities_BTY=padded_BTY)
        if any(answer.is_tree for answer in answers):
            trees = [torch.from_numpy(answer.paths[0]) for answer in answers]
            arcs_BT = torch.nn.utils.rnn.pad_sequence(trees, batch_first=True)
            return AnsweredBatch(lengths_B, label_lengths_B, arcs_BT=arcs_BT)
        paths_BKT = np.zeros((len(answers), self._samples, int(label_lengths_B.max())), np.int64)
        weights_BK = np.full((len(answers), self._samples), -np.inf, np.float32)
        for place, answer in enumerate(answers):
            weights_BK[place, : len(answer.paths)] = answer.log_weights
            for k, path in enumerate(answer.paths):
                paths_BKT[place, k, : len(path)] = path
        return AnsweredBatch(
            lengths_B, label_lengths_B, torch.from_numpy(paths_BKT), torch.from_numpy(weights_BK)
        )


class Annotator(Model):
    """An annotator as a model without parameters: its output is its answers."""

    def __init__(self, tags: int):
        """Prepare the model.

        Args:
            tags: Number of tags Y; of trees, of relations R.
        """
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
        if batch.arcs_BT is not None:
            scores_BTY = torch.full(
                (*batch.arcs_BT.shape, (batch.arcs_BT.shape[1] + 1) * self._tags), FORBIDDEN
            )
            scores_BTY = scores_BTY.to(batch.arcs_BT.device).scatter(2, batch.arcs_BT[..., None], 0.0)
            return Output(Chain(scores_BTY, batch.label_lengths_B))
        assert batch.paths_BKT is not None
        assert batch.log_weights_BK is not None
        paths = WeightedPaths(batch.paths_BKT, batch.log_weights_BK, batch.label_lengths_B, self._tags)
        return Output(paths, legal=self.legal)


def encode_answer(answer: Answer, tag_set: TagSet, names: LabelNames, *, bioes: bool) -> EncodedAnswer:
    """Return a usable answer in the numbers of tags.

    Args:
        answer: The answer about one sentence.
        tag_set: The tags of the corpus.
        names: Labels of the annotator as labels of the corpus.
        bioes: True if the annotator's probabilities are over BIOES tags, false for IOB2.

    Raises:
        AnswerError: As of `log_probabilities`.
    """
    if answer.probabilities is not None:
        return EncodedAnswer((), (), log_probabilities(answer.probabilities, tag_set, names, bioes=bioes))
    numbers = {tag: number for number, tag in enumerate(tag_set.tags)}
    if any(labelling.heads for labelling in answer.labellings):
        (tree,) = answer.labellings
        relations_T = np.array([numbers[tag] for tag in tree.tags])
        return EncodedAnswer([np.array(tree.heads) * len(tag_set) + relations_T], [0.0], is_tree=True)
    paths = [np.array([numbers[tag] for tag in labelling.tags]) for labelling in answer.labellings]
    return EncodedAnswer(paths, [labelling.log_weight for labelling in answer.labellings])


def log_probabilities(
    rows: Sequence[Mapping[str, float]], tag_set: TagSet, names: LabelNames, *, bioes: bool
) -> Tensor:
    """Return the log-probabilities of tags [T, Y] for one sentence; −∞ for impossible tags.

    IOB2 becomes BIOES exactly (`label_map.py`).

    Args:
        rows: For each word the probability of each of the annotator's tags.
        tag_set: The tags of the corpus.
        names: Types (or tags) of the annotator as those of the corpus; what is left out is renormalised.
        bioes: True if the rows are over BIOES tags, false for IOB2; without effect on flat tags.

    Raises:
        UnmappedError: A label is none of the corpus.
        AnswerError: A tag is of neither scheme, or a word has no probability for any tag of the corpus.
    """
    spans = tag_set.form.bioes
    iob2, types = spans and not bioes, tuple(tag_set.labels)
    columns = (OUTSIDE, *(f"{letter}-{x}" for letter in "BI" for x in types)) if iob2 else tag_set.tags
    places = {tag: place for place, tag in enumerate(columns)}
    mass_TN = torch.zeros(len(rows), len(columns), dtype=torch.float64)
    for t, row in enumerate(rows):
        for tag, mass in row.items():
            try:
                mass_TN[t, places[names.rename_tag(tag, spans=spans)]] += mass
            except LeftOutError:
                continue
            except KeyError:
                raise AnswerError(f"{tag!r} is no tag of {'IOB2' if iob2 else 'BIOES'}") from None
    if bool((mass_TN.sum(1) == 0).any()):
        raise AnswerError("a word has no probability for any tag of the corpus")
    if not iob2:
        return (mass_TN / mass_TN.sum(1, keepdim=True)).log().float()
    converted = (OUTSIDE, *(f"{letter}-{x}" for letter in "BIES" for x in types))
    groups = tuple((place,) for place in range(len(columns)))
    label_map = LabelMap(groups, "iob2", types, tuple(converted.index(tag) for tag in tag_set.tags))
    return label_map.emissions(mass_TN.log()[None], torch.tensor([len(rows)]))[0].float()
