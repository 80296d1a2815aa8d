"""No module's name stands three times: a name that a stranger searches for leads to one place, or to two."""

from collections import Counter
from pathlib import Path

import raykd


def test_no_name_of_a_module_stands_three_times():
    root = Path(raykd.__file__).parent
    names = Counter(path.name for path in root.rglob("*.py") if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 2} == set()
