"""The end of a sweep with failing trials: a fault common to all has to be corrected first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from raykd.figures.trial import Trial

FEWEST_ALL, FEWEST_MOST = 4, 6
"""Trials that must have ended before the sweep stops because all failed, or because more than half failed alike."""

_VARYING = re.compile(r"[0-9a-f]{12,}|\d+(\.\d+)?(e-?\d+)?")
"""Parts of a message that vary though the reason is the same: ids, epochs, seconds, bytes."""


def reason_to_give_up(trials: Iterable[Trial]) -> str:
    """Return the reason to begin no further trial; empty if the sweep goes on.

    The sweep stops if all of at least `FEWEST_ALL` trials failed, whatever their reasons, or if more than half of at
    least `FEWEST_MOST` failed for the same reason, apart from numbers and ids in the message. A choice in which one of
    three alternatives cannot be trained does not stop a sweep; a fault that every setting shares always does.
    """
    ended = [trial for trial in trials if trial.state != "RUNNING"]
    messages = [trial.message for trial in ended if trial.state == "FAILED"]
    if not messages:
        return ""
    reasons = Counter(_VARYING.sub("#", message) for message in messages)
    reason, alike = reasons.most_common(1)[0]
    all_failed = len(ended) >= FEWEST_ALL and len(messages) == len(ended)
    most_failed_alike = len(ended) >= FEWEST_MOST and 2 * alike > len(ended)
    if not all_failed and not most_failed_alike:
        return ""
    example = next(message for message in messages if _VARYING.sub("#", message) == reason)
    return f"{len(messages)} of {len(ended)} trials failed, {alike} of them with: {example}"
