"""Objectives with a parser as the teacher: against the full product of heads and relations, word by word."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms.targets import Targets
from raykd.layers.model import Output
from raykd.objectives.labels import Top1
from raykd.objectives.logits import Logits
from raykd.objectives.posterior import Posterior
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_k import TopK
from raykd.objectives.top_wk import TopWK
from raykd.signals import Sizes, TeacherBatch
from raykd.structures import Chain
from raykd.structures.labelled_arcs import FORBIDDEN, ArcsOnLabels, LabelledArcs

RELATIONS, LABELS = 3, 6


@st.composite
def cases(draw: st.DrawFn) -> tuple[ArcsOnLabels, Chain]:
    """A parser's arcs on labels, each of another head and relation, and a student's scores of these labels."""
    lengths = torch.tensor(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    batch, time = len(lengths), int(lengths.max())
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    arcs = torch.randn(batch, time, time + 1, generator=generator, dtype=torch.float64).log_softmax(2)
    relations = torch.randn(batch, time, time + 1, RELATIONS, generator=generator, dtype=torch.float64)
    # Label y of a word: its own head, or none, and relation y % 3; two labels never mean the same.
    heads = torch.stack([torch.randperm(time + 3, generator=generator)[:2] for _ in range(batch * time)])
    heads = heads.reshape(batch, time, 2).repeat_interleave(RELATIONS, 2)
    heads = torch.where(heads > time, -1, heads)
    parser = LabelledArcs(arcs, relations.log_softmax(3), lengths)
    student = torch.randn(batch, time, LABELS, generator=generator, dtype=torch.float64)
    return ArcsOnLabels(parser, heads, torch.arange(LABELS) % RELATIONS), Chain(student, lengths)


def probability(case: ArcsOnLabels, b: int, t: int, y: int, temperature: float = 1.0) -> float:
    """P(head) · P(relation | head), both softened, of what the label means (Eq. 5)."""
    head, relation = int(case.heads_BTY[b, t, y]), int(case.relation_Y[y])
    if head < 0:
        return 0.0
    arcs = torch.softmax(case.arcs.arcs_BTH[b, t] / temperature, 0)
    relations = torch.softmax(case.arcs.relations_BTHR[b, t, head] / temperature, 0)
    return float(arcs[head] * relations[relation])


def words(case: ArcsOnLabels) -> list[tuple[int, int]]:
    return [(b, t) for b, length in enumerate(case.arcs.lengths_B.tolist()) for t in range(length)]


def summed(case: ArcsOnLabels, values: dict[tuple[int, int], float]) -> list[float]:
    return [sum(values[b, t] for b, t in words(case) if b == row) for row in range(len(case.arcs.lengths_B))]


@given(cases(), st.sampled_from([1.0, 2.0]), st.sampled_from(["local", "global"]))
def test_structural_is_the_cross_entropy_with_what_the_labels_express(case, temperature, mode):
    teacher, student = case
    logs = student.emissions_BTY.log_softmax(2)
    expected = {}
    for b, t in words(teacher):
        if mode == "global":
            target = [probability(teacher, b, t, y, temperature) for y in range(LABELS)]
        else:
            target = [probability(teacher, b, t, y) for y in range(LABELS)]
            mass, powers = sum(target), [p ** (1 / temperature) for p in target]
            target = [mass * power / sum(powers) if mass else 0.0 for power in powers]
        expected[b, t] = -sum(p * float(logs[b, t, y]) for y, p in enumerate(target))
    objective = Structural(temperature=temperature, temperature_mode=mode)
    actual_B = objective.loss(student, TeacherBatch(on_labels=teacher))
    assert actual_B.tolist() == pytest.approx(summed(teacher, expected), abs=1e-6)


@given(cases())
def test_posterior_is_the_divergence_from_what_the_labels_express_and_the_rest_is_counted(case):
    teacher, student = case
    logs = student.emissions_BTY.log_softmax(2)
    whole = [sum(probability(teacher, b, t, y) for y in range(LABELS)) for b, t in words(teacher)]
    actual_B = Posterior().loss(student, TeacherBatch(on_labels=teacher))
    expected = {}
    for b, t in words(teacher):
        probabilities = [probability(teacher, b, t, y) for y in range(LABELS)]
        shares = [p / (sum(probabilities) or 1.0) for p in probabilities]
        expected[b, t] = sum(p * (math.log(p) - float(logs[b, t, y])) for y, p in enumerate(shares) if p)
    assert actual_B.tolist() == pytest.approx(summed(teacher, expected), abs=1e-6)
    lost_B = teacher.unexpressed_words().tolist()
    assert sum(lost_B) == pytest.approx(len(whole) - sum(whole), abs=1e-9)


@given(cases(), st.integers(1, 8))
def test_top_k_are_the_best_labels_of_each_word(case, k):
    teacher, student = case
    logs = student.emissions_BTY.log_softmax(2)
    weighted, even = {}, {}
    for b, t in words(teacher):
        ranked = sorted(((probability(teacher, b, t, y), y) for y in range(LABELS)), reverse=True)
        best = [(p, y) for p, y in ranked[:k] if p > 0]
        total = sum(p for p, _ in best) or 1.0
        weighted[b, t] = -sum(p / total * float(logs[b, t, y]) for p, y in best)
        even[b, t] = -sum(float(logs[b, t, y]) for _, y in best) / max(len(best), 1)
    batch = TeacherBatch(on_labels=teacher)
    assert TopWK(k=k).loss(student, batch).tolist() == pytest.approx(summed(teacher, weighted), abs=1e-6)
    assert TopK(k=k).loss(student, batch).tolist() == pytest.approx(summed(teacher, even), abs=1e-6)


@given(cases())
def test_top_1_is_the_best_label_of_unlabelled_words_and_gold_of_the_others(case):
    teacher, student = case
    batch, time = student.batch, student.time
    gold = Targets(torch.full((batch, time), 1), torch.arange(batch) % 2 == 0)
    actual_B = (
        Top1()
        .build(Sizes(LABELS), Sizes(LABELS))(Output(student), gold, TeacherBatch(on_labels=teacher))
        .total_B
    )
    best_BKT, scores_BKT = teacher.best(1)
    logs = student.emissions_BTY.log_softmax(2)
    expected = {}
    for b, t in words(teacher):
        label = 1 if b % 2 == 0 else int(best_BKT[b, 0, t])
        expected[b, t] = -float(logs[b, t, label])
        best = max(probability(teacher, b, t, y) for y in range(LABELS))
        assert math.exp(float(scores_BKT[b, 0, t])) == pytest.approx(best, abs=1e-9)
    assert actual_B.tolist() == pytest.approx(summed(teacher, expected))


@given(cases())
def test_other_objectives_read_the_labels_that_mean_something(case):
    teacher, student = case
    batch = TeacherBatch(on_labels=teacher)
    chain = teacher.chain()
    assert bool((chain.emissions_BTY[teacher.heads_BTY < 0] <= FORBIDDEN / 2).all()) or not bool(
        (teacher.heads_BTY >= 0).any(2).all()
    )
    expected = Token().loss(student, TeacherBatch(marginals=chain))
    torch.testing.assert_close(Token().loss(student, batch), expected)
    logits = Logits().build(Sizes(LABELS), Sizes(LABELS))
    targets = Targets(
        torch.zeros(student.batch, student.time, dtype=torch.long), torch.ones(student.batch) > 0
    )
    actual = logits(Output(student), targets, batch).total_B
    torch.testing.assert_close(
        actual, logits(Output(student), targets, TeacherBatch(marginals=chain)).total_B
    )
