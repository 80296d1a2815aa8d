"""How phases report their progress: `cli/` implements this protocol, everything below only calls it."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Shows the progress of phases. A phase is begun, advanced unit by unit, and ended."""

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        """A phase of `total` units begins, `done` of which were done before."""
        ...

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None:
        """`units` more are done."""
        ...

    def detail(self, phase: str, detail: str) -> None:
        """What the phase is doing now."""
        ...

    def note(self, text: str) -> None:
        """A sentence that stays on the screen."""
        ...

    def warn(self, text: str) -> None:
        """A warning that stays on the screen."""
        ...

    def end(self, phase: str, summary: str = "") -> None:
        """A phase is done."""
        ...


class Silent:
    """A listener that shows nothing."""

    def begin(self, phase: str, total: int, *, done: int = 0) -> None:
        return None

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None:
        return None

    def detail(self, phase: str, detail: str) -> None:
        return None

    def note(self, text: str) -> None:
        return None

    def warn(self, text: str) -> None:
        return None

    def end(self, phase: str, summary: str = "") -> None:
        return None
