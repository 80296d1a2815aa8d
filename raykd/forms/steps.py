"""Trees of intents and slots, as task-oriented semantic parsing predicts them, and the steps that write them.

    [IN:CREATE_ALARM [SL:DATE_TIME for 8 am ] [SL:ALARM_NAME [IN:GET_NAME [SL:NAME work ] ] ] ]

A tree in the decoupled form of mTOP (Li et al. 2021): its root is an intent, below an intent there are slots, below a
slot there are words of the sentence or further intents, and no slot is empty. What a sentence says outside of its slots
is not in the tree. A word is its place in the sentence, from 0; the word in front that stands for the utterance is
counted.

A tree is written step by step, from left to right: what opens a bracket (`IN:CREATE_ALARM`), what closes one (`]`), a
word (`@3`). A sequence of steps is complete with the bracket that closes its root, so nothing has to mark its end.

Shapes: N sentences, B of a batch, S steps of the longest tree of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, SupportsIndex

import numpy as np
import pyarrow as pa

from raykd.forms.form import CorpusFacts, LabelForm, LabelledSentence, StringLists, TagSet
from raykd.forms.marks import INTENT, is_intent
from raykd.forms.ragged import Ragged, RaggedBlocks, offsets_from_lengths
from raykd.forms.targets import LabelColumn, Targets
from raykd.metrics.bioes import read_spans
from raykd.metrics.brackets import Parse

if TYPE_CHECKING:
    from raykd.forms.labels import Labels

CLOSE, WORD = "]", "@"
"""Steps of a tree: what closes the last bracket; in front of a word's place, from 0."""
IN, SL = "IN:", "SL:"
OPEN = "["


class Node(NamedTuple):
    """An intent or a slot, with what is below it."""

    label: str
    """With `IN:` or `SL:` in front."""
    children: tuple[Node | int, ...] = ()
    """Nodes, and words by their places."""


def steps_from_tree(tree: Node) -> list[str]:
    """The steps that write `tree`."""
    return [*_steps(tree)]


def _steps(tree: Node) -> Iterator[str]:
    yield tree.label
    for each in tree.children:
        if isinstance(each, Node):
            yield from _steps(each)
        else:
            yield f"{WORD}{each}"
    yield CLOSE


def tree_from_steps(steps: Sequence[str], words: int) -> Node | None:
    """The tree that `steps` write of a sentence of so many `words`; None where they write none."""
    stack: list[tuple[str, list[Node | int]]] = []
    for place, step in enumerate(steps):
        above = (
            stack[-1][0][: len(IN)] if stack else SL
        )  # intents stand where words do not: at the root, below slots
        if step == CLOSE:
            if not stack or (above == SL and not stack[-1][1]):
                return None
            label, below = stack.pop()
            tree = Node(label, tuple(below))
            if not stack:
                return tree if place + 1 == len(steps) else None
            stack[-1][1].append(tree)
        elif step.startswith(WORD):
            number = int(step[len(WORD) :])
            if not stack or above == IN or number >= words:
                return None
            stack[-1][1].append(number)
        elif step.startswith(above):
            return None
        else:
            stack.append((step, []))
    return None


def bracket_text(steps: Sequence[str], words: Sequence[str]) -> str:
    """Steps with the words themselves, as files have them: `[IN:GET_WEATHER [SL:LOCATION boston ] ]`. They need not
    write a tree; a word that the sentence does not have stays `@40`.
    """
    return " ".join(_step_text(step, words) for step in steps)


def _step_text(step: str, words: Sequence[str]) -> str:
    if step.startswith(WORD):
        number = int(step[len(WORD) :])
        return words[number] if number < len(words) else step
    return step if step == CLOSE else OPEN + step


def tree_from_slots(tags: Sequence[str]) -> Node:
    """The tree of an utterance by its tags, of which the first is the intent and the others, in BIOES, are the slots of
    its words.
    """
    slots = (Node(SL + kind, tuple(range(start + 1, end + 1))) for start, end, kind in read_spans(tags[1:]))
    return Node(IN + tags[0].removeprefix(INTENT), tuple(slots))


def step_tags_from_slots(tag_set: TagSet) -> TagSet:
    """The tag set of the trees of utterances whose tags are `tag_set`."""
    return STEPS.tag_set(
        IN + label.removeprefix(INTENT) if is_intent(label) else SL + label for label in tag_set.labels
    )


