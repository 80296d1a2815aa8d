"""Run many damaged inputs in a separate process, with limits on memory and processor time, and count the outcomes.

`python -m tests.fuzz.cases KIND SEED CASES` prints the counts as JSON.

KIND names a module of this package with `cases(seed) -> Iterator[(damage, call, harmless)]`: the name of the damage,
what is called with it, and whether it must succeed.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from raykd.errors import RaykdError

SECONDS, BYTES = 10, 2 * 2**30
"""Of one case: its time on a processor; the memory beside what the process has when the first case begins."""


class HangError(BaseException):
    """A case took more than the allowed seconds. No `except Exception` catches it."""


def main(kind: str, seed: int, cases: int) -> dict[str, Any]:
    """Outcomes of the cases, by damage: accepted, refused; and every one that did otherwise, with its number."""
    cases_of_kind = importlib.import_module(f"tests.fuzz.{kind}").cases(seed)
    signal.signal(signal.SIGPROF, _hang)
    _limit_memory()
    counts: dict[str, Counter[str]] = {}
    wrong: list[dict[str, Any]] = []
    slowest = 0.0
    for number, (damage, call, harmless) in enumerate(islice(cases_of_kind, cases)):
        began = time.process_time()
        ended, detail = _end_of(call)
        slowest = max(slowest, time.process_time() - began)
        counts.setdefault(damage, Counter())[ended] += 1
        if ended not in ("accepted", "refused") or (harmless and ended != "accepted"):
            wrong.append({"case": number, "damage": damage, "ended": ended, "detail": detail[-1500:]})
    return {"counts": counts, "wrong": wrong, "slowest_s": round(slowest, 2)}


def _end_of(call: Any) -> tuple[str, str]:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        call()
    except RaykdError as error:
        return "refused", str(error)
    except HangError:
        return "hang", traceback.format_exc()
    except MemoryError:
        gc.collect()
        return "memory", traceback.format_exc()
    except Exception:
        return "traceback", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "accepted", ""


def _hang(number: int, frame: FrameType | None) -> None:
    raise HangError


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
