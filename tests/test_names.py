"""A search for a name leads to one or two places.

Names of modules differ by a word, and the abilities of a table's entry are stated in its file alone.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, takewhile
from pathlib import Path

import raykd
from raykd.corpora import SOURCES
from raykd.forms import FORMS
from raykd.objectives import OBJECTIVES
from raykd.students import STUDENTS
from raykd.students.embeddings import EMBEDDINGS
from raykd.tasks import TASKS
from raykd.teachers import TEACHERS

ENDINGS = {"", "s", "es", "y", "ies", "e", "er", "ers", "or", "ors", "ed", "ing", "ings", "ion", "ions"}
SHORTEST = 4
"""Letters that two names have in common at least, where they differ by an ending alone: fewer are chance."""


def module_names() -> Counter[str]:
    root = Path(raykd.__file__).parent
    return Counter(path.stem for path in root.rglob("*.py") if path.name != "__init__.py")


def differ_by_an_ending(first: str, second: str) -> bool:
    same = len(list(takewhile(lambda letters: letters[0] == letters[1], zip(first, second, strict=False))))
    return same >= SHORTEST and {first[same:], second[same:]} <= ENDINGS


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
    assert {pair for pair in pairs if differ_by_an_ending(*pair)} == set()


KEYS = {key for table in (STUDENTS, TEACHERS, OBJECTIVES, EMBEDDINGS, TASKS, SOURCES, FORMS) for key in table}
ATTRIBUTES = {"kind", "source", "task", "form", "structure"}
"""Holders of a key of a table: an attribute, or a key of plain data."""
ALLOWED = {
    "corpora/columns.py": "the kinds are of columns",
    "corpora/detect/__init__.py": "text without labels is no source that a sweep is drafted for",
    "corpora/detect/part_assignment.py": "text without labels is no source that a sweep is drafted for",
    "sweep/draft.py": "a comment of the draft, on columns that are counted",
    "sweep/early_stopping.py": "the kinds are of early stopping, which owns them",
    "serving/labeller/model.py": "what ships imports no table",
}
"""The files that may compare all the same, and why."""


def literals(node: ast.expr) -> Iterator[str]:
    """The strings of an operand of a comparison, or has as its items."""
    for part in node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def holds_a_key(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ATTRIBUTES or (node.attr == "name" and holds_a_key(node.value))
    if isinstance(node, ast.Subscript):
        return not ATTRIBUTES.isdisjoint(literals(node.slice))
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return called and not ATTRIBUTES.isdisjoint(name for argument in node.args for name in literals(argument))


def comparisons(source: str) -> Iterator[str]:
    """The comparisons of what holds a key of a table with such a key, as code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            strings = {name for operand in operands for name in literals(operand)}
            if not KEYS.isdisjoint(strings) and any(map(holds_a_key, operands)):
                yield ast.unparse(node)


def test_what_compares_a_key_of_a_table():
    compared = [
        'teachers.kind == "none"', 'student.kind in ("encoder", "seq2seq")', '"conll" != corpus.source',
        'plain["task"] == "pos"', 'task.form.name == "tree"', 'plain.get("kind") == "gold"',
    ]  # fmt: skip
    assert [*comparisons("\n".join(compared).replace('"', "'"))] == [
        code.replace('"', "'") for code in compared
    ]
    assert not [*comparisons("one.kind == other.kind; run.role == 'teacher'; wanted in student.forms")]


def test_no_key_of_a_table_is_compared_with_outside_the_file_that_owns_it():
    root = Path(raykd.__file__).parent
    files = [(path.relative_to(root).as_posix(), path) for path in sorted(root.rglob("*.py"))]
    compared = {name: [*comparisons(path.read_text(encoding="utf-8"))] for name, path in files}
    assert {name: codes for name, codes in compared.items() if codes and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not compared.get(name)] == [], "allowed without need"
