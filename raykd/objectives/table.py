"""The table of single objectives. To add one, add its file, its import and its line here."""

from __future__ import annotations

from typing import Annotated, Union

from pydantic import Field

from raykd.objectives.attention import Attention
from raykd.objectives.emission import Emission
from raykd.objectives.hidden_states import HiddenStates
from raykd.objectives.labels import Gold, Top1
from raykd.objectives.logits import Logits
from raykd.objectives.pos_top_wk import PosTopWK
from raykd.objectives.posterior import Posterior
from raykd.objectives.protocol import Objective
from raykd.objectives.representation import Representation
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_k import TopK
from raykd.objectives.top_wk import TopWK

SINGLE: tuple[type[Objective], ...] = (
    Gold,
    Top1,
    Emission,
    Token,
    TopK,
    TopWK,
    Posterior,
    PosTopWK,
    Structural,
    Logits,
    Representation,
    HiddenStates,
    Attention,
)

SingleObjective = Annotated[Union[(*SINGLE,)], Field(discriminator="kind")]
