"""The processor of this machine; nothing heavy is imported, so any node says it quickly."""

from __future__ import annotations

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
"""What Linux says of the processor."""
_BF16 = frozenset(("avx512_bf16", "amx_bf16", "bf16"))
"""Instructions on bf16, as x86 and Arm call them."""


def processor_name() -> str:
    """Its name."""
    names = _lines("model name")
    return names[0] if names else platform.processor() or platform.machine()


def lacks_bf16() -> bool:
    """Return whether the processor is known to have no instructions on bf16, so that PyTorch emulates them."""
    flags = [set(line.split()) for line in (*_lines("flags"), *_lines("Features"))]
    return bool(flags) and not flags[0] & _BF16


def _lines(name: str) -> list[str]:
    """The values of this name, one for each core; none where the system does not say them."""
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return []
    rows = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in rows if key.strip() == name]
