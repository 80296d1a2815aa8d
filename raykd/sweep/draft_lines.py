"""Lines of the sweep files that `raykd init` writes: YAML with comments in one column."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

WIDTH = 44
"""The column in which comments begin."""
PLAIN = re.compile(r"[A-Za-z_][\w./-]*")


def opening_comment(root: str, file: str, name: str) -> str:
    """Return the first lines of a sweep file: what it is, and the commands that read it.

    Args:
        root: The folder of the corpus.
        file: The name of the sweep file in the commands.
        name: The name of the sweep.
    """
    return f"""\
# {name}: a first search for students on the corpus in {root}, written by `raykd init`. Every value may be changed;
# docs/SWEEP_FILE.md has all keys.
#
# Look:      raykd check {file}
#            raykd plan {file} --small
# Try:       raykd sweep {file} --small    (some sentences, three students: minutes)
# Search:    raykd sweep {file}            (raykd plan {file} says how long)
# Choose:    raykd front {file}            (after the try: raykd front {file} --small)"""


def sweep_name(root: str) -> str:
    """Return a sweep's name: the corpus's folder, in the letters that a name may have.

    Args:
        root: The folder of the corpus.
    """
    path = root if "://" in root else str(Path(root).resolve())  # `.` has no name
    plain = unicodedata.normalize("NFKD", path.rstrip("/").rpartition("/")[2])
    letters = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_").lower() or "sweep"


def commented_line(text: str, comment: str) -> str:
    """Return a line with its comment in the column of comments.

    Args:
        text: The line.
        comment: The comment; empty for none.
    """
    return f"{text.ljust(WIDTH - 1)} # {comment}" if comment else text


def flow_yaml(value: object) -> str:
    """Return a plain value as YAML on one line.

    Args:
        value: The value.
    """
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{flow_yaml(str(key))}: {flow_yaml(item)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow_yaml(item) for item in value) + "]"
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)
