"""Numbers as they are stored: float32 values rounded to 16 or 8 bits, and the largest error that this makes.

Shapes: R rows, V values of one row.
"""

from __future__ import annotations

import numpy as np

INT8_MAX = 127
_FLOAT16_MAX = float(np.finfo(np.float16).max)
_NEVER = -1e4
"""The score of what may not be (`structures/labelled_arcs.py`), exact in float16."""


def encode_log_scores(values_RV: np.ndarray) -> tuple[np.ndarray, float]:
    """Float16 after subtracting each row's maximum, which changes no distribution: float16 is finest near 0, where the
    likely tags then are. Scores below float16's range become its lowest finite number, −∞ and −10⁴, the score of what
    may not be, stay.

    Raises:
        ValueError: a row has no finite maximum: no distribution can be read from it. Its second argument is the row.
    """
    maxima_R1 = values_RV.max(axis=1, keepdims=True)
    if not np.isfinite(maxima_R1).all():
        raise ValueError("without a finite maximum", int(np.flatnonzero(~np.isfinite(maxima_R1[:, 0]))[0]))
    # What may not be would be the largest error of the signal, were it rounded.
    shifted_RV = np.where(values_RV == _NEVER, values_RV, values_RV - maxima_R1)
    finite_RV = np.isfinite(shifted_RV)
    stored_RV = np.where(finite_RV, shifted_RV.clip(-_FLOAT16_MAX), shifted_RV).astype(np.float16)
    errors = np.abs(stored_RV[finite_RV].astype(np.float32) - shifted_RV[finite_RV])
    return stored_RV, float(errors.max(initial=0.0))


def encode_float16(values_RV: np.ndarray) -> tuple[np.ndarray, float]:
    """Float16; values beyond its range become its largest number. ValueError (with the row) where one is not finite."""
    _refuse_infinite(values_RV)
    stored_RV = values_RV.clip(-_FLOAT16_MAX, _FLOAT16_MAX).astype(np.float16)
    return stored_RV, float(np.abs(stored_RV.astype(np.float32) - values_RV).max(initial=0.0))


def encode_int8(values_RV: np.ndarray) -> tuple[np.ndarray, float]:
    """Whole numbers from −127 to 127: multiplied by the row's scale, max |row| / 127, they are the values again, off by
    half a scale at most. The scale is stored beside them. ValueError (with the row) where a value is not finite.
    """
    _refuse_infinite(values_RV)
    scales_R1 = np.abs(values_RV).max(axis=1, keepdims=True) / np.float32(INT8_MAX)
    steps_RV = np.divide(values_RV, scales_R1, out=np.zeros_like(values_RV), where=scales_R1 > 0)
    # A scale among the smallest numbers of float32 is rounded itself.
    stored_RV = np.rint(steps_RV).clip(-INT8_MAX, INT8_MAX).astype(np.int8)
    errors_RV = np.abs(stored_RV.astype(np.float32) * scales_R1 - values_RV)
    return stored_RV, float(errors_RV.max(initial=0.0))


def _refuse_infinite(values_RV: np.ndarray) -> None:
    if not np.isfinite(values_RV).all():
        raise ValueError("that are not finite", int(np.flatnonzero(~np.isfinite(values_RV).all(axis=1))[0]))
