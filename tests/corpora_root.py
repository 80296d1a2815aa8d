"""The folder of real corpora for some tests; the tests skip, saying so, where they do not."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def corpora_root(*parts: str) -> Path:
    """The folder of the real corpora, or what lies below it: RAYKD_CORPORA, else ../shared/data.

    Skips the calling test where it is absent.
    """
    root = Path(os.environ.get("RAYKD_CORPORA", REPOSITORY.parent / "shared" / "data"))
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is absent: set RAYKD_CORPORA to the folder of the real corpora")
    return path
