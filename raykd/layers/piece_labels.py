"""The labels of words from those of their pieces: of the first piece, or of every piece.

A classifier that labels every piece does so in BIOES: a name of one word and two pieces is B E. A word's tag is one
path over the n pieces of the word:

    O  =  O O … O O           E  =  I I … I E
    B  =  B I … I I           S  =  B I … I E, or S where n = 1
    I  =  I I … I I

The emission of a tag is the sum of the log-probabilities on its path, and of the transition biases inside the word.
Biases between words are the transitions of the chain. So the chain over words is that over pieces, restricted to spans
that begin and end with words: its K best labellings, its marginals and its scores are exact. What the restriction
leaves out is the probability of spans that cut a word (`left_out`).

A space may be a piece of its own, before numbers above all. It is O before a word with O, B or S, and I before one with
I or E. The bias from a span to the next across such a space is then that of spans that touch; all other biases are
those of the path. In IOB2 paths are O … O, B I … I and I … I, and there are no biases. Types that became one
(`teachers.labels`) are one type on paths too, and types that are named O have the biases of O.

Shapes: B batch, P pieces, T time (words), L labels of the checkpoint, N names, Y tags.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from typing_extensions import override

from raykd.metrics.bioes import OUTSIDE
from raykd.structures import Chain, LegalTransitions, log_partition
from raykd.structures.device import index_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from raykd.forms import TagSet
    from raykd.layers.label_map import LabelMap
    from raykd.layers.transition_biases import TransitionBiases

_PATHS = {"B": "BBIIO", "I": "IIIII", "E": "EIIEI", "S": "SBIEO"}
"""Letter of a word → letters of its only piece; of its first, its middle and its last of several; of a space before."""


@dataclass(frozen=True)
class Words:
    """The places of words among the pieces of a batch.

    Attributes:
        first_BT: place of the first piece of each word.
        end_B: place after the last piece of the last word of each sentence.
        lengths_B: words of each sentence.
        spaces_BP: True for pieces that are a space.
    """

    first_BT: Int[Tensor, "batch time"]
    end_B: Int[Tensor, " batch"]
    lengths_B: Int[Tensor, " batch"]
    spaces_BP: Bool[Tensor, "batch piece"]


@dataclass(frozen=True)
class _Path:
    """The names of the pieces for each name of a word, and the biases between them.

    Attributes:
        single: name of the only piece.
        first: name of the first of several pieces.
        middle: name of the pieces between the first and the last.
        last: name of the last of several pieces.
        space: name of a space before the word.
        further: bias for each piece after the first.
        closing: bias of several pieces beyond those.
        after_space: bias of a space before the word.
        opening: bias of a space before the first word of a sentence.
    """

    single: tuple[int, ...]
    first: tuple[int, ...]
    middle: tuple[int, ...]
    last: tuple[int, ...]
    space: tuple[int, ...]
    further: tuple[float, ...]
    closing: tuple[float, ...]
    after_space: tuple[float, ...]
    opening: tuple[float, ...]


class WordLabels(ABC):
    """The labels of words from those of their pieces.

    Attributes:
        transitions: scores between words, −∞ for illegal ones; None: none.
    """

    transitions: LegalTransitions | None

    @abstractmethod
    def emissions(
        self, logits_BPL: Float[Tensor, "batch piece label"], words: Words
    ) -> Float[Tensor, "batch time tag"]:
        """Return the emissions of the tags [B, T, Y]; their exponentials add up to 1 for every word.

        Args:
            logits_BPL: scores of the checkpoint's labels.
            words: places of the words.
        """

    def chain(
        self, emissions_BTY: Float[Tensor, "batch time tag"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        """Return the chain with the transitions between words.

        Args:
            emissions_BTY: emissions of the tags.
            lengths_B: words of each sentence.
        """
        chain = Chain(emissions_BTY, lengths_B)
        return chain if self.transitions is None else self.transitions.restrict(chain)


@dataclass(frozen=True)
class FirstPieceLabels(WordLabels):
    """A word, or a sentence, has the label of its first piece.

    Attributes:
        label_map: map from the checkpoint's labels to tags.
        transitions: none.
    """

    label_map: LabelMap
    transitions: LegalTransitions | None = None

    @override
    def emissions(self, logits_BPL: Tensor, words: Words) -> Tensor:
        # Not take_along_dim: torch.export would make its sizes constants.
        first_BT1 = words.first_BT[..., None]
        logits_BTL = logits_BPL.gather(1, first_BT1.expand(-1, -1, logits_BPL.shape[2]))
        return self.label_map.emissions(logits_BTL, words.lengths_B)


@dataclass(frozen=True)
class PieceLabels(WordLabels):
    """The tag of a word is one path over its pieces. Build it with `piece_labels`.

    Attributes:
        label_map: map from the checkpoint's labels to names, and from names to tags.
        transitions: scores between words, −∞ for illegal ones; None: none.
    """

    label_map: LabelMap
    transitions: LegalTransitions | None
    _path: _Path = field(repr=False)

    @override
    def emissions(self, logits_BPL: Tensor, words: Words) -> Tensor:
        scores_BTN = self._scores(self.label_map.names(logits_BPL), words)
        return self.label_map.tags(torch.log_softmax(scores_BTN, -1), words.lengths_B)

    def left_out(
        self, logits_BPL: Float[Tensor, "batch piece label"], words: Words
    ) -> Float[Tensor, " batch"]:
        """Return the probability of labellings with a span that cuts a word, among all legal labellings of the pieces.

        Only for labels in BIOES.

        Args:
            logits_BPL: scores of the checkpoint's labels.
            words: places of the words.
        """
        names_BPN = self.label_map.names(logits_BPL.double())
        start_B = words.first_BT[:, 0]
        count_B = words.end_B - start_B
        place_BP = start_B[:, None] + torch.arange(int(count_B.max()), device=start_B.device)
        pieces_BPN = names_BPN.take_along_dim(place_BP.clamp(max=names_BPN.shape[1] - 1)[..., None], 1)
        of_words = self.chain(self._scores(names_BPN, words), words.lengths_B)
        of_pieces = self.chain(pieces_BPN, count_B)
        return -torch.expm1(log_partition(of_words) - log_partition(of_pieces)).clamp(max=0)

    def _scores(self, log_BPN: Tensor, words: Words) -> Tensor:
        """Return the scores [B, T, N] of the names of words."""
        path, begin_BT, dtype = self._path, words.first_BT, log_BPN.dtype
        time, device = begin_BT.shape[1], log_BPN.device
        place_T, place_P = torch.arange(time, device=device), torch.arange(log_BPN.shape[1], device=device)
        next_BT = begin_BT.roll(-1, dims=1)
        next_BT = torch.where(place_T == (words.lengths_B - 1)[:, None], words.end_B[:, None], next_BT)
        last_BT = torch.maximum(next_BT - 1, begin_BT)  # no word of padding ends before it begins
        has_space_BT = words.spaces_BP.gather(1, begin_BT) & (last_BT > begin_BT)
        first_BT = begin_BT + has_space_BT.long()
        is_middle_BTP = (place_P > first_BT[..., None]) & (place_P < last_BT[..., None])

        def at(place_BT: Tensor, names: tuple[int, ...]) -> Tensor:
            # Not take_along_dim: torch.export would make its sizes constants.
            rows_BTN = log_BPN.gather(1, place_BT[..., None].expand(-1, -1, log_BPN.shape[2]))
            return rows_BTN.index_select(-1, index_tensor(names, device))

        middle_BPN = log_BPN.index_select(-1, index_tensor(path.middle, device))
        several_BTN = at(first_BT, path.first) + at(last_BT, path.last) + is_middle_BTP.to(dtype) @ middle_BPN
        further_N, closing_N, after_space_N, opening_N = (
            torch.tensor(biases, dtype=dtype, device=device)
            for biases in (path.further, path.closing, path.after_space, path.opening)
        )
        pieces_BT1 = (last_BT - first_BT)[..., None]
        several_BTN = several_BTN + pieces_BT1.to(dtype) * further_N + closing_N
        scores_BTN = torch.where(pieces_BT1 > 0, several_BTN, at(first_BT, path.single))
        before_TN = torch.where(place_T[:, None] == 0, opening_N, after_space_N)
        space_BTN = at(begin_BT, path.space) + before_TN
        return scores_BTN + torch.where(has_space_BT[..., None], space_BTN, 0.0)


def piece_labels(label_map: LabelMap, tag_set: TagSet, biases: TransitionBiases) -> PieceLabels:
    """Return the labels of words from those of their pieces.

    Args:
        label_map: map from the checkpoint's labels to the tags.
        tag_set: the tags.
        biases: biases of neighbouring pieces; not read where labels are in IOB2 or are no spans.
    """
    names = label_map.name_list(tag_set.tags)
    steps = zip(*(_step_names(name, names) for name in names), strict=True)
    single, first, middle, last, space = (tuple(names.index(name) for name in step) for step in steps)
    no_bias = (0.0,) * len(names)
    if label_map.scheme != "same" or not tag_set.form.bioes:
        path = _Path(single, first, middle, last, space, no_bias, no_bias, no_bias, no_bias)
        return PieceLabels(label_map, None, path)
    stay, start = biases.background_stay, biases.background_to_start
    to_continue, to_end = biases.inside_to_continue, biases.inside_to_end
    # What the chain adds between words is that of a word of one piece; these are the biases beyond it.
    further = {OUTSIDE: stay, "B": to_continue, "I": to_continue, "E": to_continue, "S": to_continue}
    closing = {"S": to_end - to_continue}
    after_space = {OUTSIDE: stay, "B": stay, "S": stay, "I": to_continue, "E": to_continue}
    opening = {OUTSIDE: stay, "B": start, "S": start}

    def of_names(by_letter: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(by_letter.get(name[0], 0.0) for name in names)

    path = _Path(
        single, first, middle, last, space,
        of_names(further), of_names(closing), of_names(after_space), of_names(opening),
    )  # fmt: skip
    return PieceLabels(label_map, _transitions(tag_set, biases), path)


def _step_names(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return what a name is on the pieces of a word, in the order of `_PATHS`; O and NOUN are the same on all."""
    letters = _PATHS.get(name[0], "") if name[1:2] == "-" else ""
    if not letters:
        return (name,) * 5
    if f"E{name[1:]}" not in names:  # IOB2 has no letter for the end
        letters = letters.replace("E", "I")
    return tuple(OUTSIDE if letter == OUTSIDE else f"{letter}{name[1:]}" for letter in letters)


def _transitions(tag_set: TagSet, biases: TransitionBiases) -> LegalTransitions | None:
    """Return the legal transitions between tags, with the biases as scores."""
    legal = tag_set.legal()
    if legal is None:
        return None
    by_letters = {
        "OO": biases.background_stay,
        **dict.fromkeys(("OB", "OS"), biases.background_to_start),
        **dict.fromkeys(("EO", "SO"), biases.end_to_background),
        **dict.fromkeys(("EB", "ES", "SB", "SS"), biases.end_to_start),
        **dict.fromkeys(("BI", "II"), biases.inside_to_continue),
        **dict.fromkeys(("BE", "IE"), biases.inside_to_end),
    }
    letters = [tag[0] for tag in tag_set.tags]
    scores_YY = torch.tensor([[by_letters.get(a + b, 0.0) for b in letters] for a in letters])
    return LegalTransitions(legal.transitions_YY + scores_YY, legal.start_Y, legal.end_Y)
