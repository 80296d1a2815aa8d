"""Rounding for storage: float32 values as 16 or 8 bits, with the largest error of the rounding.

Shapes: R rows, V values of one row.
"""

from __future__ import annotations

import numpy as np

INT8_MAX = 127
_FLOAT16_MAX = float(np.finfo(np.float16).max)
_IMPOSSIBLE = -1e4
"""The score of an impossible labelling (`structures/labelled_arcs.py`), exact in float16."""


def encode_log_scores(values_RV: np.ndarray) -> tuple[np.ndarray, float]:
    """Round log scores to float16 after subtracting each row's maximum.

    The subtraction changes no distribution, and float16 is finest near 0, where the scores of likely tags then are.
    Scores below the range of float16 become its lowest finite number. −∞ and −10⁴, the score of impossible labellings,
    stay.

    Args:
        values_RV: scores, float32.

    Returns:
        The scores as float16 [R, V], and the largest absolute error.

    Raises:
        ValueError: a row has no finite maximum, so it has no distribution. `args[1]` of the error is the row.
    """
    maxima_R1 = values_RV.max(axis=1, keepdims=True)
    if not np.isfinite(maxima_R1).all():
        raise ValueError("without a finite maximum", int(np.flatnonzero(~np.isfinite(maxima_R1[:, 0]))[0]))
    # Shifted and rounded, the scores of impossible labellings would be the largest error of the signal.
    shifted_RV = np.where(values_RV == _IMPOSSIBLE, values_RV, values_RV - maxima_R1)
    finite_RV = np.isfinite(shifted_RV)
    stored_RV = np.where(finite_RV, shifted_RV.clip(-_FLOAT16_MAX), shifted_RV).astype(np.float16)
    errors = np.abs(stored_RV[finite_RV].astype(np.float32) - shifted_RV[finite_RV])
    return stored_RV, float(errors.max(initial=0.0))


def encode_float16(values_RV: np.ndarray) -> tuple[np.ndarray, float]:
    """Round to float16; values beyond its range become its largest number.

    Args:
        values_RV: finite values, float32.

    Returns:
        The values as float16 [R, V], and the largest absolute error.

    Raises:
        ValueError: a value is not finite. `args[1]` of the error is the row.
    """
    _require_finite(values_RV)
    stored_RV = values_RV.clip(-_FLOAT16_MAX, _FLOAT16_MAX).astype(np.float16)
    return stored_RV, float(np.abs(stored_RV.astype(np.float32) - values_RV).max(initial=0.0))


def encode_int8(values_RV: np.ndarray) -> tuple[np.ndarray, float]:
    """Round to whole numbers from −127 to 127, in units of the row's scale, max |row| / 127.

    A value is restored by multiplying with the scale, which is stored beside the numbers; the error is half a scale at
    most.

    Args:
        values_RV: finite values, float32.

    Returns:
        The whole numbers as int8 [R, V], and the largest absolute error.

    Raises:
        ValueError: a value is not finite. `args[1]` of the error is the row.
    """
    _require_finite(values_RV)
    scales_R1 = np.abs(values_RV).max(axis=1, keepdims=True) / np.float32(INT8_MAX)
    steps_RV = np.divide(values_RV, scales_R1, out=np.zeros_like(values_RV), where=scales_R1 > 0)
    # A scale among the smallest numbers of float32 is rounded too, so a quotient may exceed 127.
    stored_RV = np.rint(steps_RV).clip(-INT8_MAX, INT8_MAX).astype(np.int8)
    errors_RV = np.abs(stored_RV.astype(np.float32) * scales_R1 - values_RV)
    return stored_RV, float(errors_RV.max(initial=0.0))


def _require_finite(values_RV: np.ndarray) -> None:
    if not np.isfinite(values_RV).all():
        raise ValueError("that are not finite", int(np.flatnonzero(~np.isfinite(values_RV).all(axis=1))[0]))
