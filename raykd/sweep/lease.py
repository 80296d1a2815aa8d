"""The lease of a sweep: one driver at a time writes its records. What computes without a sweep has one too (`working`).

`lease.json` in the sweep's folder names its holder, who writes it anew every few seconds. Whoever finds one waits for
two things: the holder's process is gone from this machine, or the file has not changed for a while (no two machines'
clocks are compared). Object stores can neither create a file only where there is none nor compare and set, so a lease
counts once it is still one's own a moment after it was written: of several that are written at once the last one stays.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from raykd.cluster.background import repeated
from raykd.errors import StoreError
from raykd.storage.store import Storage

NAME = "lease.json"
WORKING = "working"
"""The folder of a store with the leases of what computes without a sweep."""
BEAT_S = 10.0
"""Seconds between two beats of the holder."""
STALE_S = 60.0
"""A lease that has not changed for so many seconds has no holder any more: longer than a store is out of reach now and
then."""
SETTLE_S = 1.0
"""Seconds until a new lease counts: longer than another driver takes from finding none to writing its own."""
LOST = signal.SIGUSR2
"""Interrupts the driver; Ctrl-C's signal is ignored in jobs that a shell has put into the background."""


class Lease:
    """A sweep's lease in its `folder`, in the file `name`; `held` takes it and keeps it. `verb`: what computes without
    a sweep.
    """

    def __init__(self, folder: Storage, verb: str = "", name: str = NAME):
        self._folder, self._verb, self._name = folder, verb, name
        self._token, self._beats = uuid.uuid4().hex, 0
        self.lost_to = ""
        """Who has it instead, once it is lost."""

    def take(self, *, note: Callable[[str], None] = lambda text: None) -> None:
        """Take the lease; `note` is called before waiting for a sign of another holder.

        Raises:
            StoreError: another driver has it.
        """
        refuse_if_held(self._folder, self._name, note=note)
        self._write()
        time.sleep(SETTLE_S)
        found = _read(self._folder, self._name)
        if found.get("token") != self._token:
            raise _refusal(self._folder, found)

    def beat(self) -> None:
        """Show that the holder is alive, or find out that it is the holder no more."""
        if self._is_own():
            before = time.monotonic()
            self._write()
            # A process that was stopped in between may have written over the lease of another.
            if time.monotonic() - before > STALE_S - BEAT_S:
                self.lost_to = "nobody known: this driver was stopped for a while"

    def check(self) -> None:
        """Look whether the lease is still one's own; called before every write.

        Raises:
            StoreError: it is lost.
        """
        if not self._is_own():
            what = (
                f"this raykd {self._verb} has lost its place"
                if self._verb
                else "this driver has lost the sweep"
            )
            hint = "start it again" if self._verb else "the other goes on with it"
            problem = f"{what} to {self.lost_to}"
            raise StoreError(self._folder.address, problem, f"what it computed is kept, and {hint}")

    def release(self) -> None:
        """Give it back; nothing may beat any more."""
        if self._is_own():
            self._folder.remove(self._name)

    def _is_own(self) -> bool:
        if not self.lost_to:
            found = _read(self._folder, self._name)
            if found.get("token") != self._token:
                self.lost_to = _words(found) if found else "nobody known: its lease was removed"
        return not self.lost_to

    def _write(self) -> None:
        self._beats += 1
        self._folder.write_json(
            self._name, {"token": self._token, "beats": self._beats, "verb": self._verb, **_here()}
        )


