"""Tasks with labels against hand-made examples; a new task needs one here."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from raykd.errors import CorpusError
from raykd.forms import FLAT, SPANS, UTTERANCES, TagSet
from raykd.layers.model import Output
from raykd.structures import Chain
from raykd.tasks import TASKS
from tests.oracles.chains import enumerate_chain

TYPES = SPANS.tag_set(["PER", "LOC"])
POLARITIES = SPANS.tag_set(["negative", "positive"])
WORDS = FLAT.tag_set(["DET", "NOUN", "VERB"])
SPOKEN = UTTERANCES.tag_set(["city", "intent:fare", "intent:flight"])


@dataclass(frozen=True)
class Example:
    """Gold and predicted labels of three sentences in English, German and French, and the score of each language."""

    tag_set: TagSet
    gold: list[list[str]]
    predicted: list[list[str]]
    scores: tuple[float, float, float]
    other_scores: dict[str, tuple[float, float, float]] = field(default_factory=dict)


ENTITIES = Example(
    TYPES,
    [["B-PER", "E-PER", "O", "S-LOC"], ["S-LOC", "O"], ["O", "S-PER", "S-PER"]],
    # Half of the entities, all of them right; one of the wrong type; two right and one too many.
    [["B-PER", "E-PER", "O", "O"], ["S-PER", "O"], ["S-LOC", "S-PER", "S-PER"]],
    (2 / 3, 0.0, 0.8),
)
EXAMPLES = {
    "ner": ENTITIES,
    "aspect": Example(
        POLARITIES,
        [["O", "S-positive"], ["B-negative", "E-negative", "O"], ["S-positive", "S-negative"]],
        # Right; the right words with the wrong polarity; one of two.
        [["O", "S-positive"], ["B-positive", "E-positive", "O"], ["S-positive", "O"]],
        (1.0, 0.0, 2 / 3),
    ),
    "pos": Example(
        WORDS,
        [["DET", "NOUN", "VERB"], ["NOUN", "VERB"], ["VERB"]],
        [["DET", "NOUN", "NOUN"], ["NOUN", "VERB"], ["DET"]],
        (2 / 3, 1.0, 0.0),
    ),
    "classification": Example(
        WORDS, [["DET"], ["NOUN"], ["VERB"]], [["DET"], ["VERB"], ["VERB"]], (1.0, 0.0, 1.0)
    ),
    "intent_slots": Example(
        SPOKEN,
        [
            ["intent:fare", "S-city", "O", "S-city"],
            ["intent:flight", "O"],
            ["intent:flight", "B-city", "E-city"],
        ],
        # The intent and one of two slots; another intent; both.
        [["intent:fare", "S-city", "O", "O"], ["intent:fare", "O"], ["intent:flight", "B-city", "E-city"]],
        (0.0, 0.0, 1.0),
        {"intent_accuracy": (1.0, 0.0, 1.0), "slot_f1": (2 / 3, 0.0, 1.0)},
    ),
}
EXAMPLES["pairs"] = EXAMPLES["classification"]
LANGUAGES = ["en", "de", "fr"]
every_task = pytest.mark.parametrize("name", EXAMPLES)


def table_of(example: Example, *, labelled=(True, True, True)) -> pa.Table:
    """Return the corpus part with the gold labels; null for unlabelled sentences."""
    tags = [
        example.tag_set.encode(row).tolist() if is_labelled else None
        for row, is_labelled in zip(example.gold, labelled, strict=True)
    ]
    return pa.table({"tags": pa.array(tags, pa.list_(pa.int16())), "language": LANGUAGES})


def targets_of(name: str, table: pa.Table) -> Any:
    return TASKS[name].form.targets(table, pos=(), labels=EXAMPLES[name].tag_set)


def predicted_numbers(example: Example) -> list[np.ndarray]:
    return [example.tag_set.encode(row) for row in example.predicted]


def test_every_task_is_tested_under_its_own_name():
    assert {name for name, task in TASKS.items() if task.form.calls[:1] == ("label",)} == set(EXAMPLES)
    assert all(task.name == name for name, task in TASKS.items())
    with pytest.raises(TypeError):
        TASKS["other"] = TASKS["ner"]  # pyright: ignore[reportIndexIssue]


@every_task
def test_scores_are_named_for_files_and_for_people(name):
    task = TASKS[name]
    assert task.score_name.isidentifier()
    assert task.score_name.lower() == task.score_name
    assert task.score_name.replace("_", " ") in task.score_label.lower()
    assert EXAMPLES[name].tag_set.form == task.form


@every_task
def test_targets_are_the_labels_of_a_part(name):
    example = EXAMPLES[name]
    column = targets_of(name, table_of(example, labelled=(True, False, True)))
    assert column.lists(example.tag_set.tags) == [example.gold[0], [], example.gold[2]]
    targets = column.gather(np.array([1, 0]))
    assert targets.labelled_B.tolist() == [False, True]
    assert targets.tags_BT[1].tolist() == example.tag_set.encode(example.gold[0]).tolist()
    assert not targets.tags_BT[0].any()


@every_task
def test_what_is_decoded_is_the_best_labelling_of_each_sentence(name):
    """Transitions count: the best labelling is not the best label of single words. Padding is removed."""
    tags, generator = len(EXAMPLES[name].tag_set), torch.Generator().manual_seed(0)
    lengths_B = torch.tensor([1, 1, 1] if TASKS[name].unit == "sentence" else [3, 1, 2])
    shapes = ((3, int(lengths_B.max()), tags), (tags, tags), (tags,), (tags,))
    emissions, *rest = (torch.randn(*shape, generator=generator).double() for shape in shapes)
    chain = Chain(emissions, lengths_B, *(3 * part for part in rest))
    column = targets_of(name, table_of(EXAMPLES[name]))
    decoded = TASKS[name].form.best_labellings(column, Output(chain), np.arange(3))
    for law, path, length in zip(enumerate_chain(chain), decoded, lengths_B.tolist(), strict=True):
        assert path.shape == (length,)
        assert tuple(path.tolist()) == law.paths[int(law.scores.argmax())]
    if TASKS[name].unit == "word":
        assert decoded[0].tolist() != emissions[0].argmax(-1).tolist()


@every_task
def test_scores_are_those_counted_by_hand(name):
    example, task = EXAMPLES[name], TASKS[name]
    scores = task.score(
        targets_of(name, table_of(example)),
        predicted_numbers(example),
        tag_set=example.tag_set,
        languages=LANGUAGES,
    )
    assert set(scores) == {"source"}
    assert scores["source"].by_language == pytest.approx(dict(zip(LANGUAGES, example.scores, strict=True)))
    assert scores["source"].mean == pytest.approx(sum(example.scores) / 3)
    other_scores = {
        name: tuple(score.by_language[x] for x in LANGUAGES)
        for name, score in scores["source"].beside.items()
    }
    assert other_scores == {name: pytest.approx(score) for name, score in example.other_scores.items()}
    assert scores["source"].by_seed == (scores["source"].mean,)


@every_task
def test_target_languages_are_a_group_of_their_own(name):
    example, task = EXAMPLES[name], TASKS[name]
    scores = task.score(
        targets_of(name, table_of(example)), predicted_numbers(example),
        tag_set=example.tag_set, languages=LANGUAGES, targets=("fr", "xx"),
    )  # fmt: skip
    assert scores["target"].by_language == pytest.approx({"fr": example.scores[2]})
    assert set(scores["source"].by_language) == {"en", "de"}
    assert scores["source"].mean == pytest.approx(sum(example.scores[:2]) / 2)


@every_task
def test_gold_labels_score_1(name):
    example, task = EXAMPLES[name], TASKS[name]
    gold = [example.tag_set.encode(row) for row in example.gold]
    scores = task.score(
        targets_of(name, table_of(example)), gold, tag_set=example.tag_set, languages=LANGUAGES
    )
    assert scores["source"].by_language == dict.fromkeys(sorted(LANGUAGES), 1.0)


@every_task
def test_a_corpus_with_other_labels_is_refused_with_a_hint(name):
    task, tag_set = TASKS[name], EXAMPLES[name].tag_set

    def corpus(**changes):
        return SimpleNamespace(**{"unit": task.unit, "tag_set": tag_set, "pos": (), **changes})

    task.check(corpus(), "x.tsv")
    wrong_tags = WORDS if task.form == SPANS else TYPES
    with pytest.raises(
        CorpusError,
        match=rf"x\.tsv: its tags are {wrong_tags.form.scheme}.* needs {task.form.scheme} tags; set corpus",
    ):
        task.check(corpus(tag_set=wrong_tags), "x.tsv")
    unit, hint = (
        ("sentence", "set task: classification") if task.unit == "word" else ("word", "set another task")
    )
    with pytest.raises(
        CorpusError, match=rf"one label per {unit}, and task '{name}' predicts one per .*; {hint}"
    ):
        task.check(corpus(unit=unit), "x.tsv")
