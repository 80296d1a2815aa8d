"""Origin of a sweep's results: the commit of the code and the user who started the sweep."""

from __future__ import annotations

import getpass
import os
import subprocess
from pathlib import Path

COMMIT = "RAYKD_GIT_COMMIT"
"""Environment variable with the commit of a copy without `.git`: a job's working directory, a container."""


def git_commit(folder: str | Path = ".") -> str | None:
    """Return the commit checked out in `folder`.

    Args:
        folder: Any folder of a git checkout.

    Returns:
        The full hash, with `-dirty` if tracked files differ from it. Outside git the environment variable named by
        `COMMIT`; None if it is not set.
    """
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return os.environ.get(COMMIT, "").strip() or None


def origin_tags() -> dict[str, str]:
    """Return tags for the commit and the user, with the names that MLflow's columns Version and Created by read."""
    commit = git_commit()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a user id without a name.
        user = None
    tags = {
        "git_commit": commit,
        "mlflow.source.git.commit": commit and commit.removesuffix("-dirty"),
        "mlflow.source.name": "raykd sweep",
        "mlflow.source.type": "LOCAL",
        "mlflow.user": user,
    }
    return {name: value for name, value in tags.items() if value is not None}
