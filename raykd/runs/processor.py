"""The processor of this machine; nothing heavy is imported, so any node says it quickly."""

from __future__ import annotations

import platform


def processor() -> str:
    """Its name."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
