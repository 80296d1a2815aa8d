"""The common base of all objectives, and access to the parts of a teacher's batch.

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
    """Text on which a stage with this objective is trained by default. Gold labels do not exist for unlabelled text."""
    anneals: ClassVar[bool] = True
    """True if a stage with this objective alone trains on λ · loss + (1 − λ) · loss of labels."""
    follows_lambda: ClassVar[bool] = False
    """True if λ is among the weights of the objective."""
    reads_labels: ClassVar[bool] = False
    """True if the loss is a likelihood of labels. Such a loss touches every parameter of the model."""
    needs_unlabelled: ClassVar[bool] = False
    """True if the objective differs from gold labels on unlabelled text only."""
    maxent_only: ClassVar[bool] = False
    """True if teacher and student must both be without transitions."""
    by_label: ClassVar[bool] = True
    """True if, for a student with independent labels, the loss is a sum over labels, each computed from the label's
    scores and states alone. `compute_losses` may then compute it for some labels at a time."""
    reads_pairs: ClassVar[bool] = False
    """True if a student with transitions needs the teacher's pairs of neighbouring tags in addition to `needs`."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """Signals read by the loss."""
        return ()

    @property
    def reads_scores(self) -> bool:
        """True if the loss reads the scores of the student's head; other losses read its layers alone."""
        return not (self.label_layers or self.piece_layers or self.attention_layers)

    @property
    def lacks_layers(self) -> bool:
        """True if the loss compares the layers of two encoders, and neither a setting nor the student says which."""
        return False

    @property
    def label_layers(self) -> tuple[int, ...]:
        """Student layers with the label states read by the loss: the states that labels are predicted from."""
        return ()

    @property
    def piece_layers(self) -> tuple[int, ...]:
        """Student layers with the piece states read by the loss."""
        return ()

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """Student layers with the attention scores read by the loss."""
        return ()

    def with_layers_of(self, layers: Sequence[int]) -> Objective:
        """Return the objective with the layer map of a student that is cut from its teacher, unless it has a map.

        Args:
            layers: Number in the teacher's encoder of each layer of the student, from the input, 0; empty: not cut.
        """
        return self

    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        """Return the loss as a module. New parameters are drawn from torch's generator.

        Args:
            student: Sizes of the student.
            teacher: Sizes of the teacher.
            labelled: Share of labelled text, from 0 to 1, in the text over which the loss is averaged; only a mix uses
                it.
        """
        from raykd.objectives.single_loss import SingleLoss

        return SingleLoss(self, self.modules(student, teacher))

    def modules(self, student: Sizes, teacher: Sizes) -> Sequence[nn.Module]:
        """Return the loss's layers. They are trained with the student, and do not ship with it.

        Args:
            student: Sizes of the student.
            teacher: Sizes of the teacher.
        """
        return ()

    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        """Return the loss per sentence [B], differentiable in the student.

        Args:
            output: Output of the student.
            targets: Gold labels of the batch.
            teacher: Signals of the teacher.
            modules: Layers of the loss, as `modules` returned them.

        Raises:
            ValueError: The batch lacks a signal that the objective needs.
        """
        return self.loss(output.distribution, teacher)  # type: ignore[arg-type]

    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        """Return the loss per sentence [B] of an objective that reads the student's distribution alone.

        Args:
            student: Distribution of the student.
            teacher: Signals of the teacher.

        Raises:
            ValueError: The batch lacks a signal that the objective needs.
            NotImplementedError: The objective reads more than the student's distribution.
        """
        raise NotImplementedError(f"{type(self).__name__} reads more than the student's distribution")


def teacher_chain(teacher: TeacherBatch, kind: str) -> Chain:
    """Return the teacher's chain, detached from every gradient.

    Args:
        teacher: Signals of the teacher.
        kind: Kind of the objective, for the message.

    Raises:
        ValueError: The batch has no emissions.
    """
    if teacher.chain is None:
        raise ValueError(f"objective {kind!r} reads the teacher's emissions and this batch has none")
    return teacher.chain.detach()


