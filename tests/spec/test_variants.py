"""Variants of a sweep file: changed settings, replaced settings, and the places of faults."""

from __future__ import annotations

import pytest

from raykd.errors import SpecError
from raykd.spec import load

TEXT = """\
name: x
corpus: {source: conll, root: data, cap: 9}
student: {embedding_dim: {choice: [8, 16]}, hidden_dim: 8, vocabulary: {kind: word, min_count: 2}}
search: {trials: 16, sampler: tpe}
variants:
  small:
    corpus: {source: builtin}
    student: {embedding_dim: {int: [2, 3]}, vocabulary: {kind: wordpiece}}
    search: {trials: 2}
  other: {corpus: {cap: 5}, student: {embedding_dim: 4}}
  named: {name: y}
"""


@pytest.fixture
def read(tmp_path):
    def read(*variants: str, text: str = TEXT, overrides: tuple[str, ...] = ()):
        (tmp_path / "x.yaml").write_text(text)
        return load(tmp_path / "x.yaml", overrides, variants=variants)

    return read


def test_without_variants_the_section_is_not_there(read):
    assert set(read().tree) == {"name", "corpus", "student", "search"}


def test_keys_change_and_kinds_and_searches_are_replaced(read):
    tree = read("small").tree
    assert tree["name"] == "x-small"
    assert tree["corpus"] == {"source": "builtin"}
    assert tree["student"] == {
        "embedding_dim": {"int": [2, 3]}, "hidden_dim": 8, "vocabulary": {"kind": "wordpiece"}
    }  # fmt: skip
    assert tree["search"] == {"trials": 2, "sampler": "tpe"}


def test_variants_are_laid_over_in_order_and_overrides_come_last(read):
    tree = read("small", "other", overrides=("search.trials=7",)).tree
    assert (tree["name"], tree["corpus"], tree["search"]["trials"]) == (
        "x-small-other", {"source": "builtin", "cap": 5}, 7
    )  # fmt: skip
    assert tree["student"]["embedding_dim"] == 4
    assert read("named").tree["name"] == "y"


def test_lines_are_those_of_the_variant(read):
    document = read("small")
    assert document.place(("search", "trials")).line == 9
    assert document.place(("search", "sampler")).line == 4


@pytest.mark.parametrize(
    ("variants", "text", "message"),
    [
        (("smal",), TEXT, "5 variants: no variant 'smal'; did you mean 'small'? (small, other, named)"),
        (("small",), "name: x\n", "None variants: the file has no variants, got 'small'; remove --variant"),
        (
            (),
            "name: x\nvariants: 3\n",
            "2 variants: must be a mapping, got 3; write `variants: {NAME: {KEY: VALUE}}`",
        ),
        (
            (),
            "name: x\nvariants:\n  a: 1\n",
            "3 variants.a: must be a mapping, got 1; write `a: {KEY: VALUE}`",
        ),
    ],
)
def test_faults(read, variants, text, message):
    with pytest.raises(SpecError) as refused:
        read(*variants, text=text)
    (fault,) = refused.value.faults
    assert f"{fault.line} {fault.path}: {fault.message}".startswith(message)


def test_a_document_names_the_variants_that_are_not_laid_over_it(read):
    assert read().variants == ("small", "other", "named")
    assert read("other", overrides=("search.trials=7",)).variants == ("small", "named")
