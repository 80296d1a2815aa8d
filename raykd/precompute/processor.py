"""The machine's processor; the module imports nothing heavy, so that all nodes answer quickly."""

from __future__ import annotations

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
"""Linux's description of the processor."""
_BF16 = frozenset(("avx512_bf16", "amx_bf16", "bf16"))
"""Flags of processors with bf16 instructions, on x86 and Arm."""


def processor_name() -> str:
    """Return the name of the processor."""
    names = _lines("model name")
    return names[0] if names else platform.processor() or platform.machine()


def lacks_bf16() -> bool:
    """Return true if the processor is known to have no bf16 instructions, so that PyTorch emulates them."""
    flags = [set(line.split()) for line in (*_lines("flags"), *_lines("Features"))]
    return bool(flags) and not flags[0] & _BF16


def _lines(name: str) -> list[str]:
    """The values of a key, one for each core; none if the system has no such file."""
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return []
    rows = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in rows if key.strip() == name]
