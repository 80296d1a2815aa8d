"""Whether a node can do a sweep's work: executed on the node itself, which may lack what the driver has."""

from __future__ import annotations

import time
import uuid

from raykd import __version__
from raykd.errors import StoreError
from raykd.storage.cache import cache_folder
from raykd.storage.store import Storage
from raykd.storage.streams import temporary_path

ATTEMPTS, PAUSE_S = 3, 1.0
"""How often one looks for what another machine has just written, and the seconds between: a network folder shows a new
file a moment later."""
WRITTEN_BYTES = 1 << 16


def find_node_fault(store_uri: str, sign: str, driver_version: str, *, gpus: bool) -> str:
    """What keeps the node that executes this from a sweep's work, with what to do about it; empty where nothing does.

    sign: a file that the driver has just written into the store. gpus: whether models are to compute on GPUs here.
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
        own_file = f"{sign}-{uuid.uuid4().hex}"
        store.write(own_file, bytes(WRITTEN_BYTES))
        store.remove(own_file)
    except StoreError as error:
        return str(error)
    return "" if store.is_local else _cache_fault()


def wait_for_file(store: Storage, name: str) -> bool:
    """Whether this process sees the file `name`, which another machine has just written, after a few looks."""
    for look in range(ATTEMPTS):
        if look:
            time.sleep(PAUSE_S)
        if store.exists(name):
            return True
    return False


def _cache_fault() -> str:
    """Why this node cannot keep copies of an object store's files."""
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
