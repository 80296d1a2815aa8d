"""A name that a stranger searches for leads to one place, or to two: modules' names differ by a word."""

from collections import Counter
from itertools import combinations, takewhile
from pathlib import Path

import raykd

ENDINGS = {"", "s", "es", "y", "ies", "e", "er", "ers", "or", "ors", "ed", "ing", "ings", "ion", "ions"}
SHORTEST = 4
"""Letters that two names have in common at least, where they differ by an ending alone: fewer are chance."""

STILL_ALIKE = {
    ("chain", "chains"), ("digest", "digests"), ("embedding", "embeddings"), ("encoded", "encoding"),
    ("encoder", "encoding"), ("export", "exported"), ("model", "models"), ("page", "pages"), ("record", "records"),
    ("table", "tables"), ("track", "tracker"), ("vocabularies", "vocabulary"), ("window", "windows"),
}  # fmt: skip
"""Pairs that have still to get names which differ by a word. None may be added."""


def module_names() -> Counter[str]:
    root = Path(raykd.__file__).parent
    return Counter(path.stem for path in root.rglob("*.py") if path.name != "__init__.py")


def differ_by_an_ending(one: str, other: str) -> bool:
    same = len(list(takewhile(lambda letters: letters[0] == letters[1], zip(one, other, strict=False))))
    return same >= SHORTEST and {one[same:], other[same:]} <= ENDINGS


def test_no_name_of_a_module_stands_three_times():
    assert {name for name, count in module_names().items() if count > 2} == set()


def test_what_differs_by_an_ending():
    alike = [
        ("record", "recorder"),
        ("stopper", "stopping"),
        ("costs", "cost"),
        ("vocabulary", "vocabularies"),
    ]
    assert all(differ_by_an_ending(*pair) for pair in alike)
    assert not differ_by_an_ending("costs", "model_cost")
    assert not differ_by_an_ending("sweep", "sweep_faults")
    assert not differ_by_an_ending("tag", "tags"), "too short to tell"


def test_no_two_names_of_modules_differ_by_an_ending_alone():
    pairs = combinations(sorted(module_names()), 2)
    assert {pair for pair in pairs if differ_by_an_ending(*pair)} <= STILL_ALIKE
