"""The origin of table rows in files, for errors and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raykd.errors import CorpusError


@dataclass(frozen=True)
class Rows:
    """Rows of a table and the file that they are read from."""

    file: str
    first: int = 0
    """Number of the first row, from 0, as pandas and `datasets` count."""
    lines: Sequence[int] | None = None
    """Line of each row, from 1, for text files."""

    def origin(self, row: int) -> tuple[str, int | None]:
        """Return the file and the line of a row."""
        if self.lines is not None:
            return self.file, self.lines[row]
        return f"{self.file} row {self.first + row} (the first is 0)", None

    def fault(self, row: int, problem: str, hint: str) -> CorpusError:
        """Return the error for a row.

        Args:
            row: Number of the row in the table.
            problem: Predicate of the message: "has a null".
            hint: Hint of the message.
        """
        if self.lines is not None:
            return CorpusError(self.file, self.lines[row], f"the line {problem}", hint)
        return CorpusError(self.file, None, f"row {self.first + row} (the first is 0) {problem}", hint)
