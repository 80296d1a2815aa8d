"""Zero-points of the objectives: the least value and its place, by enumeration."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.errors import RunError
from raykd.layers.model import Output
from raykd.objectives import Gold, Top1
from raykd.objectives.emission import Emission
from raykd.objectives.logits import Logits
from raykd.objectives.pos_top_wk import PosTopWK
from raykd.objectives.posterior import Posterior
from raykd.objectives.representation import Representation
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_k import TopK
from raykd.objectives.top_wk import TopWK
from raykd.signals import Need, Sizes, TeacherBatch
from raykd.structures import Chain, Mixture
from raykd.structures.labelled_arcs import FORBIDDEN
from tests.objectives.cases import Case, built_loss, cases, draw_chain, make_case, targets_of
from tests.objectives.definitions import best, softened_laws
from tests.oracles.chains import enumerate_chain

FEW = settings(max_examples=15, deadline=None)
WARMTH = st.sampled_from([0.5, 1.0, 3.0])


def agreeing(case: Case, temperature: float = 1.0) -> Case:
    """A case with equal student and teacher, at a temperature."""
    return replace(case, student=case.teacher.map(lambda part: part / temperature))


def gradient(objective, case: Case) -> torch.Tensor:
    """Largest derivative of the loss in any score of the student."""
    student = case.student.map(lambda part: part.clone().requires_grad_())
    objective.loss(student, case.signals).sum().backward()
    return torch.stack([part.grad.abs().max() for part in student.scores() if part.grad is not None]).max()


def emission_entropies(chain: Chain, temperature: float) -> torch.Tensor:
    alone = Chain(chain.emissions_BTY / temperature, chain.lengths_B)
    return torch.stack([law.entropy() for law in enumerate_chain(alone)])


def entropies(chain: Chain, temperature: float = 1.0) -> torch.Tensor:
    return torch.stack([law.entropy() for law in softened_laws(chain, temperature)])


def near(values, expected):
    torch.testing.assert_close(values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("objective", "labelled"), [(Gold(), True), (Top1(), True), (Top1(), False)])
@FEW
@given(case=cases())
def test_likelihood_is_positive_and_vanishes_as_the_student_becomes_certain(objective, labelled, case):
    assert (built_loss(objective, case) > -1e-9).all()
    path_BT = case.signals.paths_BKT[:, 0]
    certain_BTY = 60.0 * torch.nn.functional.one_hot(path_BT, case.teacher.tags).double()
    labels = targets_of(path_BT, labelled=labelled)
    same = replace(case, student=Chain(certain_BTY, case.teacher.lengths_B), labels=labels)
    near(built_loss(objective, same), torch.zeros(case.teacher.batch).double())


@FEW
@given(case=cases())
def test_gold_is_zero_without_labels_and_top_1_is_then_the_best_path(case):
    none = replace(case, labels=targets_of(case.targets.tags_BT, labelled=False))
    assert not built_loss(Gold(), none).any()
    near(built_loss(Top1(), none), TopK(k=1).loss(case.student, case.signals))


@FEW
@given(case=cases())
def test_with_all_labels_top_1_is_gold(case):
    labelled_case = replace(case, labels=targets_of(case.targets.tags_BT))
    near(built_loss(Top1(), labelled_case), built_loss(Gold(), labelled_case))


@pytest.mark.parametrize("objective", [Gold(), Top1()])
def test_the_longest_sentence_of_a_batch_may_be_unlabelled(objective):
    """Labels then have fewer columns than the batch has words, or more where others are longer."""
    case = make_case(3, lengths=(2, 4))
    narrow = replace(case, labels=targets_of(case.targets.tags_BT[:, :2], labelled=[True, False]))
    wide = replace(case, labels=targets_of(torch.nn.functional.pad(narrow.targets.tags_BT, (0, 3), value=2)))
    wide = replace(wide, labels=replace(wide.targets, labelled_B=narrow.targets.labelled_B))
    near(built_loss(objective, narrow), built_loss(objective, wide))
    expected = [-law.scores[law.paths.index(tuple(narrow.targets.tags_BT[0].tolist()))] + law.log_z
                for law in enumerate_chain(case.student)[:1]]  # fmt: skip
    near(built_loss(objective, narrow)[:1], torch.stack(expected))


@pytest.mark.parametrize("objective", [Gold(), Top1()])
def test_a_mixture_is_never_trained(objective):
    case = make_case(0)
    loss = objective.build(None, None)
    with pytest.raises(TypeError, match="evaluated, never trained"):
        loss(Output(Mixture((case.student, case.student))), case.targets, case.signals)


@FEW
@given(cases(), WARMTH)
def test_emission_is_least_where_softmaxed_emissions_agree(case, temperature):
    objective = Emission(temperature=temperature)
    least_B = emission_entropies(case.teacher, temperature)
    same = agreeing(case, temperature)
    near(objective.loss(same.student, case.signals), least_B)
    assert gradient(objective, same) < 1e-9
    assert (objective.loss(case.student, case.signals) >= least_B - 1e-9).all()


@FEW
@given(cases(maxent=True), WARMTH)
def test_token_is_least_where_distributions_agree(case, temperature):
    objective = Token(temperature=temperature)
    same = agreeing(case, temperature)
    near(objective.loss(same.student, case.signals), entropies(case.teacher, temperature))
    assert gradient(objective, same) < 1e-9
    assert (objective.loss(case.student, case.signals) >= entropies(case.teacher, temperature) - 1e-9).all()


@pytest.mark.parametrize("side", ["teacher", "student"])
def test_token_refuses_chains(side):
    chained, plain = make_case(0), make_case(0, maxent=True)
    mixed = replace(plain, **{side: getattr(chained, side)})
    with pytest.raises(ValueError, match=f"the {side} is a chain"):
        Token().loss(mixed.student, mixed.signals)


def test_token_takes_a_teacher_whose_transitions_are_zero():
    case = make_case(0, maxent=True)
    B, Y = case.teacher.batch, case.teacher.tags
    zeros = Chain(case.teacher.emissions_BTY, case.teacher.lengths_B, torch.zeros(B, Y, Y).double())
    near(Token().loss(case.student, TeacherBatch(zeros)), Token().loss(case.student, case.signals))


@FEW
@given(cases(), st.integers(1, 6))
def test_top_k_is_at_least_log_k(case, k):
    case = replace(case, k=6)
    existing = torch.tensor([len(best(law, k)) for law in enumerate_chain(case.teacher)]).double()
    assert (TopK(k=k).loss(case.student, case.signals) >= existing.log() - 1e-9).all()


def test_top_k_reaches_log_k_where_the_student_is_even_over_the_paths():
    case = make_case(5, lengths=(1,), tags=4, k=3)
    even = torch.full((1, 1, 4), float("-inf")).double()
    even[0, 0, case.signals.paths_BKT[0, :, 0]] = 0.0
    near(
        TopK(k=3).loss(Chain(even, case.teacher.lengths_B), case.signals), torch.tensor([3.0]).double().log()
    )


@FEW
@given(cases(), st.integers(1, 6), WARMTH)
def test_top_wk_is_at_least_the_entropy_of_its_weights(case, k, temperature):
    case = replace(case, k=6)
    assert (
        TopWK(k=k, temperature=temperature).loss(case.student, case.signals)
        >= weights_entropy(case, k, temperature) - 1e-9
    ).all()


@FEW
@given(st.integers(0, 2**31), WARMTH)
def test_top_wk_reaches_it_where_all_paths_are_in_and_the_student_agrees(seed, temperature):
    case = make_case(seed, lengths=(2, 1), tags=2, k=4)
    near(
        TopWK(k=4, temperature=temperature).loss(agreeing(case, temperature).student, case.signals),
        weights_entropy(case, 4, temperature),
    )


def weights_entropy(case: Case, k: int, temperature: float) -> torch.Tensor:
    scores = [
        torch.tensor([s for _, s in best(law, k)], dtype=torch.float64)
        for law in enumerate_chain(case.teacher)
    ]
    return torch.stack([torch.distributions.Categorical(logits=s / temperature).entropy() for s in scores])


def test_top_wk_with_one_path_is_top_k_with_one_path():
    case = make_case(6)
    near(TopWK(k=1).loss(case.student, case.signals), TopK(k=1).loss(case.student, case.signals))


def test_more_paths_than_stored_is_refused():
    case = make_case(7, k=2)
    with pytest.raises(ValueError, match=r"needs k = 5 paths and 2 are stored; precompute k = 5"):
        TopWK(k=5).loss(case.student, case.signals)


@FEW
@given(cases(), WARMTH, st.sampled_from(["local", "global"]))
def test_posterior_vanishes_where_token_marginals_agree(case, temperature, mode):
    objective = Posterior(temperature=temperature, temperature_mode=mode, soften="both")
    same = agreeing(case)
    near(objective.loss(same.student, case.signals), torch.zeros(case.teacher.batch).double())
    assert (objective.loss(case.student, case.signals) >= -1e-9).all()


def test_posterior_is_positive_where_they_do_not():
    case = make_case(8)
    assert (Posterior().loss(case.student, case.signals) > 0.01).all()


def test_posterior_does_not_see_beyond_token_marginals():
    """A MaxEnt student with a chain's token marginals is at zero, though it is not that chain."""
    case = make_case(8, lengths=(3,))
    case = replace(case, teacher=case.teacher.map(lambda part: part / 4))
    marginals = enumerate_chain(case.teacher)[0].token_marginals()
    alone = Chain(marginals.log()[None], case.teacher.lengths_B)
    near(Posterior().loss(alone, case.signals), torch.zeros(1).double())
    assert (Structural().loss(alone, case.signals) > entropies(case.teacher) + 1e-3).all()


