"""Small students of all kinds, shared by the read-only tests of this folder."""

import pytest

from tests.serving.trained import exported, of_tags, of_trees


@pytest.fixture(scope="session")
def names(tmp_path_factory):
    """The export of a student for names."""
    return exported(tmp_path_factory.mktemp("names"))[1]


@pytest.fixture(scope="session")
def by_pos(tmp_path_factory):
    """(folder of the run, of the export) of a student that parses, whose labels name parts of speech."""
    return of_trees(tmp_path_factory.mktemp("by-pos"))


@pytest.fixture(scope="session")
def by_place(tmp_path_factory):
    """The same, whose labels name places."""
    return of_trees(tmp_path_factory.mktemp("by-place"), encoding="relative_position")


@pytest.fixture(scope="session")
def tagger(tmp_path_factory):
    """The export of a student that gives the parts of speech which these read."""
    return of_tags(tmp_path_factory.mktemp("tagger"))
