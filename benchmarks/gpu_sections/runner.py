"""Run sections of a report one after the other, each in a process of its own with a time limit of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GRACE_S = 2.0
"""The last seconds of a section's limit, in which one that is late can only say where it is."""
LAST_LINES = 8
"""How many lines of its errors a section that failed shows."""


@dataclass(frozen=True)
class Place:
    """Where a section computes.

    Attributes:
        device: `cuda` or `cpu`.
        small: whether the section takes its small form, which a processor does in seconds.
        folder: an empty folder, removed after the section.
    """

    device: str
    small: bool
    folder: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the report: `write` prints its Markdown, in at most so many seconds."""

    name: str
    limit_s: float
    write: Callable[[Place], None]


def run_sections(sections: Sequence[Section], place: Place, out: Path) -> list[str]:
    """Run all sections; print the Markdown of each when it ends.

    Each writes its Markdown to a file of its own while it runs; where it fails or takes too long, its file ends with
    the reason.

    Args:
        sections: in the order in which they run.
        place: where they compute.
        out: the folder of the files.

    Returns:
        The names of the sections that failed.
    """
    out.mkdir(parents=True, exist_ok=True)
    failed = []
    for number, section in enumerate(sections, 1):
        file = out / f"{number}-{section.name.lower().replace(' ', '-')}.md"
        if not _run(section, place, file):
            failed.append(section.name)
        print(file.read_text(), flush=True)
    return failed


def _run(section: Section, place: Place, file: Path) -> bool:
    """Run one section; return False where it failed."""
    file.write_text(f"## {section.name[0].upper()}{section.name[1:]}\n\n")
    with tempfile.TemporaryDirectory(prefix="raykd-gpu-", ignore_cleanup_errors=True) as folder:
        errors, work = Path(folder, "errors"), Path(folder, "work")
        work.mkdir()
        given = Place(place.device, place.small, str(work))
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(section.write, given, file, errors)
        )
        started = time.monotonic()
        process.start()
        try:
            process.join(section.limit_s - GRACE_S)
            if late := process.is_alive():
                process.terminate()  # it says where it is
                process.join(GRACE_S)
        finally:
            process.kill()
            _end_group(process.pid)
            process.join()
        seconds = time.monotonic() - started
        with file.open("a") as markdown:
            if late:
                print(f"\n**Stopped after {seconds:.0f} s**, its limit.", file=markdown)
            elif process.exitcode:
                print(f"\n**Failed after {seconds:.0f} s** (code {process.exitcode}).", file=markdown)
            else:
                print(f"\n({seconds:.0f} s)", file=markdown)
            if late or process.exitcode:
                print(f"\n```\n{_last_lines(errors)}\n```", file=markdown)
    return not late and not process.exitcode


def _work(write: Callable[[Place], None], place: Place, file: Path, errors: Path) -> None:
    """Run a section in this process, with its output in the two files."""
    os.setsid()  # so that its end is also the end of what it started
    for path, stream in ((file, sys.stdout), (errors, sys.stderr)):
        with path.open("ab") as opened:
            os.dup2(opened.fileno(), stream.fileno())
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _stop)
    try:
        write(place)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def _stop(number: int, frame: object) -> None:
    raise TimeoutError("its time is over")


def _end_group(process_id: int | None) -> None:
    """Kill all that a section started and left running."""
    if process_id is not None:
        with suppress(ProcessLookupError):
            os.killpg(process_id, signal.SIGKILL)


def _last_lines(errors: Path) -> str:
    text = errors.read_text(errors="replace") if errors.exists() else ""
    lines = [line.rstrip()[:300] for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:]) or "(no output)"
