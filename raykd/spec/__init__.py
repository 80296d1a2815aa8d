"""The grammar of sweep files: YAML 1.2 with line numbers, searchable values, strict errors.

The grammar does not know which settings there are. Configuration models are passed in, and their errors are reported
with the file and line on which the user wrote the cause.
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
    parse_search,
    resolve,
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
    "load",
    "option_labels",
    "parse_search",
    "resolve",
    "searched_paths",
    "with_overrides",
]
