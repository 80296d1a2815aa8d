"""The words of the code stay plain: limits are those of well-read libraries (optuna, httpx, pydantic)."""

from pathlib import Path

import pytest

from tests import plain_english

ROOT = Path(__file__).parents[1]
LISTING = "python -m tests.plain_english {} lists them"


@pytest.fixture(params=["raykd", "tests", "benchmarks"], scope="module")
def counts(request) -> plain_english.Counts:
    return plain_english.count([ROOT / request.param])


def test_no_docstring_opens_with_a_question_word(counts):
    assert counts.places["opening"] == []


def test_at_most_a_fifth_of_the_docstrings_have_a_pronoun_in_the_first_clause(counts):
    assert counts.pronoun_percent <= 20


def test_at_most_one_vague_name_in_1000_lines(counts):
    assert counts.names_per_1000_lines <= 1


def test_what_other_rooms_use_documents_its_parameters():
    assert plain_english.functions_without_args(ROOT / "raykd") == []


def test_the_counts_see_what_they_count(tmp_path):
    """One fault of each kind, and the two pairs of names that are exempt."""
    (tmp_path / "module.py").write_text(
        '"""What it does."""\n\n\n'
        "def function(each, row):\n"
        '    """The rows, each in its place."""\n'
        "    own_BT = [row for found in each]\n"
        "    left, right = own_BT\n\n\n"
        "class Number:\n"
        "    def __eq__(self, other):\n"
        '        """Compare two numbers."""\n\n'
        "LIMIT = 3\n"
        '"""How many."""\n'
    )
    counts = plain_english.count([tmp_path])
    assert (counts.lines, counts.docstrings, counts.openings) == (15, 4, 2)
    assert len(counts.places["pronoun"]) == 1
    assert sorted(place.split()[-1] for place in counts.places["name"]) == ["each", "found", "own_BT"]


def test_functions_used_across_rooms_need_args(tmp_path):
    package = tmp_path / "package"
    for room, source in {
        "lower": "def bare(x): ...\n"
        "def documented(x):\n    '''Double.\n\n    Args:\n        x: A number.\n    '''\n"
        "def local(x): ...",
        "upper": "from package.lower.module import bare, documented",
    }.items():
        (package / room).mkdir(parents=True)
        (package / room / "module.py").write_text(source)
    assert [place.split()[-1] for place in plain_english.functions_without_args(package)] == ["bare"]
