"""Several objectives at once: their weights, λ, what is skipped, what is reported."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.errors import RunError
from raykd.layers.model import Output
from raykd.objectives import Gold, Mix, Objective, Part, Top1, annealed_objective
from raykd.objectives.logits import Logits
from raykd.objectives.losses import Loss, Losses
from raykd.objectives.posterior import Posterior
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_wk import TopWK
from raykd.objectives.weighted_losses import MixLoss
from raykd.signals import Need, TeacherBatch
from tests.objectives.cases import built_loss, built_losses, make_case, targets_of

CASE = make_case(0)


def near(values, expected):
    torch.testing.assert_close(values, expected, rtol=1e-12, atol=1e-12)


def mix(*parts, **options) -> Mix:
    """A mix of (objective, weight, anneal)."""
    return Mix(parts=tuple(Part(objective=o, weight=w, anneal=a) for o, w, a in parts), **options)


@pytest.mark.parametrize("kd_weight", [0.0, 0.25, 1.0])
def test_a_mix_is_the_weighted_sum_and_weights_follow_lambda(kd_weight):
    several = mix((Posterior(), 2.0, "none"), (TopWK(k=3), 0.5, "falling"), (Gold(), 3.0, "rising"))
    posterior, top_wk, gold = (built_loss(objective, CASE) for objective in (Posterior(), TopWK(k=3), Gold()))
    expected = 2 * posterior + 0.5 * kd_weight * top_wk + 3 * (1 - kd_weight) * gold
    near(built_loss(several, CASE, kd_weight=kd_weight), expected)


def test_parts_are_reported_by_kind_without_their_weights():
    losses = built_losses(mix((Posterior(), 2.0, "none"), (Gold(), 0.0, "none")), CASE)
    assert list(losses.parts) == ["posterior", "gold"]
    near(losses.parts["posterior"], built_loss(Posterior(), CASE))
    near(losses.parts["gold"], built_loss(Gold(), CASE))


def test_two_of_one_kind_are_numbered():
    several = mix(
        (Posterior(), 1.0, "none"), (Posterior(temperature=3.0), 1.0, "none"), (Gold(), 1.0, "none")
    )
    losses = built_losses(several, CASE)
    assert list(losses.parts) == ["posterior", "posterior.2", "gold"]
    near(losses.parts["posterior.2"], built_loss(Posterior(temperature=3.0), CASE))


@pytest.mark.parametrize(
    ("weight", "anneal", "kd_weight"), [(0.0, "none", 0.5), (1.0, "falling", 0.0), (1.0, "rising", 1.0)]
)
def test_a_part_of_weight_0_reads_no_teacher(weight, anneal, kd_weight):
    """The part's signals may be missing, and its loss is neither computed nor reported."""
    several = mix((Posterior(), weight, anneal), (Gold(), 1.0, "none"))
    losses = built_losses(several, CASE, TeacherBatch(), kd_weight=kd_weight)
    assert list(losses.parts) == ["gold"]
    near(losses.total_B, built_loss(Gold(), CASE))


def test_labels_count_at_weight_0_so_that_every_parameter_has_a_gradient():
    student = CASE.student.map(lambda part: part.clone().requires_grad_())
    losses = built_losses(
        mix((Gold(), 0.0, "none"), (Top1(), 1.0, "falling")), replace(CASE, student=student), kd_weight=0.0
    )
    losses.total_B.sum().backward()
    assert not losses.total_B.any()
    assert list(losses.parts) == ["gold", "top_1"]
    assert all(part.grad is not None and not part.grad.any() for part in student.scores())


class Projected(Loss):
    """A loss with a parameter, like the projections of hidden states."""

    def __init__(self):
        super().__init__()
        self.projection = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    def forward(self, output, targets, teacher, *, kd_weight=1.0):
        loss_B = self.projection * output.distribution.emissions_BTY.square().mean((1, 2))
        return Losses(loss_B, {"projected": loss_B})


@pytest.mark.parametrize("kd_weight", [1.0, 0.0])
def test_a_loss_with_parameters_of_its_own_counts_at_weight_0(kd_weight):
    """DDP would otherwise wait for the gradients of the projection once λ is 0."""
    parts = mix((Posterior(), 1.0, "falling"), (Gold(), 1.0, "rising")).parts
    loss = MixLoss(parts, [Projected(), Gold().build(None, None)])
    assert [name for name, _ in loss.named_parameters()] == ["losses.0.projection"]
    losses = loss(Output(CASE.student), CASE.targets, TeacherBatch(), kd_weight=kd_weight)
    losses.total_B.sum().backward()
    gradient = loss.losses[0].projection.grad
    assert gradient is not None
    assert bool(gradient) == (kd_weight > 0)


def test_a_mix_without_any_weight_is_refused_with_what_it_has():
    falling = mix((Posterior(), 1.0, "falling"), (TopWK(k=3), 0.0, "none"))
    assert torch.isfinite(built_loss(falling, CASE, kd_weight=0.5)).all()
    with pytest.raises(
        RunError, match=r"every weight .* at λ = 0 \(posterior 1 falling, top_wk 0 none\); give"
    ):
        built_loss(falling, CASE, kd_weight=0.0)