@FEW
@given(cases(student_chained=True), st.integers(1, 6))
def test_pos_top_wk_is_at_least_half_the_entropy_of_its_weights(case, k):
    case = replace(case, k=6)
    objective = PosTopWK(k=k)
    assert (objective.loss(case.student, case.signals) >= weights_entropy(case, k, 1.0) / 2 - 1e-9).all()
    everything = replace(case, k=81)
    reached = PosTopWK(k=81).loss(agreeing(case).student, everything.signals)
    near(reached, entropies(case.teacher) / 2)


@FEW
@given(cases(student_chained=True))
def test_structural_is_least_where_distributions_agree(case):
    objective = Structural()
    same = agreeing(case)
    near(objective.loss(same.student, case.signals), entropies(case.teacher))
    assert gradient(objective, same) < 1e-9
    assert (objective.loss(case.student, case.signals) >= entropies(case.teacher) - 1e-9).all()


@FEW
@given(cases(student_chained=True), WARMTH, st.sampled_from(["teacher", "both"]))
def test_structural_at_global_temperature_is_least_at_the_tempered_teacher(case, temperature, soften):
    objective = Structural(temperature=temperature, temperature_mode="global", soften=soften)
    factor = temperature**2 if soften == "both" else 1.0
    same = agreeing(case, 1.0 if soften == "both" else temperature)
    near(objective.loss(same.student, case.signals), factor * entropies(case.teacher, temperature))
    assert gradient(objective, same) < 1e-8


