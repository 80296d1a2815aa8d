"""The transition biases of a token classifier that labels every piece, and the file that comes with its weights."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import FiniteFloat, ValidationError

from raykd.errors import StoreError
from raykd.spec import Frozen

BIASES_FILE = "viterbi_calibration.json"
"""File beside the weights, with biases for each operating point of the decoder."""
DEFAULT = "default"
"""The operating point that is used if none is named."""
_PREFIX = "transition_bias_"
_EXPECTED = (
    'expected {"operating_points": {"default": {"biases": {"transition_bias_background_stay": 0.0, …}}}}'
)


class TransitionBiases(Frozen):
    """Numbers added to the score of a labelling for each pair of neighbouring pieces, by the kind of the pair.

    Pairs that are not listed are illegal in BIOES.
    """

    background_stay: FiniteFloat = 0.0
    """O → O. Larger values give fewer spans."""
    background_to_start: FiniteFloat = 0.0
    """O → B or S. Larger values give more spans, and so a higher recall."""
    end_to_background: FiniteFloat = 0.0
    """E or S → O."""
    end_to_start: FiniteFloat = 0.0
    """E or S → B or S: a span directly after another."""
    inside_to_continue: FiniteFloat = 0.0
    """B or I → I. Larger values give longer spans."""
    inside_to_end: FiniteFloat = 0.0
    """B or I → E. Larger values give shorter spans."""

    @classmethod
    def read(cls, folder: Path, operating_point: str) -> TransitionBiases:
        """Return the biases of an operating point; 0 for `default` where the checkpoint has no such file.

        Args:
            folder: folder of the checkpoint.
            operating_point: a name in its file.

        Raises:
            StoreError: the file cannot be read, or has no such operating point.
        """
        file = folder / BIASES_FILE
        if not file.is_file():
            if operating_point == DEFAULT:
                return cls()
            problem = f"has no {BIASES_FILE}, and so no operating point {operating_point!r}"
            raise StoreError(
                str(folder), problem, "omit teachers.operating_point, or give the six biases in it"
            )
        try:
            points = json.loads(file.read_text(encoding="utf-8"))["operating_points"]
            biases = {name: dict(point["biases"]) for name, point in points.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(str(file), f"cannot be read ({error!r})", _EXPECTED) from error
        if operating_point not in biases:
            hint = f"choose from {', '.join(biases)}"
            raise StoreError(str(file), f"has no operating point {operating_point!r}", hint)
        try:
            return cls(**{key.removeprefix(_PREFIX): value for key, value in biases[operating_point].items()})
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{operating_point}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise StoreError(str(file), problem, _EXPECTED) from error
