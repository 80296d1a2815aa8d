"""The lease of a sweep: one driver at a time writes its records. Commands that compute without a sweep have leases too.

`lease.json` in the sweep's folder names the holder, who writes it anew every few seconds. A process that finds a lease
waits for one of two signs: the holder's process is gone from this machine, or the file has not changed for a while
(clocks of two machines are never compared). Object stores can neither create a file only if it is missing, nor compare
and set. So a lease counts only if it is still there a moment after it was written: of several written at once, the last
one stays.
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
from typing import Any, NamedTuple

import psutil

from raykd.cluster.background import repeated
from raykd.errors import StoreError
from raykd.storage.store import Storage

NAME = "lease.json"
WORKING = "working"
"""The folder of a store for leases of commands that compute without a sweep."""
BEAT_S = 10.0
"""Seconds between two writes of the holder."""
STALE_S = 60.0
"""A lease unchanged for so many seconds has no holder any more; longer than usual failures of a store."""
SETTLE_S = 1.0
"""Seconds until a new lease counts: longer than another driver takes from finding none to writing one."""
LOST = signal.SIGUSR2
"""Signal that interrupts the driver. Not Ctrl-C's signal: background jobs of a shell ignore it."""


class Lease:
    """The lease of a sweep; `hold_lease` takes and keeps it."""

    def __init__(self, folder: Storage, verb: str = "", name: str = NAME):
        """Name the lease, without taking it.

        Args:
            folder: Folder of the sweep.
            verb: The command that computes without a sweep; empty for a sweep.
            name: File of the lease.
        """
        self._folder, self._verb, self._name = folder, verb, name
        self._token, self._beats = uuid.uuid4().hex, 0
        self.lost_to = ""
        """The new holder, once the lease is lost."""

    def take(self, *, note: Callable[[str], None] = lambda text: None) -> None:
        """Take the lease.

        Args:
            note: Called before waiting for a sign of another holder.

        Raises:
            StoreError: Another driver has the lease.
        """
        refuse_if_leased(self._folder, self._name, note=note)
        self._write()
        time.sleep(SETTLE_S)
        content = _read(self._folder, self._name)
        if content.get("token") != self._token:
            raise _refusal(self._folder, content)

    def beat(self) -> None:
        """Show that the holder is alive, or find out that the lease is lost."""
        if self._is_held():
            before = time.monotonic()
            self._write()
            # A process that was stopped in between may have written over the lease of another.
            if time.monotonic() - before > STALE_S - BEAT_S:
                self.lost_to = "an unknown driver, as this one was suspended for a while"

    def check(self) -> None:
        """Raise StoreError if the lease is lost; called before every write.

        Raises:
            StoreError: The lease is lost.
        """
        if not self._is_held():
            loss = (
                f"this raykd {self._verb} has lost its place"
                if self._verb
                else "this driver has lost the sweep"
            )
            hint = "start it again" if self._verb else "the other driver goes on with it"
            problem = f"{loss} to {self.lost_to}"
            raise StoreError(self._folder.address, problem, f"computed parts are kept; {hint}")

    def release(self) -> None:
        """Remove the lease; `beat` must not be called any more."""
        if self._is_held():
            self._folder.remove(self._name)

    def _is_held(self) -> bool:
        if not self.lost_to:
            content = _read(self._folder, self._name)
            if content.get("token") != self._token:
                self.lost_to = (
                    _describe_holder(content) if content else "an unknown process, as the lease was removed"
                )
        return not self.lost_to

    def _write(self) -> None:
        self._beats += 1
        self._folder.write_json(
            self._name, {"token": self._token, "beats": self._beats, "verb": self._verb, **_this_process()}
        )


