"""Cascades in the labeller: confidences as enumerated, sentences passed on, and a teacher that is away."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.serving.labeller import AWAY, STUDENT, TEACHER, Answer, Cascade, Chain, LabellerError, confidence

LABELS = ("O", "B-PER", "E-PER", "S-PER")
# O and S may stand anywhere, B must be followed by E.
LEGAL = np.array([[0, 0, -np.inf, 0], [-np.inf, -np.inf, 0, -np.inf], [0, 0, -np.inf, 0], [0, 0, -np.inf, 0]])
DECODING = Chain(LEGAL, np.array([0, 0, -np.inf, 0]), np.array([0, -np.inf, 0, 0]))


def answer(scores_TY, best_T=None, temperature=1.0, given_by=None):
    scores_TY = np.asarray(scores_TY, float)
    best_T = np.zeros(len(scores_TY), int) if best_T is None else np.asarray(best_T)
    return Answer(LABELS, best_T, scores_TY, DECODING, temperature, given_by)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 4), temperature=st.floats(0.3, 4))
def test_confidences_are_those_of_all_legal_labellings(seed, words, temperature):
    scores_TY = np.random.default_rng(seed).normal(size=(words, 4)) * 2
    weights = {}
    for path in itertools.product(range(4), repeat=words):
        total = (
            sum(scores_TY[t, y] for t, y in enumerate(path))
            + DECODING.start_Y[path[0]]
            + DECODING.end_Y[path[-1]]
        )
        total += sum(LEGAL[a, b] for a, b in itertools.pairwise(path))
        weights[path] = np.exp(total / temperature)
    total = sum(weights.values())
    best = max(weights, key=weights.__getitem__)
    labelled = answer(scores_TY, best, temperature)

    def mass(places):
        return sum(w for path, w in weights.items() if all(path[t] == best[t] for t in places)) / total

    assert confidence(labelled, "labelling") == pytest.approx(mass(range(words)))
    assert confidence(labelled, "word") == pytest.approx(min(mass([t]) for t in range(words)))
    spans = [[t] for t in range(words) if best[t] == 3] + [[t, t + 1] for t in range(words) if best[t] == 1]
    assert confidence(labelled, "span") == pytest.approx(min((mass(span) for span in spans), default=1.0))


def test_an_intent_is_no_span():
    labels = ("intent:book-flight", "O", "S-city")
    chain = Chain(np.zeros((3, 3)), np.zeros(3), np.zeros(3))
    labelled = Answer(labels, np.array([0, 1, 2]), np.array([[0.0, 0, 0], [0, 9, 0], [0, 0, 3]]), chain, 1.0)
    assert confidence(labelled, "span") == pytest.approx(np.exp(3) / (2 + np.exp(3)))


SURE, UNSURE = [[9.0, 0, 0, 0]], [[0.1, 0, 0, 0]]
OF_TEACHER = answer([[0, 0, 0, 9.0]], [3])


def test_only_what_the_student_is_not_sure_of_is_passed_on_in_one_call():
    calls = []

    def ask(sentences, batch):
        calls.append((list(sentences), batch))
        return [OF_TEACHER for _ in sentences]

    cascade = Cascade("word", 0.9, ask)
    sentences = [["sure"], ["not"], ["sure", "too"], ["nor"]]
    answers = [answer(scores) for scores in (SURE, UNSURE, SURE, UNSURE)]
    completed = cascade.complete(answers, sentences, 8)
    assert calls == [([["not"], ["nor"]], 8)]
    assert [(a.given_by, a.best) for a in completed] == [
        (STUDENT, ["O"]), (TEACHER, ["S-PER"]), (STUDENT, ["O"]), (TEACHER, ["S-PER"])
    ]  # fmt: skip
    assert cascade.complete(answers[:1], sentences[:1], 8)[0].given_by == STUDENT
    assert len(calls) == 1


def test_a_teacher_that_is_a_cascade_says_which_of_its_models_answered():
    inner = Cascade("word", 0.9, lambda sentences, batch: [OF_TEACHER for _ in sentences])
    outer = Cascade(
        "word", 0.9, lambda sentences, batch: inner.complete([answer(UNSURE), answer(SURE)], sentences, batch)
    )
    completed = outer.complete([answer(UNSURE), answer(UNSURE)], [["a"], ["b"]], 1)
    assert [a.given_by for a in completed] == ["teacher/teacher", "teacher/student"]


def failing(sentences, batch):
    raise TimeoutError("no answer")


@pytest.mark.parametrize(
    ("ask", "message"), [(None, "the teacher is away"), (failing, "TimeoutError: no answer")]
)
def test_without_its_teacher_the_student_answers_and_says_so_or_an_error_is_raised(ask, message):
    (completed,) = Cascade("word", 0.9, ask).complete([answer(UNSURE)], [["a"]], 1)
    assert (completed.given_by, completed.best) == (AWAY, ["O"])
    with pytest.raises(LabellerError, match=message):
        Cascade("word", 0.9, ask, may_be_away=False).complete([answer(UNSURE)], [["a"]], 1)
    (sure,) = Cascade("word", 0.9, ask, may_be_away=False).complete([answer(SURE)], [["a"]], 1)
    assert sure.given_by == STUDENT


def test_labels_in_another_order_keep_their_probabilities():
    labelled = answer([[1.0, 2.0, 3.0, 4.0]], [3])
    turned = tuple(reversed(LABELS))
    np.testing.assert_array_equal(labelled.marginals(turned), labelled.marginals(LABELS)[:, ::-1])
    assert pickle.loads(pickle.dumps(labelled)).best == ["S-PER"]
