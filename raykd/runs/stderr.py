"""Standard error without some lines: C++ writes there past Python, so that no logger can be asked to be quiet."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STANDARD_ERROR = 2


@contextmanager
def without_lines(unwanted: str) -> Iterator[None]:
    """Keeps lines that hold `unwanted` off standard error; all others go on as they come."""
    real, (reader, writer) = os.dup(STANDARD_ERROR), os.pipe()
    passing = threading.Thread(target=_pass_on, args=(reader, real, unwanted.encode()), daemon=True)
    passing.start()
    os.dup2(writer, STANDARD_ERROR)
    os.close(writer)
    try:
        yield
    finally:
        # This closes the pipe's last end, which ends the thread; a child process might keep it open.
        os.dup2(real, STANDARD_ERROR)
        passing.join(timeout=1.0)
        os.close(real)


def _pass_on(reader: int, real: int, unwanted: bytes) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if unwanted not in line:
                os.write(real, line)
