"""Several annotators as one teacher: against the sum over all their labellings."""

import json
import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from raykd.corpora.corpus import make_corpus
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import SourceConfig
from raykd.forms import SPANS
from raykd.layers.answered_text import EncodedAnswer
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.structures import Chain, viterbi
from raykd.teachers import CombinedTeacher, TeacherConfig
from raykd.training.answer_survey import survey_answers, survey_messages, usable_by_any
from raykd.training.teacher_answers import CombinedReader, open_answers_of

TAGS = SPANS.tag_set(["PER"])
ROW = st.lists(st.integers(0, len(TAGS) - 1), min_size=2, max_size=2).map(tuple)


class Given:
    """A reader with one answer to everything, or none."""

    def __init__(self, answer):
        self.answer = answer

    def find_usable(self, words):
        return self.answer


@given(
    st.lists(
        st.none() | st.dictionaries(ROW, st.floats(0.1, 3), min_size=1, max_size=4), min_size=2, max_size=4
    ),
    st.lists(st.floats(0.1, 2), min_size=4, max_size=4),
)
def test_marginals_are_the_weighted_mean_of_those_that_answered(members, weights):
    readers = []
    for paths in members:
        answer = None
        if paths is not None:
            logs = [math.log(weight) for weight in paths.values()]
            answer = EncodedAnswer([torch.tensor(path).numpy() for path in paths], logs)
        readers.append(Given(answer))
    combined = CombinedReader(readers, weights[: len(members)], len(TAGS)).find_usable(["a", "b"])
    answered = [(paths, weight) for paths, weight in zip(members, weights, strict=False) if paths is not None]
    if not answered:
        assert combined is None
        return
    total = sum(weight for _, weight in answered)
    for t, y in product(range(2), range(len(TAGS))):
        expected = sum(
            weight / total * sum(w for path, w in paths.items() if path[t] == y) / sum(paths.values())
            for paths, weight in answered
        )
        assert float(combined.log_probabilities_TY[t, y].exp()) == pytest.approx(expected)


def combined_of(folder, **settings):
    """Two annotators of which each knows a sentence that the other does not, and one that both know."""
    first = [("Ada slept", [["Ada", "PER"]]), ("Bob left", [["Bob", "PER"]])]
    second = [("Ada slept", []), ("It rained", [["It", "PER"], ["Zoe", "PER"]])]
    for name, answers in (("a", first), ("b", second)):
        lines = (json.dumps({"text": text, "mentions": mentions}) for text, mentions in answers)
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    members = [
        {"kind": "annotations", "path": str(folder / f"{name}.jsonl"), "answers": "mentions"} for name in "ab"
    ]
    return TypeAdapter(TeacherConfig).validate_json(
        json.dumps({"kind": "combined", "members": members, **settings})
    )


def test_texts_of_any_annotator_stay_and_those_of_none_leave(tmp_path):
    teacher, storage = combined_of(tmp_path, weights=[3, 1]), Storage(str(tmp_path / "store"))
    texts = ["Ada slept", "Bob left", "It rained", "Eva sang"]
    sentences = [Sentence(text.split(), ["S-PER", "O"], "en") for text in texts]
    held_out = {part: [Sentence([part], ["O"], "en")] for part in ("dev", "test")}
    corpus = make_corpus({"train": sentences, **held_out}, SourceConfig(languages=("en",)))
    surveys = [survey_answers(storage, annotator, corpus) for annotator in teacher.annotators]
    assert usable_by_any(surveys)["train"].tolist() == [True, True, True, False]
    messages = survey_messages(surveys)
    assert (
        "annotations (member 1): 2 training sentences with no answer, labelled by the others alone"
        in messages
    )
    assert messages[-1] == "1 training sentence without a usable answer left out"
    answers = open_answers_of(storage, teacher.pinned(), corpus.tag_set, "word")
    batch = answers.encode([["Ada", "slept"], ["It", "rained"]]).gather(torch.arange(2).numpy())
    chain = Chain(batch.log_probabilities_BTY, batch.label_lengths_B)
    labels = corpus.tag_set.decode(viterbi(chain, corpus.tag_set.legal())[0].flatten().tolist())
    assert labels == ["S-PER", "O", "S-PER", "O"]
    place = corpus.tag_set.index("S-PER")
    assert chain.emissions_BTY[0, 0, place].exp() == pytest.approx(0.75)
    assert chain.emissions_BTY[1, 0, place].exp() == pytest.approx(1)


def test_identity_is_that_of_answers_and_weights_wherever_files_are(tmp_path):
    def run_id(folder, **settings):
        folder.mkdir(exist_ok=True)
        model = combined_of(folder, **settings).pinned().model_dump(mode="json")
        run = Run(
            role="teacher", task="ner", corpus_id="c", vocabulary_id="v", model=model, stages=(), training={},
            sampling_alpha=1.0, decoding="",
        )  # fmt: skip
        return run.id

    first = run_id(tmp_path / "a", weights=[3, 1])
    assert run_id(tmp_path / "b", weights=[6, 2]) == first
    assert run_id(tmp_path / "a") != first
    assert run_id(tmp_path / "c", latency_ms=3, weights=[3, 1]) == first


def test_a_weight_for_each_member(tmp_path):
    with pytest.raises(ValidationError, match="weights: 1 for 2 members"):
        combined_of(tmp_path, weights=[1])
    assert combined_of(tmp_path).offers == CombinedTeacher.model_signals
