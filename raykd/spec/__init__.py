"""The grammar of sweep files: YAML 1.2 with line numbers, searchable values, strict errors.

It does not know which settings there are: configuration models are passed in, and their errors are reported with
the file and line on which the user wrote the cause.
"""

from raykd.spec.base import Frozen
from raykd.spec.cover import covering
from raykd.spec.document import Document, load, overridden
from raykd.spec.fitting import MisfitError, fitted, flat, searched_paths
from raykd.spec.layers import SMALL
from raykd.spec.places import KeyPath, dotted
from raykd.spec.search import (
    Choice,
    FloatRange,
    IntRange,
    Suggest,
    assignments,
    grid_size,
    is_searched,
    labels,
    resolve,
    search_of,
)
from raykd.spec.validate import check

__all__ = [
    "SMALL",
    "Choice",
    "Document",
    "FloatRange",
    "Frozen",
    "IntRange",
    "KeyPath",
    "MisfitError",
    "Suggest",
    "assignments",
    "check",
    "covering",
    "dotted",
    "fitted",
    "flat",
    "grid_size",
    "is_searched",
    "labels",
    "load",
    "overridden",
    "resolve",
    "search_of",
    "searched_paths",
]
