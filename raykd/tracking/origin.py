"""Where a sweep's results come from: the commit of the code and the person who started it."""

from __future__ import annotations

import getpass
import os
import subprocess
from pathlib import Path

COMMIT = "RAYKD_GIT_COMMIT"
"""The environment's variable with the commit of a copy without `.git`: a job's working directory, a container."""


def git_commit(folder: str | Path = ".") -> str | None:
    """The commit that is checked out in `folder`, `-dirty` when tracked files differ from it; outside git what `COMMIT`
    says, or None.
    """
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return os.environ.get(COMMIT, "").strip() or None


def origin_tags() -> dict[str, str]:
    """What MLflow's own columns Version and Created by show, as far as it is known."""
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