def test_a_mix_needs_and_is_what_its_parts_are():
    several = mix((Posterior(), 1.0, "none"), (TopWK(k=3), 1.0, "none"), (Gold(), 1.0, "none"))
    assert several.needs == (Need("marginals"), Need("weighted_paths", 3))
    flags = ("reads_labels", "maxent_only", "reads_pairs", "follows_lambda", "anneals")

    def flags_of(*parts):
        return {flag for flag in flags if getattr(mix(*parts), flag)}

    assert flags_of((Posterior(), 1.0, "none")) == set()
    assert flags_of((Posterior(), 1.0, "none"), (Gold(), 1.0, "none")) == {"reads_labels"}
    assert flags_of((Posterior(), 1.0, "none"), (Token(), 1.0, "falling")) == {
        "maxent_only",
        "follows_lambda",
    }
    assert flags_of((Structural(), 1.0, "rising")) == {"reads_pairs", "follows_lambda"}


@pytest.mark.parametrize(
    ("parts", "text"), [((Gold(),), "labelled"), ((Gold(), Top1()), "all"), ((Posterior(), Gold()), "all")]
)
def test_a_mix_is_trained_on_all_text_unless_all_of_it_reads_gold_labels(parts, text):
    assert mix(*((part, 1.0, "none") for part in parts)).text == text


@pytest.mark.parametrize("kd_weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("unlabelled", "labels"), [(False, Gold()), (True, Top1())])
def test_an_annealed_objective_is_weighed_by_lambda_against_labels(kd_weight, unlabelled, labels):
    """λ · loss + (1 − λ) · labels; on unlabelled text the teacher's best labelling is the label."""
    objective = annealed_objective(Posterior(), unlabelled=unlabelled)
    case = replace(CASE, labels=targets_of(CASE.targets.tags_BT, labelled=[True, False, True]))
    expected = kd_weight * built_loss(Posterior(), case) + (1 - kd_weight) * built_loss(labels, case)
    near(built_loss(objective, case, kd_weight=kd_weight), expected)
    assert objective.reads_labels
    assert objective.follows_lambda
    assert set(objective.needs) == {Need("marginals"), *labels.needs}


@pytest.mark.parametrize("objective", [Gold(), Top1(), mix((Posterior(), 1.0, "none"))])
@pytest.mark.parametrize("unlabelled", [True, False])
def test_labels_and_mixes_are_not_annealed(objective: Objective, unlabelled):
    assert annealed_objective(objective, unlabelled=unlabelled) is objective


@given(seed=st.integers(0, 2**31), labelled=st.lists(st.booleans(), min_size=2, max_size=6))
@settings(max_examples=25, deadline=None)
def test_parts_of_their_own_text_are_the_joint_loss_of_the_paper(seed, labelled):
    """Mukherjee & Awadallah 2020, Eq. 7: 1/|D_l| Σ α · gold + 1/|D_u| Σ (β · posterior + γ · logits)."""
    labelled = [True, *labelled, False]
    case = make_case(seed, lengths=(2,) * len(labelled))
    case = replace(case, labels=targets_of(case.targets.tags_BT, labelled=labelled))
    alpha, beta, gamma = 10.0, 0.1, 2.0
    parts = (
        Part(objective=Gold(), weight=alpha, text="labelled"),
        Part(objective=Posterior(), weight=beta, text="unlabelled"),
        Part(objective=Logits(), weight=gamma, text="unlabelled"),
    )
    gold, posterior, logits = (built_loss(part.objective, case).tolist() for part in parts)
    of_labelled = [loss for loss, is_labelled in zip(gold, labelled, strict=True) if is_labelled]
    of_unlabelled = [
        beta * first + gamma * second
        for first, second, is_labelled in zip(posterior, logits, labelled, strict=True)
        if not is_labelled
    ]
    expected = alpha * sum(of_labelled) / len(of_labelled) + sum(of_unlabelled) / len(of_unlabelled)
    losses = built_losses(Mix(parts=parts), case, labelled=sum(labelled) / len(labelled))
    near(losses.total_B.mean(), torch.tensor(expected, dtype=torch.float64))
    # What is reported is the mean over a part's is_labelled sentences.
    near(losses.parts["gold"].mean(), torch.tensor(sum(of_labelled) / len(of_labelled), dtype=torch.float64))


def test_the_text_of_a_mix_is_that_of_its_parts():
    def text_of(*texts):
        return Mix(parts=tuple(Part(objective=Posterior(), text=text) for text in texts)).text

    assert [text_of(*texts) for texts in (("labelled",), ("unlabelled", "unlabelled"))] == [
        "labelled",
        "unlabelled",
    ]
    assert {text_of(*texts) for texts in (("labelled", "unlabelled"), ("labelled", "all"), ("all",))} == {
        "all"
    }
    assert (
        Mix(parts=(Part(objective=Gold()), Part(objective=Posterior(), text="labelled"))).text == "labelled"
    )


@pytest.mark.parametrize(("text", "labelled"), [("labelled", 0.0), ("unlabelled", 1.0)])
def test_a_part_without_any_sentence_is_refused(text, labelled):
    several = Mix(parts=(Part(objective=Posterior(), text=text), Part(objective=Gold())))
    with pytest.raises(RunError, match=f"posterior needs {text} text, and the stage has none"):
        built_loss(several, CASE, labelled=labelled)
