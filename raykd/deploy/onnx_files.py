"""A model as it is served: an ONNX file, in float32 or with weights of 8 bits, run by ONNX Runtime on the CPU."""

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
"""The operators whose weights are stored in 8 bits. Embeddings are read by Gather."""
_MAX_BYTES = 2**31 - 1
"""Bytes of one protobuf message."""


@dataclass(frozen=True)
class OnnxFiles:
    """The files of one model, which read the same numbers and give the same outputs (`layers/graph.py`)."""

    float32: bytes
    int8: bytes


def onnx_files(model: Model) -> OnnxFiles:
    """Return `model` with its decoding as ONNX files; raises what `float32_file` raises."""
    float32 = float32_file(model)
    return OnnxFiles(float32, int8_file(float32))


def float32_file(model: Model) -> bytes:
    """Return `model` with its decoding as an ONNX file.

    Raises:
        ExportError: no such file is made of this kind of model, or it is larger than 2 GiB.
    """
    graph = model.to_onnx()
    if (size := graph.ByteSize()) > _MAX_BYTES:
        raise ExportError(f"its weights are {size / 2**30:.1f} GiB, and one ONNX file holds 2")
    return graph.SerializeToString()


def int8_file(float32: bytes) -> bytes:
    """Return the same model with weights of 8 bits.

    They are signed, with one scale for each column of a matrix and one for all embeddings; what is multiplied with them
    is rounded to 8 bits while it runs (ONNX Runtime's dynamic quantization).
    """
    # Only who exports needs ONNX, which takes half a second to import.
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
    """An ONNX file that labels batches, on some threads of the CPU."""

    def __init__(self, file: bytes, *, threads: int = 1):
        self._session = open_session(file, threads)
        self.inputs, self.outputs = (
            {tensor.name: list(tensor.shape) for tensor in side}
            for side in (self._session.get_inputs(), self._session.get_outputs())
        )
        """What it reads and gives: name → axes."""

    def labels(self, batch: TokenBatch) -> np.ndarray:
        """The best labels int64 [B, T], 0 on padding. Raises ValueError where the batch lacks what the model reads."""
        from raykd.layers.graph import LABELS

        return self._run(LABELS, batch)

    def scores(self, batch: TokenBatch) -> np.ndarray:
        """Each label's score before decoding, float32 [B, T, Y]; it raises what `labels` raises."""
        from raykd.layers.graph import SCORES

        return self._run(SCORES, batch)

    def _run(self, output: str, batch: TokenBatch) -> np.ndarray:
        from raykd.layers.graph import graph_inputs

        return self._session.run([output], graph_inputs(batch, self.inputs))[0]
