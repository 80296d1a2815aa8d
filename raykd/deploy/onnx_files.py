"""ONNX files of a model, in float32 or with 8-bit weights, run by ONNX Runtime on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from raykd.errors import ExportError
from raykd.layers.model import Model
from raykd.serving.labeller.session import open_session

if TYPE_CHECKING:
    import numpy as np

    from raykd.corpora.encoded_text import TokenBatch

IN_8_BITS = ("LSTM", "MatMul", "Gather")
"""Operators with weights of 8 bits; embeddings are read by Gather."""
_MAX_BYTES = 2**31 - 1
"""Largest size of one protobuf message, in bytes."""


@dataclass(frozen=True)
class OnnxFiles:
    """The ONNX files of one model; both have the same inputs and outputs (`layers/graph.py`)."""

    float32: bytes
    int8: bytes


def onnx_files(model: Model) -> OnnxFiles:
    """Return model and decoding as ONNX files.

    Args:
        model: A trained model.

    Raises:
        ExportError: See `float32_file`.
    """
    float32 = float32_file(model)
    return OnnxFiles(float32, int8_file(float32))


def float32_file(model: Model) -> bytes:
    """Return model and decoding as an ONNX file.

    Args:
        model: A trained model.

    Raises:
        ExportError: There is no ONNX graph for this kind of model, or the file is larger than 2 GiB.
    """
    graph = model.to_onnx()
    if (size := graph.ByteSize()) > _MAX_BYTES:
        raise ExportError(f"the weights are {size / 2**30:.1f} GiB, and one ONNX file holds at most 2")
    return graph.SerializeToString()


def int8_file(float32: bytes) -> bytes:
    """Return a copy of an ONNX file with weights of 8 bits.

    Weights are signed, with one scale for each column of a matrix and one for all embeddings. The values multiplied
    with them are rounded to 8 bits at run time (ONNX Runtime's dynamic quantization).

    Args:
        float32: Content of the file from `float32_file`.
    """
    # imported here: only exporting needs ONNX, which takes half a second to import.
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from raykd.layers.graph import quiet_export

    with TemporaryDirectory() as folder, quiet_export():
        source, target = Path(folder, "model.onnx"), Path(folder, "model-int8.onnx")
        source.write_bytes(float32)
        quantize_dynamic(
            source, target, op_types_to_quantize=IN_8_BITS, weight_type=QuantType.QInt8, per_channel=True
        )
        return target.read_bytes()


class Session:
    """An open ONNX file for labelling batches, on some threads of the CPU.

    Attributes:
        inputs: Name of each input → its axes.
        outputs: Name of each output → its axes.
    """

    def __init__(self, file: bytes, *, threads: int = 1):
        self._session = open_session(file, threads)
        self.inputs, self.outputs = (
            {tensor.name: list(tensor.shape) for tensor in side}
            for side in (self._session.get_inputs(), self._session.get_outputs())
        )
        """Inputs and outputs of the graph: name → axes."""

    def labels(self, batch: TokenBatch) -> np.ndarray:
        """Return the best labels int64 [B, T], 0 on padding; ValueError if the batch lacks an input of the model."""
        from raykd.layers.graph import LABELS

        return self._run(LABELS, batch)

    def scores(self, batch: TokenBatch) -> np.ndarray:
        """Return the scores of labels before decoding, float32 [B, T, Y]; ValueError as in `labels`."""
        from raykd.layers.graph import SCORES

        return self._run(SCORES, batch)

    def _run(self, output: str, batch: TokenBatch) -> np.ndarray:
        from raykd.layers.graph import graph_inputs

        return self._session.run([output], graph_inputs(batch, self.inputs))[0]