@contextmanager
def held(
    folder: Storage,
    name: str = NAME,
    *,
    verb: str = "",
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[Lease]:
    """The lease of the sweep in `folder`, kept while the body runs, in the main thread. A body that loses it is
    interrupted.

    Raises:
        StoreError: another driver has it, or has taken it over.
    """
    lease = Lease(folder, verb, name)
    lease.take(note=note)
    before = signal.signal(LOST, _interrupt)
    try:
        # It ends first: a beat after the release would be a lease that nobody holds.
        with repeated(partial(_beat, lease), BEAT_S, name="raykd-lease"):
            yield lease
    except KeyboardInterrupt:
        if lease.lost_to:
            lease.check()
        raise
    finally:
        signal.signal(LOST, before or signal.SIG_DFL)
        with suppress(StoreError):
            lease.release()


@contextmanager
def working(storage: Storage, verb: str) -> Iterator[None]:
    """While the body runs, in the main thread, nothing is removed from `storage`: `raykd verb` computes parts there
    that no sweep uses. Any number of them may run at once.
    """
    try:
        with held(storage.child(WORKING), f"{verb}-{uuid.uuid4().hex}.json", verb=verb):
            yield
    finally:
        storage.remove_empty(WORKING)
        if storage.is_local:
            with suppress(OSError):  # where nothing was computed, there is no store either
                os.rmdir(storage.uri)


def refuse_if_working(storage: Storage, *, note: Callable[[str], None] = lambda text: None) -> None:
    """Raises StoreError where something computes in the store without a sweep. What a killed one left is removed."""
    for name in storage.names(f"{WORKING}/"):
        folder, _, file = name.rpartition("/")
        if file.endswith(".json"):
            refuse_if_held(storage.child(*folder.split("/")), file, note=note)
            storage.remove(name)
            storage.remove_empty(folder)


def refuse_if_held(
    folder: Storage, name: str = NAME, *, note: Callable[[str], None] = lambda text: None
) -> None:
    """Raises StoreError where another driver works on the sweep in `folder`; takes up to `STALE_S` to find out."""
    found = _read(folder, name)
    lives = _lives(found) if found else False
    if lives is False:
        return
    if lives:
        raise _refusal(folder, found)
    whose = "the store" if found["verb"] else "the sweep"
    note(f"{whose} has the lease of {_words(found)}; waiting up to {STALE_S:.0f} s for a sign of it")
    deadline = time.monotonic() + STALE_S
    while time.monotonic() < deadline:
        time.sleep(min(1.0, STALE_S / 10))
        now = _read(folder, name)
        if not now:
            return
        if now != found:
            raise _refusal(folder, now)


def holder(folder: Storage) -> tuple[str, bool] | None:
    """Who has the lease of the sweep in `folder`, and whether that process lives; None where nobody has it. Of another
    machine it is said to live while its lease is young: clocks may differ, so this is for people alone.
    """
    found = _read(folder)
    if not found:
        return None
    written = datetime.fromisoformat(found["written"])
    lives = _lives(found)
    young = (datetime.now(UTC) - written).total_seconds() < STALE_S
    return _words(found), young if lives is None else lives


def _refusal(folder: Storage, holder: Mapping[str, Any]) -> StoreError:
    if verb := holder["verb"]:
        problem = f"{_words(holder)} runs raykd {verb} in this store"
        return StoreError(folder.address, problem, "wait for its end, or stop it")
    hint = "wait for its end, or stop it and go on with --resume"
    return StoreError(folder.address, f"{_words(holder)} works on this sweep", hint)


def _beat(lease: Lease) -> bool:
    """Beat; whether the lease is lost, of which the main thread is informed."""
    # Out of reach: whether somebody took it meanwhile shows once the store answers.
    with suppress(StoreError):
        lease.beat()
    if lease.lost_to:
        signal.pthread_kill(threading.main_thread().ident or 0, LOST)
    return bool(lease.lost_to)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _read(folder: Storage, name: str = NAME) -> Mapping[str, Any]:
    """What stands in the lease; nothing where there is none."""
    return folder.find_json(name) or {}


def _here() -> dict[str, Any]:
    process = psutil.Process()
    return {
        "host": socket.gethostname(), "process": process.pid, "started": process.create_time(),
        "machine": _machine(), "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


def _machine() -> str:
    """This machine since it was started, and this container on it: where process numbers mean the same."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    return f"{uuid.getnode():x}"


def _lives(found: Mapping[str, Any]) -> bool | None:
    """Whether the holder's process runs beside this one; None where that cannot be seen from here."""
    if found["machine"] != _machine():
        return None
    if found["process"] == os.getpid():
        return False  # a driver that started again, or could not give it back
    try:
        process = psutil.Process(found["process"])
        return process.create_time() == found["started"] and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _words(found: Mapping[str, Any]) -> str:
    return f"process {found['process']} on {found['host']}"