@contextmanager
def hold_lease(
    folder: Storage,
    name: str = NAME,
    *,
    verb: str = "",
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[Lease]:
    """Hold the lease of a sweep while the body runs, in the main thread; a body that loses it is interrupted.

    Args:
        folder: Folder of the sweep.
        name: File of the lease.
        verb: The command that computes without a sweep; empty for a sweep.
        note: Called before waiting for a sign of another holder.

    Raises:
        StoreError: Another driver has the lease, or has taken it over.
    """
    lease = Lease(folder, verb, name)
    lease.take(note=note)
    previous_handler = signal.signal(LOST, _interrupt)
    try:
        # The beats end before the release: a later beat would write a lease without a holder.
        with repeated(partial(_beat, lease), BEAT_S, name="raykd-lease"):
            yield lease
    except KeyboardInterrupt:
        if lease.lost_to:
            lease.check()
        raise
    finally:
        signal.signal(LOST, previous_handler or signal.SIG_DFL)
        with suppress(StoreError):
            lease.release()


@contextmanager
def hold_working_lease(storage: Storage, verb: str) -> Iterator[None]:
    """Keep everything in the store while the body runs, in the main thread: its parts belong to no sweep yet.

    Any number of such leases may be held at once.

    Args:
        storage: The store.
        verb: The command, as in `raykd verb`.
    """
    try:
        with hold_lease(storage.child(WORKING), f"{verb}-{uuid.uuid4().hex}.json", verb=verb):
            yield
    finally:
        storage.remove_empty(WORKING)
        if storage.is_local:
            with suppress(OSError):  # where nothing was computed, there is no store either
                os.rmdir(storage.uri)


def refuse_if_working(storage: Storage, *, note: Callable[[str], None] = lambda text: None) -> None:
    """Raise StoreError if a command computes in the store without a sweep; remove leases of killed commands.

    Args:
        storage: The store.
        note: Called before waiting for a sign of a holder.
    """
    for name in storage.names(f"{WORKING}/"):
        folder, _, file = name.rpartition("/")
        if file.endswith(".json"):
            refuse_if_leased(storage.child(*folder.split("/")), file, note=note)
            storage.remove(name)
            storage.remove_empty(folder)


def refuse_if_leased(
    folder: Storage, name: str = NAME, *, note: Callable[[str], None] = lambda text: None
) -> None:
    """Raise StoreError if a second driver works on the sweep; finding out takes up to `STALE_S` seconds.

    Args:
        folder: Folder of the sweep.
        name: File of the lease.
        note: Called before waiting for a sign of the holder.
    """
    content = _read(folder, name)
    lives = _holder_lives(content) if content else False
    if lives is False:
        return
    if lives:
        raise _refusal(folder, content)
    subject = "the store" if content["verb"] else "the sweep"
    note(
        f"{_describe_holder(content)} has the lease of {subject}; waiting up to {STALE_S:.0f} s for a sign of it"
    )
    deadline = time.monotonic() + STALE_S
    while time.monotonic() < deadline:
        time.sleep(min(1.0, STALE_S / 10))
        new_content = _read(folder, name)
        if not new_content:
            return
        if new_content != content:
            raise _refusal(folder, new_content)


class LeaseHolder(NamedTuple):
    """The holder of a lease: the process in words, and true if it probably lives."""

    process: str
    lives: bool


def lease_holder(folder: Storage) -> LeaseHolder | None:
    """Return the holder of a sweep's lease; None without a lease.

    A process of another machine counts as living while its lease is young. Clocks may differ, so show this to people,
    but do not decide by it.

    Args:
        folder: Folder of the sweep.
    """
    content = _read(folder)
    if not content:
        return None
    written = datetime.fromisoformat(content["written"])
    lives = _holder_lives(content)
    young = (datetime.now(UTC) - written).total_seconds() < STALE_S
    return LeaseHolder(_describe_holder(content), young if lives is None else lives)


def _refusal(folder: Storage, holder: Mapping[str, Any]) -> StoreError:
    if verb := holder["verb"]:
        problem = f"{_describe_holder(holder)} runs raykd {verb} in this store"
        return StoreError(folder.address, problem, "wait for its end, or stop it")
    hint = "wait for its end, or stop it and go on with --resume"
    return StoreError(folder.address, f"{_describe_holder(holder)} works on this sweep", hint)


def _beat(lease: Lease) -> bool:
    """Beat; return True, and interrupt the main thread, if the lease is lost."""
    # If the store is out of reach, it will show later whether the lease was taken meanwhile.
    with suppress(StoreError):
        lease.beat()
    if lease.lost_to:
        signal.pthread_kill(threading.main_thread().ident or 0, LOST)
    return bool(lease.lost_to)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _read(folder: Storage, name: str = NAME) -> Mapping[str, Any]:
    """Return the content of the lease; empty if there is none."""
    return folder.find_json(name) or {}


def _this_process() -> dict[str, Any]:
    process = psutil.Process()
    return {
        "host": socket.gethostname(), "process": process.pid, "started": process.create_time(),
        "machine": _machine(), "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


def _machine() -> str:
    """Return an id of the machine's boot and of the container: process numbers are comparable within them."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    return f"{uuid.getnode():x}"


def _holder_lives(content: Mapping[str, Any]) -> bool | None:
    """True if the holder's process runs on this machine; None if the machine is another one."""
    if content["machine"] != _machine():
        return None
    if content["process"] == os.getpid():
        return False  # this process held it before: it started again, or could not remove it
    try:
        process = psutil.Process(content["process"])
        return process.create_time() == content["started"] and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _describe_holder(content: Mapping[str, Any]) -> str:
    return f"process {content['process']} on {content['host']}"
