"""Trees of intents and slots, as task-oriented semantic parsing predicts them, and the steps that write them.

    [IN:CREATE_ALARM [SL:DATE_TIME for 8 am ] [SL:ALARM_NAME [IN:GET_NAME [SL:NAME work ] ] ] ]

A tree has the decoupled form of mTOP (Li et al. 2021). Its root is an intent. Below an intent there are slots; below
a slot there are words of the sentence or further intents. No slot is empty. Words outside of all slots are not in the
tree. A word is given by its place in the sentence, from 0; the artificial word in front of the utterance counts.

A tree is written in steps, from left to right: an opening bracket (`IN:CREATE_ALARM`), a closing one (`]`), or a word
(`@3`). The bracket that closes the root ends the sequence, so no end mark is needed.

Shapes: N sentences, B of a batch, S steps of the longest tree of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, SupportsIndex

import numpy as np
import pyarrow as pa
from typing_extensions import override

from raykd.forms.form import LabelForm
from raykd.forms.form_types import CorpusFacts, LabelledSentence, StringLists
from raykd.forms.ragged import Ragged, RaggedBlocks, offsets_from_lengths
from raykd.forms.tag_set import TagSet
from raykd.forms.targets import LabelColumn, Targets
from raykd.forms.utterance_marks import INTENT, is_intent
from raykd.metrics.bioes import read_spans
from raykd.metrics.brackets import Parse

if TYPE_CHECKING:
    from raykd.forms.labels import Labels

CLOSE, WORD = "]", "@"
"""The step that closes the last bracket, and the prefix of a word's step, before its place from 0."""
IN, SL = "IN:", "SL:"
"""Prefixes of the labels of intents and slots, equally long."""
OPEN = "["
"""Sign in front of an opening step where a tree is written out."""


class Node(NamedTuple):
    """An intent or a slot, with its children."""

    label: str
    """The label with its prefix, `IN:` or `SL:`."""
    children: tuple[Node | int, ...] = ()
    """Nodes, and words by their places."""


def steps_from_tree(tree: Node) -> list[str]:
    """Return the steps of a tree.

    Args:
        tree: Root of the tree.
    """
    return [*_steps(tree)]


def _steps(tree: Node) -> Iterator[str]:
    yield tree.label
    for child in tree.children:
        if isinstance(child, Node):
            yield from _steps(child)
        else:
            yield f"{WORD}{child}"
    yield CLOSE


def tree_from_steps(steps: Sequence[str], words: int) -> Node | None:
    """Return the tree of a sequence of steps, or None where the steps write none.

    Args:
        steps: Steps, as `steps_from_tree` writes them.
        words: Number of words of the sentence.
    """
    stack: list[tuple[str, list[Node | int]]] = []  # label and children of each open node
    for place, step in enumerate(steps):
        # Prefix of the innermost open node. The root counts as below a slot, as it must be an intent.
        above = stack[-1][0][: len(IN)] if stack else SL
        if step == CLOSE:
            if not stack or (above == SL and not stack[-1][1]):
                return None
            label, children = stack.pop()
            tree = Node(label, tuple(children))
            if not stack:
                return tree if place + 1 == len(steps) else None
            stack[-1][1].append(tree)
        elif step.startswith(WORD):
            word = _word_place(step)
            if not stack or above == IN or word >= words:
                return None
            stack[-1][1].append(word)
        elif step.startswith(above):
            return None
        else:
            stack.append((step, []))
    return None


def bracket_text(steps: Sequence[str], words: Sequence[str]) -> str:
    """Return steps written out with words, as in files: `[IN:GET_WEATHER [SL:LOCATION boston ] ]`.

    The steps need not write a tree. A place without a word stays as it is, `@40`.

    Args:
        steps: Steps of one sentence.
        words: Words of the sentence, the artificial one in front included.
    """
    return " ".join(_step_text(step, words) for step in steps)


def _step_text(step: str, words: Sequence[str]) -> str:
    if step.startswith(WORD):
        place = _word_place(step)
        return words[place] if place < len(words) else step
    return step if step == CLOSE else OPEN + step


def _word_place(step: str) -> int:
    return int(step.removeprefix(WORD))


def tree_from_slots(tags: Sequence[str]) -> Node:
    """Return the tree of an utterance labelled with an intent and slots.

    Args:
        tags: The intent, then the BIOES slots of the words.
    """
    slots = (Node(SL + kind, tuple(range(start + 1, end + 1))) for start, end, kind in read_spans(tags[1:]))
    return Node(IN + tags[0].removeprefix(INTENT), tuple(slots))


def step_tags_from_slots(tag_set: TagSet) -> TagSet:
    """Return the tag set for the trees of utterances with the intents and slots of `tag_set`."""
    return STEPS.tag_set(
        IN + label.removeprefix(INTENT) if is_intent(label) else SL + label for label in tag_set.labels
    )


