"""A dependency tree: a head and a relation for each word."""

from dataclasses import dataclass
from typing import ClassVar

from raykd.forms.form import LabelForm


@dataclass(frozen=True)
class Tree(LabelForm):
    """A dependency tree: a head and a relation for each word."""

    name: ClassVar[str] = "tree"


TREE = Tree()
