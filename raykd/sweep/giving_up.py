"""When a sweep stops because its trials fail: what they have in common is a fault to be corrected first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from raykd.figures.trial import Trial

FEWEST_ALL, FEWEST_MOST = 4, 6
"""So many trials have to have ended before it is said that all of them fail; that more than half fail alike."""

_VARYING = re.compile(r"[0-9a-f]{12,}|\d+(\.\d+)?(e-?\d+)?")
"""What differs between two messages with one reason: ids, epochs, seconds, bytes."""


def reason_to_give_up(trials: Iterable[Trial]) -> str:
    """Why no other trial is begun, given those that have ended; empty where others may be.

    It stops where all of at least `FEWEST_ALL` trials failed, whatever their reasons, or where more than half of at
    least `FEWEST_MOST` failed with the same one, numbers and ids in it aside. A choice of which one alternative of
    three cannot be trained does not get there; a fault that every setting shares always does.
    """
    ended = [trial for trial in trials if trial.state != "RUNNING"]
    messages = [trial.message for trial in ended if trial.state == "FAILED"]
    if not messages:
        return ""
    reasons = Counter(_VARYING.sub("#", message) for message in messages)
    reason, alike = reasons.most_common(1)[0]
    every = len(ended) >= FEWEST_ALL and len(messages) == len(ended)
    most = len(ended) >= FEWEST_MOST and 2 * alike > len(ended)
    if not every and not most:
        return ""
    example = next(message for message in messages if _VARYING.sub("#", message) == reason)
    return f"{len(messages)} of {len(ended)} trials failed, {alike} of them with: {example}"
