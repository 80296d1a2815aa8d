"""The grammar of sweep files: YAML 1.2 with line numbers, searchable values, strict errors.

It knows nothing of what a sweep file is about: models are handed in, and their errors are told with the line
on which the user wrote the cause.
"""

from raykd.spec.base import Frozen
from raykd.spec.cover import covering
from raykd.spec.document import Document, KeyPath, dotted, load
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
from raykd.spec.variants import SMALL

__all__ = [
    "SMALL",
    "Choice",
    "Document",
    "FloatRange",
    "Frozen",
    "IntRange",
    "KeyPath",
    "Suggest",
    "assignments",
    "check",
    "covering",
    "dotted",
    "grid_size",
    "is_searched",
    "labels",
    "load",
    "resolve",
    "search_of",
]