def test_structural_of_a_maxent_student_is_least_at_the_chains_token_marginals():
    """Case 2a: of a MaxEnt student's scores it is the posterior loss, to a constant."""
    case = make_case(9, student_chained=False)
    constant = Structural().loss(case.student, case.signals) - Posterior().loss(case.student, case.signals)
    student = draw_chain(
        case.teacher.lengths_B, case.teacher.tags, torch.Generator().manual_seed(1), chained=False
    )
    near(Structural().loss(student, case.signals) - Posterior().loss(student, case.signals), constant)


def test_structural_of_a_maxent_teacher_pairs_independent_tags():
    """Case 3: a chain student meets a MaxEnt teacher exactly when it has no use for its transitions."""
    case = make_case(10)
    alone = Chain(case.teacher.emissions_BTY, case.teacher.lengths_B)
    zeros = torch.zeros(3, 3).double()
    student = Chain(alone.emissions_BTY, alone.lengths_B, zeros, zeros[0], zeros[0])
    near(Structural().loss(student, TeacherBatch(alone)), entropies(alone))
    assert gradient(Structural(), Case(student, alone, 1)) < 1e-9


@FEW
@given(cases(forbidden=True))
def test_logits_vanish_iff_scores_are_the_logarithms_of_the_marginals(case):
    """For excluded tags the scores are the floor: the loss stays finite, and there is one zero."""
    logs = [law.token_marginals().log().clamp_min(-20.0) for law in enumerate_chain(case.teacher)]
    scores_BTY = torch.nn.utils.rnn.pad_sequence(logs, batch_first=True, padding_value=float("nan"))
    same = replace(case, student=Chain(scores_BTY, case.teacher.lengths_B))
    assert built_loss(Logits(), same).max() < 1e-12
    scores_BTY[0, 0, 0] += 0.1
    near(built_loss(Logits(), same)[0], torch.tensor(0.005).double())