def marginals_chain(teacher: TeacherBatch, kind: str, *, softened: bool, tags: int) -> Chain:
    """Return a chain with the teacher's token marginals, detached from every gradient.

    A teacher without a chain gives independent tags with these marginals.

    Args:
        teacher: Signals of the teacher.
        kind: Kind of the objective, for the message.
        softened: Whether the scores will be divided by a temperature, for which marginals are not enough.
        tags: Number of tags.

    Raises:
        ValueError: The batch has neither a chain nor marginals, or `softened` is set and it has only marginals.
    """
    if teacher.chain is None and not softened:
        if teacher.on_labels is not None:
            return teacher.on_labels.chain()
        if teacher.marginals is not None:
            return teacher.marginals.detach()
        if teacher.sample_lengths_B is not None:
            from raykd.structures import Chain

            return Chain(_sample_moments(teacher, tags).token_BTY.log(), teacher.sample_lengths_B)
    return teacher_chain(teacher, kind)


def target_moments(
    teacher: TeacherBatch,
    kind: str,
    temperature: float,
    mode: TemperatureMode,
    *,
    pairwise: bool,
    tags: int,
) -> Moments:
    """Return the teacher's moments at a temperature, detached from every gradient.

    Those of samples are exact, at ϑ = 1 only.

    The marginals of a parser are those of the student's labels (Wang et al., ACL 2021, Eq. 5); they may sum to less
    than one.

    Args:
        teacher: Signals of the teacher.
        kind: Kind of the objective, for the message.
        temperature: ϑ, above 0.
        mode: Whether marginals (`local`) or scores (`global`) are softened.
        pairwise: Whether moments count pairs of neighbouring tags, or single tags.
        tags: Number of tags.

    Raises:
        ValueError: As of `marginals_chain`.
    """
    from raykd.structures import Moments, tempered_moments

    if teacher.sample_lengths_B is not None and temperature == 1:
        return _sample_moments(teacher, tags)
    if pairwise:
        return tempered_moments(teacher_chain(teacher, kind), temperature, mode)
    if teacher.on_labels is not None:
        return Moments(teacher.on_labels.marginals(temperature, mode))
    chain = marginals_chain(teacher, kind, softened=divides_scores(temperature, mode), tags=tags)
    return tempered_moments(chain, temperature, mode, pairwise=False)


def _sample_moments(teacher: TeacherBatch, tags: int) -> Moments:
    from raykd.structures import path_moments, path_weights

    assert teacher.paths_BKT is not None
    assert teacher.scores_BK is not None
    assert teacher.sample_lengths_B is not None
    weights_BK = path_weights(teacher.scores_BK)
    return path_moments(teacher.paths_BKT, weights_BK, teacher.sample_lengths_B, tags)


def best_paths(
    teacher: TeacherBatch, k: int, kind: str
) -> tuple[Int[Tensor, "batch best time"], Float[Tensor, "batch best *time"]]:
    """Return the k best paths [B, K, T] and their scores [B, K]; −∞ if a sentence has fewer.

    For a parser, return the k best labels of each word [B, K, T], with log-probabilities [B, K, T]. For an annotator,
    return all samples with their log-weights, whatever `k`.

    Args:
        teacher: Signals of the teacher, with K ≥ k stored paths.
        k: Number of paths.
        kind: Kind of the objective, for the message.

    Raises:
        ValueError: The batch holds no paths, or fewer than `k` per sentence.
    """
    if teacher.on_labels is not None:
        return teacher.on_labels.best(k)
    if teacher.paths_BKT is None or teacher.scores_BK is None:
        raise ValueError(f"objective {kind!r} reads the teacher's best paths and this batch has none")
    if teacher.sample_lengths_B is not None:
        return teacher.paths_BKT, teacher.scores_BK
    stored = teacher.paths_BKT.shape[1]
    if stored < k:
        raise ValueError(
            f"objective {kind!r} needs k = {k} paths and {stored} are stored; precompute k = {k}"
        )
    return teacher.paths_BKT[:, :k], teacher.scores_BK[:, :k]


def has_transitions(chain: Chain) -> bool:
    """Return True if a transition, start or end score of the chain is not 0; a MaxEnt model has none.

    Args:
        chain: Any chain.
    """
    parts = (chain.transitions, chain.start, chain.end)
    return any(part is not None and bool((part != 0).any()) for part in parts)
