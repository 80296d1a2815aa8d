"""Labels as objectives: gold labels, and the teacher's best labelling of unlabelled text.

Both are −log p_s(y), the negative log-likelihood of a labelling (Wang et al., ACL 2020, §2.1). The infimum is 0,
approached as the student puts all probability on that labelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from raykd.objectives.protocol import Objective, Text, best_paths
from raykd.signals import Need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import TeacherBatch
    from raykd.structures import Chain, Spans


class Gold(Objective):
    """−log p_s(y*) of gold labels; 0 for a sentence without gold labels."""

    kind: Literal["gold"] = "gold"
    text: ClassVar[Text] = "labelled"
    anneals: ClassVar[bool] = False
    reads_labels: ClassVar[bool] = True

    @override
    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        loss_B = negative_log_likelihood(_trainable(output), targets.tags_BT)
        return loss_B.where(targets.labelled_B, 0.0)


class Top1(Objective):
    """−log p_s(ŷ₁) of the teacher's best labelling on unlabelled text, of gold labels on labelled text.

    λ has no effect (Wang et al., ACL 2021, §4: the "Top-1" rows of Tables 2, 9 and 10). Labelled sentences keep their
    gold labels, which a teacher trained on them predicts almost without error (there, footnote 4). Not to be confused
    with `top_k` at k = 1: the loss is the same, but λ weighs `top_k`, and `top_k` uses the teacher on labelled
    sentences too.
    """

    kind: Literal["top_1"] = "top_1"
    anneals: ClassVar[bool] = False
    reads_labels: ClassVar[bool] = True
    needs_unlabelled: ClassVar[bool] = True

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return (Need("kbest", k=1),)

    @override
    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        paths_BKT, _ = best_paths(teacher, 1, self.kind)
        gold_BT = resize_labels(targets.tags_BT, paths_BKT.shape[2])
        labels_BT = gold_BT.where(targets.labelled_B[:, None], paths_BKT[:, 0])
        return negative_log_likelihood(_trainable(output), labels_BT)


def negative_log_likelihood(
    distribution: Chain | Spans, labels_BT: Int[Tensor, "batch time"]
) -> Float[Tensor, " batch"]:
    """Return −log p(y) [B] of one labelling per sentence.

    Args:
        distribution: Chain or spans of the model.
        labels_BT: Labels; values beyond a sentence's length are not read.
    """
    from raykd.structures import log_partition, score

    return log_partition(distribution) - score(distribution, resize_labels(labels_BT, distribution.time))


def resize_labels(labels_BT: Int[Tensor, "batch time"], time: int) -> Int[Tensor, "batch steps"]:
    """Return labels cut or padded with 0 to `time` columns; the longest sentence of a batch may be unlabelled.

    Args:
        labels_BT: Labels of each sentence.
        time: Number of columns.
    """
    from torch.nn.functional import pad

    return pad(labels_BT, (0, max(0, time - labels_BT.shape[1])))[:, :time]


def _trainable(output: Output) -> Chain | Spans:
    from raykd.structures import Mixture, WeightedPaths

    if isinstance(output.distribution, Mixture | WeightedPaths):
        raise TypeError("a mixture of several models, or an annotator, is evaluated, never trained")
    return output.distribution
