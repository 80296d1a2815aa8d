"""One small student for all files of this folder that only read it."""

import pytest

from tests.serving.trained import exported


@pytest.fixture(scope="session")
def names(tmp_path_factory):
    """The export of a student that finds names."""
    return exported(tmp_path_factory.mktemp("names"))[1]
