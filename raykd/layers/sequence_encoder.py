"""The interface of encoders between the input vectors and the head of a tagger.

Shapes: B batch, P positions (pieces, or other steps), D size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.layers.graph import Graph, Value


class SequenceEncoder(nn.Module, ABC):
    """A stack of layers over the vectors of a sequence.

    Attributes:
        input_size: components of an input vector.
        output_size: components of the outputs of every layer.
        depth: number of layers.
    """

    input_size: int
    output_size: int
    depth: int

    @abstractmethod
    def states(self, inputs_BPD: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the inputs, then the outputs [B, P, D] of every layer in order.

        Args:
            inputs_BPD: input vectors.
            lengths_B: length of each sequence.
        """

    @abstractmethod
    def sentence_state(self, states_BPD: Tensor, lengths_B: Tensor) -> Float[Tensor, "batch 1 size"]:
        """Return the states of the sentences.

        Args:
            states_BPD: outputs of a layer.
            lengths_B: length of each sequence.
        """

    @abstractmethod
    def add_to(self, graph: Graph, inputs_BPD: Value, lengths_B: Value) -> Value:
        """Add the encoder to an ONNX graph.

        Args:
            graph: graph that the nodes are added to.
            inputs_BPD: name of the input vectors.
            lengths_B: name of the lengths.

        Returns:
            Name of the outputs [B, P, D] of the last layer.
        """

    @abstractmethod
    def add_sentence_state_to(self, graph: Graph, states_BPD: Value, lengths_B: Value) -> Value:
        """Add `sentence_state` to an ONNX graph.

        Args:
            graph: graph that the nodes are added to.
            states_BPD: name of the outputs of a layer.
            lengths_B: name of the lengths.

        Returns:
            Name of the sentences' states [B, 1, D].
        """
