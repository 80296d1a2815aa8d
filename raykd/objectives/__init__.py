"""Distillation objectives: each is its hyper-parameters, says what it needs of a teacher, computes its loss.

    gold        −log p_s(y*)                                       nothing
    top_1       −log p_s(ŷ₁) where there is no gold, gold elsewhere  the best path
    emission    Σ_t CE(softmax e_t, softmax e_s)                   emissions
    token       Σ_t CE(p_t(y_t), p_s(y_t)) between MaxEnt models   token marginals
    top_k       −(1/K) Σ_k log p_s(ŷ_k)                            K best paths
    top_wk      −Σ_k w_k log p_s(ŷ_k)                              K best paths and their scores
    posterior   Σ_t KL(q_t(y_t) ‖ q_s(y_t))                        token marginals
    pos_top_wk  mean of posterior and top_wk                       all of these
    structural  −Σ_u P_t(u) Score_s(u) + log Z_s                   token marginals; pairs for a chain student

Losses are per sentence, summed over its tokens, in nats; what they are averaged over is the trainer's choice
and the same for all. Tags, gold or decoded by a teacher, travel as paths: `TeacherBatch.paths_BKT`.
"""

from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from raykd.objectives.emission import Emission
from raykd.objectives.gold import Gold
from raykd.objectives.pos_top_wk import PosTopWK
from raykd.objectives.posterior import Posterior
from raykd.objectives.protocol import Objective
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_1 import Top1
from raykd.objectives.top_k import TopK
from raykd.objectives.top_wk import TopWK

OBJECTIVES = MappingProxyType(
    {
        "gold": Gold,
        "top_1": Top1,
        "emission": Emission,
        "token": Token,
        "top_k": TopK,
        "top_wk": TopWK,
        "posterior": Posterior,
        "pos_top_wk": PosTopWK,
        "structural": Structural,
    }
)

ObjectiveConfig = Annotated[
    Gold | Top1 | Emission | Token | TopK | TopWK | Posterior | PosTopWK | Structural,
    Field(discriminator="kind"),
]

LABELS = frozenset({"gold", "top_1"})
"""Kinds that are the likelihood of labels and nothing beside it: λ, which weighs an objective against that
likelihood, has no say."""

__all__ = [
    "LABELS",
    "OBJECTIVES",
    "Emission",
    "Gold",
    "Objective",
    "ObjectiveConfig",
    "PosTopWK",
    "Posterior",
    "Structural",
    "Token",
    "Top1",
    "TopK",
    "TopWK",
]