@dataclass(frozen=True)
class StepColumn:
    """The steps of N sentences, by their numbers in `labels`; a sentence without a tree has an empty row."""

    steps: RaggedBlocks
    labelled: np.ndarray
    """Sentences with a tree, bool [N]."""
    tokens: pa.ChunkedArray
    labels: TagSet

    @classmethod
    def from_table(cls, table: pa.Table, tag_set: TagSet) -> StepColumn:
        """Return the trees of a corpus part.

        Args:
            table: Corpus part with the columns `tokens` and `tags`.
            tag_set: Tags of the part: steps, or intents and slots that are converted to steps.
        """
        tags = LabelColumn.from_table(table)
        labels = STEPS.predicted_tags(tag_set)
        if labels is tag_set:
            return cls(tags.tags, tags.labelled, table["tokens"], tag_set)
        rows = [
            labels.encode(steps_from_tree(tree_from_slots(sentence_tags)))
            if sentence_tags
            else np.zeros(0, np.int16)
            for sentence_tags in tags.lists(tag_set.tags)
        ]
        values = np.concatenate([np.zeros(0, np.int16), *rows])
        steps = RaggedBlocks(
            (Ragged(values, offsets_from_lengths(np.array([len(row) for row in rows], np.int64))),)
        )
        return cls(steps, tags.labelled, table["tokens"], labels)

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Number of steps per sentence, int64 [N]; 0 for a sentence without a tree."""
        return self.steps.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """Return the steps of the sentences at `rows`, in that order."""
        steps_BS, _ = self.steps.pad(rows)
        import torch

        return Targets(torch.from_numpy(steps_BS), torch.from_numpy(self.labelled[rows]))

    def lists(self) -> Iterator[list[str]]:
        """Return the steps of all sentences."""
        for block in self.steps.blocks:
            if len(block):
                yield from (
                    self.labels.decode(numbers) for numbers in np.split(block.values, block.offsets[1:-1])
                )

    def parses(self, steps: Iterable[Sequence[str]]) -> list[Parse]:
        """Return steps written out with the words of their sentences.

        Args:
            steps: Gold or predicted steps of each of the N sentences.
        """
        texts = (words for chunk in self.tokens.chunks for words in chunk.to_pylist())
        return [
            Parse(
                tuple(bracket_text(sentence_steps, words).split(" ")),
                tree_from_steps(sentence_steps, len(words)) is not None,
            )
            for sentence_steps, words in zip(steps, texts, strict=True)
        ]


@dataclass(frozen=True)
class Steps(LabelForm):
    """Trees of intents and slots. The step of a word, `@5`, has the number of tags plus 5."""

    name: ClassVar[str] = "steps"
    scheme: ClassVar[str] = "parse"
    reads: ClassVar[tuple[str, ...]] = ("parse",)
    title: ClassVar[str] = "trees of intents and slots"
    words_in_front: ClassVar[int] = 1
    calls: ClassVar[tuple[str, ...]] = ("trees",)
    generates: ClassVar[bool] = True

    @override
    def label_of(self, tag: str) -> str | None:
        return None if tag == CLOSE else tag

    @override
    def labels_in(self, tags: Iterable[str], scheme: str) -> set[str]:
        return {tag for tag in tags if tag != CLOSE and not tag.startswith(WORD)}

    @override
    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """Return the tag set: the closing bracket first, then the opening ones in alphabetical order."""
        return TagSet((CLOSE, *sorted(set(labels))), self)

    @override
    def encode(self, tags: Sequence[str], numbers: Mapping[str, int]) -> np.ndarray:
        count = len(numbers)
        step_numbers = (
            count + _word_place(step) if step.startswith(WORD) else numbers[step] for step in tags
        )
        return np.fromiter(step_numbers, np.int16, len(tags))

    @override
    def decode(self, numbers: Iterable[SupportsIndex], tags: Sequence[str]) -> list[str]:
        steps = (int(number) for number in numbers)
        return [tags[step] if step < len(tags) else f"{WORD}{step - len(tags)}" for step in steps]

    @override
    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        utterance = sentence.tokens[1:]
        more = " …" if len(utterance) > words else ""
        return f"{' '.join(utterance[:words])}{more}\n{bracket_text(sentence.tags, sentence.tokens)}"

    @override
    def fault(self, corpus: CorpusFacts, task: str) -> tuple[str, str] | None:
        corpus_form = corpus.tag_set.form
        if corpus_form == self or any(map(is_intent, corpus.tag_set.tags)):
            return None
        problem = f"its tags are {corpus_form.scheme}, and task {task!r} needs trees, or intents and slots"
        return problem, "set corpus.source: mtop, atis, xsid or multiatis"

    @override
    def no_labels_reason(self, labels: Labels) -> str:
        return "it generates trees of intents and slots, not labels; call trees"

    @override
    def predicted_tags(self, tag_set: TagSet) -> TagSet:
        """Return the generated tags beside words; intents and slots become those of trees."""
        return tag_set if tag_set.form == self else step_tags_from_slots(tag_set)

    @override
    def targets(self, table: pa.Table, *, pos: Sequence[str], labels: TagSet) -> StepColumn:
        return StepColumn.from_table(table, labels)

    @override
    def metric_inputs(
        self, gold: StepColumn, predicted: Sequence[np.ndarray], tag_set: TagSet
    ) -> tuple[list[Parse], list[Parse]]:
        """Return the trees written out with words; the corpus' `tag_set` is not read."""
        decoded = (gold.labels.decode(steps) for steps in predicted)
        return gold.parses(gold.lists()), gold.parses(decoded)

    @override
    def most_frequent(self, gold: StringLists) -> None:
        """Return None: a tree is not a list of labels."""


def bracket_changes(labels: Labels) -> np.ndarray:
    """Return the changes to the number of open brackets, int64 [Y]: 1, or −1 for the closing bracket.

    Args:
        labels: Labels of a form of steps, Y of them.
    """
    return np.array([-1 if tag == CLOSE else 1 for tag in labels.tags])


STEPS = Steps()
