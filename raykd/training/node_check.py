"""The check of a node: executed on the node itself, which may lack something that the driver has."""

from __future__ import annotations

import time
import uuid

from raykd import __version__
from raykd.errors import StoreError
from raykd.storage.cache import cache_folder
from raykd.storage.store import Storage
from raykd.storage.streams import temporary_path

ATTEMPTS, PAUSE_S = 3, 1.0
"""Attempts to see a file just written by another machine, and seconds between them: a network folder shows a new file
with a delay."""
WRITTEN_BYTES = 1 << 16


def find_node_fault(store_uri: str, sign: str, driver_version: str, *, gpus: bool) -> str:
    """Return the fault of the node that executes this, with a hint; empty if the node can work for a sweep.

    Args:
        store_uri: of the sweep's store.
        sign: a file that the driver has just written into the store.
        driver_version: raykd's version on the driver.
        gpus: true if models will compute on GPUs of this node.
    """
    if __version__ != driver_version:
        return f"it has raykd {__version__} and the driver {driver_version}: install the same on every node"
    if gpus and not _gpus_work():
        return "PyTorch cannot use its GPUs: look at `nvidia-smi` there, and at the driver's version"
    store = Storage(store_uri)
    try:
        if not wait_for_file(store, sign):
            return (
                f"the store {store.address} is not the driver's there: mount it on that node, "
                "or give a store that every node reaches (s3://…)"
            )
        probe = f"{sign}-{uuid.uuid4().hex}"
        store.write(probe, bytes(WRITTEN_BYTES))
        store.remove(probe)
    except StoreError as error:
        return str(error)
    return "" if store.is_local else _cache_fault()


def wait_for_file(store: Storage, name: str) -> bool:
    """Return true if a file, just written by another machine, becomes visible to this process."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        if store.exists(name):
            return True
    return False


def _cache_fault() -> str:
    """The fault of the node's cache of an object store; empty if the cache can be written."""
    probe = temporary_path(cache_folder() / "probe")
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(bytes(WRITTEN_BYTES))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "set RAYKD_CACHE there to a folder with free space"
        return f"its cache {probe.parent} cannot be written ({reason}): {hint}"
    finally:
        probe.unlink(missing_ok=True)
    return ""


def _gpus_work() -> bool:
    import torch  # takes seconds, and only where GPUs are asked for

    return torch.cuda.is_available()
