"""Objectives: configurations of a loss, which state the teacher's signals that it needs, and build it.

    kind        loss of a sentence                                   needs of the teacher

    gold        −log p_s(y*)                                         nothing
    top_1       −log p_s(ŷ₁) where there is no gold, gold elsewhere  the best path
    emission    Σ_t CE(softmax e_t, softmax e_s)                     emissions
    token       Σ_t CE(p_t(y_t), p_s(y_t)) between MaxEnt models     token marginals
    top_k       −(1/K) Σ_k log p_s(ŷ_k)                              K best paths
    top_wk      −Σ_k w_k log p_s(ŷ_k)                                K best paths and their scores
    posterior   Σ_t KL(q_t(y_t) ‖ q_s(y_t))                          token marginals
    pos_top_wk  mean of posterior and top_wk                         all of these
    structural  −Σ_u P_t(u) Score_s(u) + log Z_s                     token marginals; pairs for a chain student
    logits      ½ Σ_t ‖r_s(t) − log p_t(t)‖²                         token marginals
    representation  Σ_t KL(softmax z_t ‖ softmax z̃_s)                hidden states of a layer
    hidden_states  Σ_m Σ_p ‖x_t,m(p) − f(x_s,g(m)(p))‖₂            states of every piece, in the training step
    attention   the same of rows of attention scores                 attention scores, in the training step
    mix         Σ_i w_i · loss_i                                     what its parts need

Losses are per sentence, summed over its labels (hidden_states and attention: over its pieces), in nats, or distances
(logits, hidden_states, attention, and representation by mse); what they are averaged over is the trainer's choice and
the same for all.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from raykd.objectives.labels import Gold, Top1
from raykd.objectives.mix import Mix, Part, annealed_objective
from raykd.objectives.protocol import Objective
from raykd.objectives.table import SINGLE

OBJECTIVES = MappingProxyType({kind.model_fields["kind"].default: kind for kind in (*SINGLE, Mix)})

if TYPE_CHECKING:
    ObjectiveConfig = Objective
else:
    ObjectiveConfig = Annotated[Union[(*SINGLE, Mix)], Field(discriminator="kind")]

__all__ = [
    "OBJECTIVES",
    "Gold",
    "Mix",
    "Objective",
    "ObjectiveConfig",
    "Part",
    "Top1",
    "annealed_objective",
]
