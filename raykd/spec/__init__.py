"""The grammar of sweep files: YAML 1.2 with line numbers, searchable values, strict errors.

It does not know which settings there are: configuration models are passed in, and their errors are reported with
the file and line on which the user wrote the cause.
"""

from raykd.spec.base import Frozen
from raykd.spec.cover import covering_trees
from raykd.spec.document import Document, load, with_overrides
from raykd.spec.fitting import MisfitError, fit_setting, flatten_tree, searched_paths
from raykd.spec.layers import SMALL
from raykd.spec.places import KeyPath, dotted
from raykd.spec.search import (
    Choice,
    FloatRange,
    IntRange,
    Suggest,
    assignments,
    grid_size,
    has_search,
    option_labels,
    resolve,
    parse_search,
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
    "covering_trees",
    "dotted",
    "fit_setting",
    "flatten_tree",
    "grid_size",
    "has_search",
    "option_labels",
    "load",
    "with_overrides",
    "resolve",
    "parse_search",
    "searched_paths",
]
