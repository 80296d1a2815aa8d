"""Files of an exported folder, and their readers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from .lattice import Chain

FLOAT32, INT8 = "model.onnx", "model-int8.onnx"
CARD, LABELS, VOCABULARY, WEIGHTS = "export.json", "labels.json", "vocabulary.json", "model.safetensors"


class LabellerError(Exception):
    """A fault of an exported folder, or of a request to it, with a hint."""


def model_file(*, int8: bool) -> str:
    """Return the name of the model's file.

    Args:
        int8: True for the model in 8 bits, False for float32.
    """
    return INT8 if int8 else FLOAT32


def read_json(folder: Path, name: str) -> Any:
    """Return the content of a JSON file.

    Args:
        folder: Folder of the export.
        name: Name of the file.

    Raises:
        LabellerError: The file is missing or damaged.
    """
    file = folder / name
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "give a folder that raykd export wrote"
        raise LabellerError(f"{file}: there is no such file; {hint}") from None
    except ValueError as error:
        raise LabellerError(f"{file}: it is damaged ({error}); export the model again") from None


def read_chain(folder: Path) -> Chain:
    """Return the chain of a CRF from the weights: a safetensors file is a JSON header and raw numbers."""
    with open(folder / WEIGHTS, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))

        def read(name: str) -> np.ndarray:
            entry = header[f"head.{name}"]
            first, last = entry["data_offsets"]
            file.seek(8 + size + first)
            return np.frombuffer(file.read(last - first), "<f4").reshape(entry["shape"]).astype(np.float64)

        return Chain(read("transitions"), read("start"), read("end"))
