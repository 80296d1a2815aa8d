"""What every objective is: a configuration that builds a loss; and the ways to ask a teacher's batch for its parts.

Shapes: B batch, T labels of a sentence, Y tags, K best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.objectives.temperature import TemperatureMode, divides_scores
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.objectives.losses import Loss
    from raykd.signals import Need, Sizes, TeacherBatch
    from raykd.structures import Chain, Moments


Text = Literal["labelled", "unlabelled", "all"]


class Objective(Frozen):
    """A loss with its hyper-parameters. Entries of the table set `kind` and either `loss` or `batch_loss`."""

    kind: str

    text: ClassVar[Text] = "all"
    """What a stage with this objective is trained on by default. Gold labels do not exist for unlabelled text."""
    anneals: ClassVar[bool] = True
    """Whether λ weighs it against labels where it stands alone. Labels and mixes have no λ of their own."""
    follows_lambda: ClassVar[bool] = False
    """Whether λ is among its weights."""
    reads_labels: ClassVar[bool] = False
    """Whether it is a likelihood of labels. Such a loss touches every parameter of the model."""
    needs_unlabelled: ClassVar[bool] = False
    """Whether it differs from gold labels on unlabelled text only."""
    maxent_only: ClassVar[bool] = False
    """Whether teacher and student must both be without transitions."""
    by_label: ClassVar[bool] = True
    """Whether it reads nothing of each label but its scores and states, and is the sum over labels where these are
    independent of each other: then `compute_losses` may compute it for some labels at a time."""
    reads_pairs: ClassVar[bool] = False
    """Whether a student with transitions needs the teacher's pairs of neighbouring tags in addition to `needs`."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """The signals that the loss reads."""
        return ()

    @property
    def reads_scores(self) -> bool:
        """Whether it reads what the student's head gives; others read its layers alone."""
        return not (self.label_layers or self.piece_layers or self.attention_layers)

    @property
    def label_layers(self) -> tuple[int, ...]:
        """The student's layers of which the loss reads the states that labels are predicted from."""
        return ()

    @property
    def piece_layers(self) -> tuple[int, ...]:
        """The student's layers of which it reads the states of every piece."""
        return ()

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """The student's layers of which it reads the attention scores."""
        return ()

    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        """The loss as a module, with parameters of its own where it has any, drawn from torch's generator.

        `labelled`: the share of labelled text in what the loss is averaged over, which only a mix uses.
        """
        from raykd.objectives.single_loss import SingleLoss

        return SingleLoss(self, self.modules(student, teacher))

    def modules(self, student: Sizes, teacher: Sizes) -> Sequence[nn.Module]:
        """Layers of the loss's own. They are trained with the student, and do not ship with it."""
        return ()

    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        """The loss of each sentence [B] of a batch, differentiable in the student; `modules` are its own layers.

        Raises:
            ValueError: the batch lacks a signal that the objective needs.
        """
        return self.loss(output.distribution, teacher)  # type: ignore[arg-type]

    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        """The loss of each sentence [B] between distributions; ValueError where the batch lacks a signal."""
        raise NotImplementedError(f"{type(self).__name__} reads more than the student's distribution")


def teacher_chain(teacher: TeacherBatch, kind: str) -> Chain:
    """The teacher's chain, outside every gradient; ValueError when the batch has none."""
    if teacher.chain is None:
        raise ValueError(f"objective {kind!r} reads the teacher's emissions and this batch has none")
    return teacher.chain.detach()


def marginals_chain(teacher: TeacherBatch, kind: str, *, softened: bool) -> Chain:
    """A chain with the teacher's token marginals, outside every gradient: its own, or independent tags with these.

    Raises:
        ValueError: the batch has neither, or its scores are to be `softened` and marginals are all it has.
    """
    if teacher.chain is None and not softened:
        if teacher.on_labels is not None:
            return teacher.on_labels.chain()
        if teacher.marginals is not None:
            return teacher.marginals.detach()
    return teacher_chain(teacher, kind)


def target_moments(
    teacher: TeacherBatch, kind: str, temperature: float, mode: TemperatureMode, *, pairwise: bool
) -> Moments:
    """The teacher's moments at a temperature, outside every gradient: those of pairs of neighbouring tags, or of tags.

    A parser's marginals are of what the student's labels express (Wang et al., ACL 2021, Eq. 5): they may sum to less
    than one. Raises ValueError as `marginals_chain`.
    """
    from raykd.structures import Moments, tempered_moments

    if pairwise:
        return tempered_moments(teacher_chain(teacher, kind), temperature, mode)
    if teacher.on_labels is not None:
        return Moments(teacher.on_labels.marginals(temperature, mode))
    chain = marginals_chain(teacher, kind, softened=divides_scores(temperature, mode))
    return tempered_moments(chain, temperature, mode, pairwise=False)


def best_paths(
    teacher: TeacherBatch, k: int, kind: str
) -> tuple[Int[Tensor, "batch best time"], Float[Tensor, "batch best *time"]]:
    """The k best paths and their scores, −∞ where a sentence has fewer; any stored K ≥ k serves. Of a parser the k best
    labels of every word, with scores [B, K, T].

    Raises:
        ValueError: the batch holds no paths, or fewer than `k` per sentence.
    """
    if teacher.on_labels is not None:
        return teacher.on_labels.best(k)
    if teacher.paths_BKT is None or teacher.scores_BK is None:
        raise ValueError(f"objective {kind!r} reads the teacher's best paths and this batch has none")
    stored = teacher.paths_BKT.shape[1]
    if stored < k:
        raise ValueError(
            f"objective {kind!r} asks for k = {k} paths and {stored} are stored; precompute k = {k}"
        )
    return teacher.paths_BKT[:, :k], teacher.scores_BK[:, :k]


def has_transitions(chain: Chain) -> bool:
    """Whether the chain relates tags to each other or to the sentence's ends; a MaxEnt model does not."""
    parts = (chain.transitions, chain.start, chain.end)
    return any(part is not None and bool((part != 0).any()) for part in parts)
