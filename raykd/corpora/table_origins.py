"""Where the rows of a table stand in the file that it was read from, as errors and examples name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raykd.errors import CorpusError


@dataclass(frozen=True)
class Rows:
    """Where the rows of a table stand in its file."""

    file: str
    first: int = 0
    """The number of the first row, from 0, as pandas and `datasets` count."""
    lines: Sequence[int] | None = None
    """Of a file of text: the line of each row, from 1."""

    def origin(self, row: int) -> tuple[str, int | None]:
        """The file and the line of a sentence."""
        if self.lines is not None:
            return self.file, self.lines[row]
        return f"{self.file} row {self.first + row} (the first is 0)", None

    def fault(self, row: int, problem: str, hint: str) -> CorpusError:
        """The error that names the row; `problem` says what it has."""
        if self.lines is not None:
            return CorpusError(self.file, self.lines[row], f"the line {problem}", hint)
        return CorpusError(self.file, None, f"row {self.first + row} (the first is 0) {problem}", hint)