@dataclass(frozen=True)
class StepColumn:
    """The steps of N sentences, by their numbers in `labels`; a sentence without a tree has none."""

    steps: RaggedBlocks
    labelled: np.ndarray
    """Which sentences have a tree, bool [N]."""
    tokens: pa.ChunkedArray
    labels: TagSet

    @classmethod
    def from_table(cls, table: pa.Table, tag_set: TagSet) -> StepColumn:
        """The trees of a corpus part whose tags are `tag_set`: steps as they are, or intents and slots."""
        tags = LabelColumn.from_table(table)
        labels = STEPS.predicted_tags(tag_set)
        if labels is tag_set:
            return cls(tags.tags, tags.labelled, table["tokens"], tag_set)
        rows = [
            labels.encode(steps_from_tree(tree_from_slots(own))) if own else np.zeros(0, np.int16)
            for own in tags.lists(tag_set.tags)
        ]
        values = np.concatenate([np.zeros(0, np.int16), *rows])
        steps = RaggedBlocks(
            (Ragged(values, offsets_from_lengths(np.array([len(own) for own in rows], np.int64))),)
        )
        return cls(steps, tags.labelled, table["tokens"], labels)

    def __len__(self) -> int:
        return len(self.labelled)

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each sentence, int64 [N]; 0 where it has no tree."""
        return self.steps.lengths

    def gather(self, rows: np.ndarray) -> Targets:
        """The steps of the sentences at `rows`, in that order."""
        steps_BS, _ = self.steps.pad(rows)
        import torch

        return Targets(torch.from_numpy(steps_BS), torch.from_numpy(self.labelled[rows]))

    def lists(self) -> Iterator[list[str]]:
        """The steps of every sentence."""
        for block in self.steps.blocks:
            if len(block):
                yield from (self.labels.decode(own) for own in np.split(block.values, block.offsets[1:-1]))

    def parses(self, steps: Iterable[Sequence[str]]) -> list[Parse]:
        """The steps of every sentence, written out with its words."""
        texts = (words for chunk in self.tokens.chunks for words in chunk.to_pylist())
        return [
            Parse(tuple(bracket_text(own, words).split(" ")), tree_from_steps(own, len(words)) is not None)
            for own, words in zip(steps, texts, strict=True)
        ]


@dataclass(frozen=True)
class Steps(LabelForm):
    """Trees of intents and slots. The number of a word's step `@5` is 5 behind that of the last tag."""

    name: ClassVar[str] = "steps"
    scheme: ClassVar[str] = "parse"
    reads: ClassVar[tuple[str, ...]] = ("parse",)
    title: ClassVar[str] = "trees of intents and slots"
    words_in_front: ClassVar[int] = 1
    calls: ClassVar[tuple[str, ...]] = ("trees",)
    generates: ClassVar[bool] = True

    def label_of(self, tag: str) -> str | None:
        return None if tag == CLOSE else tag

    def labels_in(self, tags: Iterable[str], scheme: str) -> set[str]:
        return {tag for tag in tags if tag != CLOSE and not tag.startswith(WORD)}

    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """What closes brackets first, then what opens them, in alphabetical order."""
        return TagSet((CLOSE, *sorted(set(labels))), self)

    def encode(self, tags: Sequence[str], numbers: Mapping[str, int]) -> np.ndarray:
        count = len(numbers)
        own = (count + int(step[1:]) if step.startswith(WORD) else numbers[step] for step in tags)
        return np.fromiter(own, np.int16, len(tags))

    def decode(self, numbers: Iterable[SupportsIndex], tags: Sequence[str]) -> list[str]:
        steps = (int(number) for number in numbers)
        return [tags[step] if step < len(tags) else f"{WORD}{step - len(tags)}" for step in steps]

    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        said = sentence.tokens[1:]
        more = " …" if len(said) > words else ""
        return f"{' '.join(said[:words])}{more}\n{bracket_text(sentence.tags, sentence.tokens)}"

    def fault(self, corpus: CorpusFacts, task: str) -> tuple[str, str] | None:
        own = corpus.tag_set.form
        if own == self or any(map(is_intent, corpus.tag_set.tags)):
            return None
        problem = f"its tags are {own.scheme}, and task {task!r} needs trees, or intents and slots"
        return problem, "set corpus.source: mtop, atis, xsid or multiatis"

    def no_labels_reason(self, labels: Labels) -> str:
        return "it generates trees of intents and slots, not labels; call trees"

    def predicted_tags(self, tag_set: TagSet) -> TagSet:
        """What a model generates besides words: of intents and slots the tags of their trees."""
        return tag_set if tag_set.form == self else step_tags_from_slots(tag_set)

    def targets(self, table: pa.Table, *, pos: Sequence[str], labels: TagSet) -> StepColumn:
        return StepColumn.from_table(table, labels)

    def metric_inputs(
        self, gold: StepColumn, predicted: Sequence[np.ndarray], tag_set: TagSet
    ) -> tuple[list[Parse], list[Parse]]:
        """The trees, written out with the words of their sentences; the corpus' `tag_set` is not read."""
        found = (gold.labels.decode(steps) for steps in predicted)
        return gold.parses(gold.lists()), gold.parses(found)

    def most_frequent(self, gold: StringLists) -> None:
        """A tree is no list of labels."""


def bracket_changes(labels: Labels) -> np.ndarray:
    """What each step of a tree does to the number of its open brackets, int64 [Y]: 1, or −1 for what closes them."""
    return np.array([-1 if tag == CLOSE else 1 for tag in labels.tags])


STEPS = Steps()
