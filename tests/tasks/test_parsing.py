"""The tasks of dependency parsing: counts by hand, a plain loop, and the rules of the words that count."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.conversion import TREES
from raykd.errors import CorpusError
from raykd.forms import FLAT
from raykd.forms.tree.best_parse import Parse
from raykd.metrics.attachment import is_punctuation
from raykd.tasks import TASKS
from raykd.tasks.parsing import PARSING

POS = ("NOUN", "PUNCT", "VERB")
RELATIONS = FLAT.tag_set(["nsubj", "obj", "punct", "root"])
LANGUAGES = ("en", "nl", "sv")
WORDS = {"NOUN": "rain", "VERB": "fell", "PUNCT": "!"}
Word = tuple[str, int, str]
"""Part of speech, head, relation."""


def table_of(sentences: list[list[Word]], words: list[list[str]] | None = None) -> pa.Table:
    rows = [
        {
            "tokens": words[number] if words else [WORDS[pos] for pos, _, _ in sentence],
            "tags": RELATIONS.encode([relation for _, _, relation in sentence]).tolist(),
            "language": LANGUAGES[number % 3],
            "heads": [head for _, head, _ in sentence],
            "pos": [POS.index(pos) for pos, _, _ in sentence],
        }
        for number, sentence in enumerate(sentences)
    ]
    return pa.Table.from_pylist(rows, schema=TREES)


def predictions(sentences: list[list[tuple[int, str]]]) -> list[Parse]:
    return [
        Parse(
            np.array([head for head, _ in sentence], int),
            np.array([RELATIONS.index(relation) for _, relation in sentence], int),
            np.arange(len(sentence)) == 1,
        )
        for sentence in sentences
    ]


def score_with(name, gold, predicted, words=None, targets=()):
    task, table = PARSING[name], table_of(gold, words)
    languages = table["language"].to_pylist()
    column = task.form.targets(table, pos=POS, labels=RELATIONS)
    return task.score(column, predictions(predicted), tag_set=RELATIONS, languages=languages, targets=targets)


GOLD = [
    [("NOUN", 2, "nsubj"), ("VERB", 0, "root"), ("NOUN", 2, "obj"), ("PUNCT", 2, "punct")],
    [("NOUN", 0, "root"), ("PUNCT", 1, "punct")],
]
# The subject is right, the object has another relation, the punctuation another head; the second sentence is right.
PREDICTED = [[(2, "nsubj"), (0, "root"), (2, "nsubj"), (1, "punct")], [(0, "root"), (1, "punct")]]


@pytest.mark.parametrize(
    ("name", "las", "uas"),
    [
        ("parsing", 2 / 4, 3 / 4),
        ("parsing_without_punct", 2 / 3, 3 / 3),
        ("parsing_without_punctuation_words", 2 / 3, 3 / 3),
    ],
)
def test_scores_are_those_counted_by_hand_by_language(name, las, uas):
    scores = score_with(name, GOLD, PREDICTED)
    assert set(scores) == {"source"}
    assert scores["source"].by_language == pytest.approx({"en": las, "nl": 1})
    assert scores["source"].beside["uas"].by_language == pytest.approx({"en": uas, "nl": 1})
    assert scores["source"].mean == pytest.approx((las + 1) / 2)
    # One word of each sentence, punctuation or not.
    assert scores["source"].beside["repairs"].by_language == pytest.approx({"en": 1 / 4, "nl": 1 / 2})
    split = score_with(name, GOLD, PREDICTED, targets=("nl", "xx"))
    assert split["target"].by_language == split["target"].beside["uas"].by_language == {"nl": 1}
    assert split["source"].beside["uas"].mean == pytest.approx(uas)


def test_punctuation_by_tag_and_by_characters_are_two_rules():
    words = [["rain", "fell", "-", "three"]]
    gold = [GOLD[0]]
    predicted = [[(2, "nsubj"), (0, "root"), (0, "obj"), (2, "punct")]]
    las = {name: score_with(name, gold, predicted, words)["source"].mean for name in PARSING}
    # Three words count under both rules: one leaves out the last word by its tag, one the wrong word by its characters.
    assert list(las.values()) == pytest.approx([3 / 4, 2 / 3, 1])


words = st.tuples(st.sampled_from(POS), st.integers(0, 3), st.sampled_from(RELATIONS.tags))
sentences = st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=4), min_size=1, max_size=5)


@given(sentences, st.sampled_from(sorted(PARSING)))
def test_scores_are_those_of_a_plain_loop(pairs, name):
    gold = [[word for word, _ in sentence] for sentence in pairs]
    predicted = [[(head, relation) for _, (_, head, relation) in sentence] for sentence in pairs]
    counts = {}
    for number, sentence in enumerate(pairs):
        for (pos, head, relation), (_, predicted_head, predicted_relation) in sentence:
            if name == "parsing" or not is_punctuation(WORDS[pos]):
                total = counts.setdefault(LANGUAGES[number % 3], [0, 0, 0])
                total[0] += 1
                total[1] += head == predicted_head
                total[2] += (head, relation) == (predicted_head, predicted_relation)
    languages = {LANGUAGES[number % 3] for number in range(len(pairs))}
    las = score_with(name, gold, predicted)["source"]
    for language in languages:
        count, heads, labelled = counts.get(language, (0, 0, 0))
        assert las.by_language[language] == pytest.approx(labelled / max(count, 1))
        assert las.beside["uas"].by_language[language] == pytest.approx(heads / max(count, 1))


def test_sentences_that_differ_in_length_are_refused():
    with pytest.raises(ValueError, match="4 gold but 2 predicted words"):
        score_with("parsing", GOLD, [PREDICTED[1], PREDICTED[1]])


@pytest.mark.parametrize("name", PARSING)
def test_the_name_of_the_score_states_the_rule(name):
    task = PARSING[name]
    assert task.name == name
    assert TASKS[name] is task
    assert task.score_label.startswith("LAS")
    assert (name == "parsing") == (task.score_label == "LAS")
    assert len({task.score_label for task in PARSING.values()}) == len(PARSING)


def test_a_corpus_without_trees_or_without_punct_is_refused_with_a_hint():
    without, xpos, upos = (SimpleNamespace(pos=pos, unit="word") for pos in ((), ("NN", "."), POS))
    for task in PARSING.values():
        task.check(upos, "x.yaml")
        with pytest.raises(CorpusError, match=r"x\.yaml: it has no trees.*; set corpus.source: conllu and"):
            task.check(without, "x.yaml")
    PARSING["parsing"].check(xpos, "x.yaml")
    PARSING["parsing_without_punctuation_words"].check(xpos, "x.yaml")
    with pytest.raises(CorpusError, match=r"no word has the part of speech PUNCT.*; set corpus.pos: upos"):
        PARSING["parsing_without_punct"].check(xpos, "x.yaml")
