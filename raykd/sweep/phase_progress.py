"""The progress of one phase: finished units, the progress of the rest, and a forecast of the remaining time.

The forecast is the time worked per unit of work, times the remaining work; and at least as long as a single unit that
cannot be divided. The time counts from the first sign of work, because processes start once and not for every unit.
Between two signs of work the forecast runs down; once used up there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

from raykd.cluster.listener import Unit
from raykd.redact import redact
from raykd.sweep.status import PhaseStatus

EARLIEST_S = 3.0
"""Seconds of work after which there is a forecast before a unit has ended."""
EVENT_S = 5.0
"""Seconds for which an event is shown (an epoch, a unit that ended); afterwards the activity reported by a unit."""
FOUND_S = 1.0
"""A unit that ends sooner without a report was not computed: its result was in the store."""


@dataclass
class OpenUnit:
    """An unfinished unit."""

    unit: Unit
    began: float
    shares: dict[str, float] = field(default_factory=dict)
    """Part → finished share."""
    first: dict[str, float] = field(default_factory=dict)
    """Part → share that was finished before the work on the part began: a run may go on from a checkpoint."""
    part: str = ""
    """The part that reported last."""
    doing: str = ""
    """Activity of that part."""
    heard: float = -1.0
    """Time of the last report; below 0 before the first."""
    since: float = 0.0
    """Time of the first reported share."""
    done_since: float = 0.0
    """Finished share at that time, in units of the phase."""
    moved: float = 0.0
    """Time of the last change of a share."""

    def hear(self, part: str, share: float | None, doing: str, now: float, first: float) -> bool:
        """Keep the progress of a part; return True if its share changed, or at the first report of the unit."""
        moves = share is not None and share != self.shares.get(part)
        is_sign = moves or not self.is_heard
        self.part, self.doing, self.heard = part, doing, now
        if share is not None:
            fresh = not self.shares
            self.shares[part] = share
            self.first[part] = min(first, self.first.get(part, first))
            self.since, self.done_since = (now, self.done) if fresh else (self.since, self.done_since)
        self.moved = now if moves else self.moved
        return is_sign

    @property
    def is_heard(self) -> bool:
        """True once a part has reported progress."""
        return self.heard >= 0

    @property
    def done(self) -> float:
        """The finished share, in units of the phase."""
        return self._counted(self.shares)

    @property
    def done_before(self) -> float:
        """The share finished before the work began, in units of the phase."""
        return self._counted(self.first)

    @property
    def whole_s(self) -> float | None:
        """Estimated seconds for the whole unit; None if it is too early to tell."""
        worked, worked_s = self.done - self.done_since, self.moved - self.since
        return None if worked <= 0 or worked_s < EARLIEST_S else worked_s / worked * self.unit.counts

    def left_s(self, now: float, usual_s: float) -> float:
        """Estimated remaining seconds; below 0 if the unit takes longer than forecast.

        Args:
            now: The present time, in seconds.
            usual_s: Seconds for a whole unit, used while it is too early to tell.
        """
        whole_s = self.whole_s or usual_s
        return whole_s * (1 - self.done / max(self.unit.counts, 1)) - (now - self.moved)

    def _counted(self, shares: dict[str, float]) -> float:
        return self.unit.counts * fmean(shares.get(part, 0.0) for part in self.unit.parts)

    def __str__(self) -> str:
        share = self.shares.get(self.part, 0.0)
        progress = ", ".join(filter(None, (self.doing, f"{100 * share:.0f} %" if share else "")))
        return ": ".join(filter(None, (self.unit.parts.get(self.part, ""), progress)))


class PhaseProgress:
    """Follows one phase; times are seconds of one clock."""

    def __init__(self, name: str, total: int, done_before: int, now: float):
        self._name, self._total, self._finished_units, self._earlier_units = (
            name,
            total,
            done_before,
            done_before,
        )
        self._began, self._ended = now, None
        self._working_since: float | None = None
        self._last_sign = now
        self._not_worked = 0.0
        """Units, or parts of units, that count as finished without work: done before, or found in the store."""
        self._whole_s: list[float] = []
        """Seconds for a whole unit, of all ended units that reported a share."""
        self._detail, self._detail_at = "", now
        self.units: dict[str, OpenUnit] = {}
        """Key → unfinished unit."""

    @property
    def ended(self) -> bool:
        """True after the end of the phase."""
        return self._ended is not None

    def start(self, unit: Unit, now: float) -> None:
        """Begin a unit."""
        self.units[unit.key] = OpenUnit(unit, now)

    def part_progress(
        self, part: str, share: float | None, doing: str, now: float, first: float = 0.0
    ) -> bool:
        """Keep the progress of a part; return False if the part belongs to no unit of this phase."""
        unit = next((unit for unit in self.units.values() if part in unit.unit.parts), None)
        if unit is None:
            return False
        if unit.hear(part, share, redact(doing), now, first):
            self._last_sign = now
            if self._working_since is None:
                self._working_since = now
        return True

    def end_unit(self, key: str, now: float) -> None:
        """Remove an ended unit; `advance` counts it."""
        unit = self.units.pop(key, None)
        if unit is None:
            return
        if unit.shares and unit.done_since < unit.unit.counts:
            self._whole_s.append((now - unit.since) / (1 - unit.done_since / unit.unit.counts))
        was_stored = not unit.is_heard and now - unit.began < FOUND_S
        self._not_worked += unit.unit.counts if was_stored else unit.done_before

    def advance(self, units: int, detail: str, now: float) -> None:
        """Count finished units."""
        self._finished_units += units
        self.say(detail, now)
        if units and self._work > 0:
            self._last_sign = now
            if self._working_since is None:
                self._working_since = self._began

    def say(self, detail: str, now: float) -> None:
        """Keep a description of the current activity."""
        self._detail, self._detail_at = redact(detail), now

    def end(self, summary: str, now: float) -> None:
        """End the phase."""
        self._finished_units, self._ended = self._total, now
        self.units.clear()
        self.say(summary, now)

    @property
    def _within(self) -> float:
        return sum(unit.done for unit in self.units.values())

    @property
    def _work(self) -> float:
        """Units of work done since the phase began."""
        before = sum(unit.done_before for unit in self.units.values())
        return self._finished_units - self._earlier_units + self._within - before - self._not_worked

    def left_s(self, now: float) -> float | None:
        """Estimated remaining seconds of the phase; None before the first estimate and after its end."""
        work, remaining = self._work, self._total - self._finished_units - self._within
        if self.ended or self._working_since is None or work <= 0 or remaining <= 0:
            return None
        worked_s = self._last_sign - self._working_since
        if self._finished_units == self._earlier_units and worked_s < EARLIEST_S:
            return None
        left_s = max(worked_s / work * remaining - (now - self._last_sign), self._longest_s(now))
        return left_s if left_s > 0 else None

    def _longest_s(self, now: float) -> float:
        """Lower bound in seconds: the remaining time of the longest unit."""
        usual_s = fmean(self._whole_s) if self._whole_s else 0.0
        lefts = [unit.left_s(now, usual_s) for unit in self.units.values() if unit.shares]
        waiting = self._total - self._finished_units - sum(unit.unit.counts for unit in self.units.values())
        soonest_s = min(lefts, default=self._last_sign - now)
        return max([*lefts, soonest_s + (usual_s if waiting > 0 else 0.0)])

    def status(self, now: float) -> PhaseStatus:
        """Return the progress as plain data."""
        left_s = self.left_s(now)
        return PhaseStatus(
            self._name, self._total, self._finished_units, self._earlier_units,
            seconds=round((now if self._ended is None else self._ended) - self._began, 1), ended=self.ended,
            detail=self._shown(now), within=round(self._within, 4), left_s=left_s and round(left_s, 1),
        )  # fmt: skip

    def _shown(self, now: float) -> str:
        heard = [unit for unit in self.units.values() if unit.is_heard]
        if self._detail and (now - self._detail_at < EVENT_S or not heard):
            return self._detail
        return str(max(heard, key=lambda unit: unit.heard)) if heard else ""
