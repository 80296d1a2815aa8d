"""What long steps tell while they run. `cli/` draws it; everything below only speaks this protocol."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Hears of phases: `begin` one of `total` units, `advance` it, `note` a sentence, `end` it."""

    def begin(self, phase: str, total: int, *, done: int = 0) -> None: ...

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None: ...

    def detail(self, phase: str, detail: str) -> None: ...

    def note(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def end(self, phase: str, summary: str = "") -> None: ...


class Silent:
    """Hears everything and says nothing."""

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