def test_logits_leave_out_what_may_not_be():
    """Scores of forbidden tags are no distance to anything."""
    case = make_case(0)
    scores_BTY = case.student.emissions_BTY.clone()
    whole = built_loss(Logits(), replace(case, student=Chain(scores_BTY.clone(), case.student.lengths_B)))
    log = enumerate_chain(case.teacher)[0].token_marginals()[0, 0].log().clamp_min(-20.0)
    apart = (scores_BTY[0, 0, 0] - log).square() / 2
    scores_BTY[0, 0, 0] = FORBIDDEN
    actual = built_loss(Logits(), replace(case, student=Chain(scores_BTY, case.student.lengths_B)))
    near(actual[0], whole[0] - apart)
    near(actual[1:], whole[1:])


def brought(objective: Representation, teacher_BTD: torch.Tensor, student_BTD: torch.Tensor) -> torch.Tensor:
    """The loss of a student with projected states `student_BTD`."""
    size = teacher_BTD.shape[2]
    loss = objective.build(Sizes(3, {-1: size}, frozenset({-1})), Sizes(3, {1: size}))
    assert not list(loss.parameters()), "the projection is the student's"
    case = make_case(0, lengths=(teacher_BTD.shape[1],) * len(teacher_BTD))
    teacher = TeacherBatch(hidden={objective.needs[0]: (teacher_BTD, case.student.lengths_B)})
    return loss(Output(case.student, {-1: student_BTD}), case.targets, teacher).total_B


@pytest.mark.parametrize("distance", ["kld", "mse"])
@pytest.mark.parametrize("normalise", ["softmax", "none"])
def test_representation_is_zero_where_states_are_equal_or_a_constant_apart(distance, normalise):
    objective = Representation(distance=distance, normalise=normalise)
    states_BTD = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0)).double()
    near(brought(objective, states_BTD, states_BTD), torch.zeros(2).double())
    shifted = brought(objective, states_BTD, states_BTD + 0.5)
    assert (shifted.abs() < 1e-12).all() == (normalise == "softmax")
    if (distance, normalise) != ("kld", "none"):
        assert (brought(objective, states_BTD, states_BTD.flip(2)) > 1e-3).all()


def test_raw_divergence_is_that_of_keras():
    """tf.keras.losses.kl_divergence([[.5, -2, 3]], [[.25, .5, -1]]): what is outside [1e-7, 1] is cut to it."""
    teacher, student = (torch.tensor([[row]]).double() for row in ([0.5, -2.0, 3.0], [0.25, 0.5, -1.0]))
    expected = 0.5 * math.log(0.5 / 0.25) + 1e-7 * math.log(1e-7 / 0.5) + 1 * math.log(1 / 1e-7)
    near(
        brought(Representation(normalise="none"), teacher, student),
        torch.tensor([expected], dtype=torch.float64),
    )
    near(
        brought(Representation(normalise="none", distance="mse"), teacher, student),
        torch.tensor([(0.0625 + 6.25 + 16) / 3], dtype=torch.float64),
    )


def test_the_precision_decides_what_is_stored_and_a_projection_of_another_width_is_refused():
    assert Representation(layer=7).needs == (Need("hidden", layer=7),)
    assert Representation(layer=7, precision="int8").needs == (Need("hidden_int8", layer=7),)
    with pytest.raises(RunError, match=r"layer 1 has 6 components .* projection 4; set .* or to 6"):
        Representation().build(Sizes(3, {-1: 4}, frozenset({-1})), Sizes(3, {1: 6}))
