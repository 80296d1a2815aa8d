"""The BiLSTM student."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from raykd.layers.tagger_config import Size
from raykd.students.tagger_student import TaggerStudent

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.layers.bilstm import BiLSTM


class BiLSTMStudent(TaggerStudent):
    """Embedded pieces through a BiLSTM to a CRF or MaxEnt decoder (Mukherjee & Awadallah 2020, §3).

    With a word vocabulary and characters it is the student of Wang et al., ACL 2021, §4.1.
    """

    kind: Literal["bilstm"] = "bilstm"
    hidden_dim: Size
    """H, hidden size of each direction."""
    sizes: ClassVar[tuple[str, ...]] = ("hidden_dim", "layers")

    @override
    def _encoder(self, dropout: float) -> Callable[[int], BiLSTM]:
        from raykd.layers.bilstm import BiLSTM

        return partial(BiLSTM, hidden=self.hidden_dim, layers=self.layers, dropout=dropout)
