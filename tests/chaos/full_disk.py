"""A full disk: what `sitecustomize` of a command's processes does to every file that it puts into the store."""

FULL_DISK = """
import errno, os, pathlib

store, room = pathlib.Path(os.environ["CHAOS_STORE"]), int(os.environ["CHAOS_ROOM"])
replace = os.replace


def size(path):
    try:
        return path.stat().st_size
    except OSError:  # another process was faster
        return 0


def full(source, target, **options):
    if store in pathlib.Path(target).parents:
        if sum(map(size, store.rglob("*"))) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    replace(source, target, **options)


os.replace = full
"""
