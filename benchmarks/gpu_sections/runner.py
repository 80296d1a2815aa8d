"""Run the sections of a report in turn, in separate processes with time limits."""

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
"""Last seconds of a section's limit, for the traceback of a section that is late."""
LAST_LINES = 8
"""Lines of errors shown for a section that failed."""


@dataclass(frozen=True)
class Place:
    """The device and the folder of a section.

    Attributes:
        device: `cuda` or `cpu`.
        small: Run the small form, which takes seconds on a processor.
        folder: Empty folder, removed after the section.
    """

    device: str
    small: bool
    folder: str = ""


@dataclass(frozen=True)
class Section:
    """One part of the report.

    Attributes:
        name: Title of the section, and with hyphens the name of the file.
        limit_s: Seconds after which the section is stopped.
        write: Prints the Markdown of the section.
    """

    name: str
    limit_s: float
    write: Callable[[Place], None]


def run_sections(sections: Sequence[Section], place: Place, out: Path) -> list[str]:
    """Run all sections, and print the Markdown of a section when it ends.

    Every section writes its Markdown to a file while it runs. The file of a section that fails or takes too long ends
    with the reason.

    Args:
        sections: Sections in the order in which they run.
        place: Device of the sections.
        out: Folder of the files.

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
    """Run one section; return False if it failed."""
    file.write_text(f"## {section.name[0].upper()}{section.name[1:]}\n\n")
    with tempfile.TemporaryDirectory(prefix="raykd-gpu-", ignore_cleanup_errors=True) as folder:
        errors, work = Path(folder, "errors"), Path(folder, "work")
        work.mkdir()
        section_place = Place(place.device, place.small, str(work))
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(section.write, section_place, file, errors)
        )
        started = time.monotonic()
        process.start()
        try:
            process.join(section.limit_s - GRACE_S)
            if late := process.is_alive():
                process.terminate()  # the section prints its traceback
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
    """Run a section in the current process, and write output and errors to the two files."""
    os.setsid()  # a new group, so that the processes it starts can be killed with it
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
    raise TimeoutError("the section reached its time limit")


def _end_group(process_id: int | None) -> None:
    """Kill the remaining processes of a section."""
    if process_id is not None:
        with suppress(ProcessLookupError):
            os.killpg(process_id, signal.SIGKILL)


def _last_lines(errors: Path) -> str:
    text = errors.read_text(errors="replace") if errors.exists() else ""
    lines = [line.rstrip()[:300] for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:]) or "(no output)"
