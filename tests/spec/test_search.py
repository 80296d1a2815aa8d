import itertools
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.spec import (
    Choice,
    FloatRange,
    IntRange,
    assignments,
    covering_trees,
    grid_size,
    has_search,
    option_labels,
    parse_search,
    resolve,
)

SPACE = {
    "name": "x",
    "student": {"embedding_dim": {"choice": [16, 32, 64]}, "decoder": {"choice": ["crf", "no"]}},
    "objective": {
        "choice": [
            {"kind": "top_wk", "k": {"int": [1, 3]}, "temperature": {"choice": [1, 2.5]}},
            {"kind": "posterior", "temperature": {"float": [0.5, 1.5], "step": 0.5}},
        ]
    },
    "teachers": [{"dropout": {"choice": [None, {"rate": {"choice": [0.1, 0.2]}}]}}],
}


class Scripted:
    """Answers from a table and records the questions."""

    def __init__(self, answers=()):
        self.answers, self.labels_by_name = dict(answers), {}

    def choice(self, name, labels, /):
        self.labels_by_name[name] = labels
        return self.answers.get(name, 0)

    def integer(self, name, over, /):
        self.labels_by_name[name] = over
        return self.answers.get(name, over.low)

    def number(self, name, over, /):
        self.labels_by_name[name] = over
        return self.answers.get(name, over.low)


def test_resolve_asks_by_dotted_names_and_labels():
    suggest = Scripted({"student.embedding_dim": 2, "objective.top_wk.k": 3, "teachers.0.dropout": 1})
    assert resolve(SPACE, suggest) == {
        "name": "x",
        "student": {"embedding_dim": 64, "decoder": "crf"},
        "objective": {"kind": "top_wk", "k": 3, "temperature": 1},
        "teachers": [{"dropout": {"rate": 0.1}}],
    }
    assert suggest.labels_by_name == {
        "student.embedding_dim": ("16", "32", "64"),
        "student.decoder": ("crf", "no"),
        "objective": ("top_wk", "posterior"),
        "objective.top_wk.k": IntRange(1, 3),
        "objective.top_wk.temperature": ("1", "2.5"),
        "teachers.0.dropout": ("null", '{"rate":{"choice":[0.1,0.2]}}'),
        'teachers.0.dropout.{"rate":{"choice":[0.1,0.2]}}.rate': ("0.1", "0.2"),
    }


def test_an_option_not_taken_is_not_asked_about():
    suggest = Scripted({"objective": 1})
    assert resolve(SPACE, suggest)["objective"] == {"kind": "posterior", "temperature": 0.5}
    assert suggest.labels_by_name["objective.posterior.temperature"] == FloatRange(0.5, 1.5, 0.5)
    assert not any(name.startswith("objective.top_wk") for name in suggest.labels_by_name)


def test_resolve_leaves_the_space_as_it_was():
    before = json.dumps(SPACE)
    resolve(SPACE, Scripted())["student"]["decoder"] = "changed"
    list(assignments(SPACE))
    assert json.dumps(SPACE) == before


def test_a_search_inside_a_search():
    tree = {"x": {"choice": [{"int": [1, 2]}, {"choice": ["a", "b"]}]}}
    suggest = Scripted({"x": 1, 'x.{"choice":["a","b"]}': 1})
    assert resolve(tree, suggest) == {"x": "b"}
    assert [plain["x"] for plain in assignments(tree)] == [1, 2, "a", "b"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (({"kind": "a"}, {"kind": "b", "k": 1}), ("a", "b")),
        (({"kind": "a"}, {"kind": "a", "k": 1}), ('{"kind":"a"}', '{"k":1,"kind":"a"}')),
        (({"x": 1}, {"x": 2}), ('{"x":1}', '{"x":2}')),
        ((True, "true"), ("true", '"true"')),
        ((1, 1.0), ("1", "1.0")),
        (("é", None), ("é", "null")),
        (([1, 2], "a"), ("[1,2]", "a")),
    ],
)
def test_labels_are_distinct_and_stable(options, expected):
    assert option_labels(options) == expected


def test_the_grid_is_every_assignment_once():
    grid = list(assignments(SPACE))
    # 3 sizes × 2 decoders × (3 k × 2 temperatures + 3 temperatures) × (none + 2 rates)
    assert len(grid) == grid_size(SPACE) == 3 * 2 * (3 * 2 + 3) * 3
    assert len({json.dumps(plain, sort_keys=True) for plain in grid}) == len(grid)
    assert not any(has_search(plain) for plain in grid)


def test_the_grid_goes_depth_first():
    grid = assignments({"a": {"choice": [1, 2]}, "b": {"choice": [3, 4]}})
    assert [(plain["a"], plain["b"]) for plain in grid] == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_steps_are_counted_in_decimals():
    grid = [plain["x"] for plain in assignments({"x": {"float": [0.1, 0.7], "step": 0.1}})]
    assert grid == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert [plain["x"] for plain in assignments({"x": {"int": [2, 8], "step": 3}})] == [2, 5, 8]


def test_a_float_without_step_has_no_grid():
    tree = {"training": {"dropout": {"float": [0.0, 0.5]}}}
    assert grid_size(tree) is None
    with pytest.raises(ValueError, match=r"training\.dropout: a float without step has no grid; add step"):
        list(assignments(tree))
    assert grid_size({"x": {"float": [0.5, 0.5]}}) == 1


def test_plain_trees_hold_no_search():
    plain = {"step": 1, "log": True, "a": [1, {"b": None}]}
    assert not has_search(plain)
    assert list(assignments(plain)) == [plain]
    assert grid_size(plain) == 1
    assert has_search({"a": [1, {"b": {"int": [1, 2]}}]})


@pytest.mark.parametrize(
    ("written", "search"),
    [
        ({"choice": [1, [2]]}, Choice((1, [2]))),
        ({"int": [1, 10]}, IntRange(1, 10)),
        ({"int": [1, 64], "log": True}, IntRange(1, 64, log=True)),
        ({"int": [2, 8], "step": 2}, IntRange(2, 8, 2)),
        ({"float": [1e-5, 1], "log": True}, FloatRange(1e-5, 1.0, log=True)),
        ({"float": [0, 1], "step": 0.1}, FloatRange(0.0, 1.0, 0.1)),
        ({"float": [-1, -1]}, FloatRange(-1.0, -1.0)),
        ({"kind": "x"}, None),
        (3, None),
    ],
)
def test_searches_are_read(written, search):
    assert parse_search(written) == search


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"choice": []}, "choice has no options; list at least one"),
        ({"choice": 3}, "choice takes a list of options, got 3; write {choice: [3, …]}"),
        ({"choice": [1, 2, 1]}, "choice holds 1 2 times; list each option once"),
        (
            {"choice": [1], "int": [1, 2]},
            "a search has one of choice, int, float, got choice and int; keep one of them",
        ),
        ({"choice": [1], "k": 3}, "no other key may stand beside `choice`, got k; remove k"),
        ({"choice": [1], "log": True}, "no other key may stand beside `choice`, got log; remove log"),
        ({"int": [1, 2], "stp": 1}, "only `step` and `log` may stand beside `int`, got stp; remove stp"),
        ({"int": [10, 1]}, "low 10 is above high 1; write {int: [1, 10]}"),
        ({"float": [1.0, 0.1]}, "low 1.0 is above high 0.1; write {float: [0.1, 1.0]}"),
        ({"int": [1, 2, 3]}, "int takes two numbers, got [1,2,3]; write {int: [low, high]}"),
        ({"int": 3}, "int takes two numbers, got 3; write {int: [low, high]}"),
        ({"int": [1, 2.5]}, "high of int must be a whole number, got 2.5"),
        ({"int": [True, 2]}, "low of int must be a whole number, got true"),
        ({"float": ["1e-5x", 1]}, 'low of float must be a number, got "1e-5x"'),
        ({"float": [0, 1], "step": "a"}, 'step of float must be a number, got "a"'),
        (
            {"float": [0, 1], "log": True},
            "a log range must start above 0, got low 0; raise low or remove log",
        ),
        ({"int": [0, 9], "log": True}, "a log range must start above 0, got low 0; raise low or remove log"),
        ({"int": [1, 9], "log": "yes"}, 'log must be true or false, got "yes"'),
        ({"int": [1, 9], "log": True, "step": 2}, "step and log cannot be combined; remove one of them"),
        ({"int": [1, 9], "step": 0}, "step must be above 0, got 0; write a positive step"),
        (
            {"int": [1, 10], "step": 2},
            "high 10 is never reached from 1 in steps of 2; write {int: [1, 9], step: 2} or [1, 11]",
        ),
        (
            {"float": [0, 1], "step": 0.3},
            "high 1 is never reached from 0 in steps of 0.3; write {float: [0, 0.9], step: 0.3} or [0, 1.2]",
        ),
    ],
)
def test_malformed_searches_say_how_to_correct_them(written, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 the whole message is compared below
        parse_search(written)
    assert str(caught.value) == message


leaves = st.one_of(
    st.integers(0, 3),
    st.booleans(),
    st.tuples(st.integers(0, 3), st.integers(1, 3)).map(lambda pair: {"int": [pair[0], sum(pair)]}),
    st.tuples(st.integers(0, 3), st.integers(1, 3)).map(lambda pair: {"float": [pair[0], sum(pair)]}),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(inner, max_size=2),
        st.lists(inner, min_size=1, max_size=3, unique_by=repr).map(lambda options: {"choice": options}),
    ),
    max_leaves=8,
)


@given(tree=trees)
def test_the_covering_meets_every_alternative_and_is_small(tree):
    expected = alternatives(tree, ())
    plain_trees = covering_trees(tree)
    met = set()
    for plain in plain_trees:
        assert not has_search(plain.tree)
        met |= {(origin, repr(value)) for origin, value in written_leaves(plain.tree, (), plain.origin)}
    assert expected <= met
    assert len(plain_trees) <= max(1, len(expected))


def alternatives(tree, path):
    """All scalars and ends of ranges with their places, enumerated without `covering_trees`."""
    search = parse_search(tree)
    if isinstance(search, Choice):
        return set().union(*(alternatives(o, (*path, "choice", i)) for i, o in enumerate(search.options)))
    if search is not None:
        return {(path, repr(search.low)), (path, repr(search.high))}
    if isinstance(tree, dict) and tree:
        return set().union(*(alternatives(item, (*path, key)) for key, item in tree.items()))
    if isinstance(tree, list) and tree:
        return set().union(*(alternatives(item, (*path, key)) for key, item in enumerate(tree)))
    return {(path, repr(tree))}


def written_leaves(tree, path, origin):
    items = (
        list(tree.items() if isinstance(tree, dict) else enumerate(tree))
        if isinstance(tree, dict | list)
        else []
    )
    if not items:
        yield origin(path), tree
    for key, item in items:
        yield from written_leaves(item, (*path, key), origin)


def test_the_covering_grows_with_the_sum_of_alternatives():
    tree = {key: {"choice": list(range(size))} for key, size in zip("abcdef", range(2, 8), strict=True)}
    assert grid_size(tree) == 2 * 3 * 4 * 5 * 6 * 7
    plain_trees = [plain.tree for plain in covering_trees(tree)]
    assert len(plain_trees) == 7
    assert all(before != after for before, after in pairwise(plain_trees))


CORPUS_AND_TEACHERS = {
    "corpus": {
        "source": "conll",
        "unlabelled_cap": {"choice": [1000, 3000]},
        "cap": {"en": {"int": [2, 6], "step": 2}, "default": 3},
    },
    "teachers": {
        "choice": [
            {"kind": "bilstm_crf", "hidden_dim": {"choice": [64, 128]}},
            {"kind": "bilstm_maxent", "training": {"dropout": {"float": [0.1, 0.3]}}},
        ]
    },
    "objective": {"kind": "structural"},
}


def test_searches_in_corpus_and_teachers_are_resolved_by_name():
    suggest = Scripted({"corpus.unlabelled_cap": 1, "corpus.cap.en": 4, "teachers": 1})
    assert resolve(CORPUS_AND_TEACHERS, suggest) == {
        "corpus": {"source": "conll", "unlabelled_cap": 3000, "cap": {"en": 4, "default": 3}},
        "teachers": {"kind": "bilstm_maxent", "training": {"dropout": 0.1}},
        "objective": {"kind": "structural"},
    }
    assert set(suggest.labels_by_name) == {
        "corpus.unlabelled_cap", "corpus.cap.en", "teachers", "teachers.bilstm_maxent.training.dropout"
    }  # fmt: skip
    assert suggest.labels_by_name["teachers"] == ("bilstm_crf", "bilstm_maxent")


def test_searches_in_corpus_and_teachers_are_covered_and_enumerated():
    plain_trees = covering_trees(CORPUS_AND_TEACHERS)
    assert {plain.tree["corpus"]["unlabelled_cap"] for plain in plain_trees} == {1000, 3000}
    assert {plain.tree["corpus"]["cap"]["en"] for plain in plain_trees} == {2, 6}
    assert {plain.tree["teachers"]["kind"] for plain in plain_trees} == {"bilstm_crf", "bilstm_maxent"}
    option = ("teachers", "choice", 1, "training", "dropout")
    assert option in {plain.origin(("teachers", "training", "dropout")) for plain in plain_trees}
    assert grid_size(CORPUS_AND_TEACHERS) is None
    stepped = json.loads(json.dumps(CORPUS_AND_TEACHERS).replace("[0.1, 0.3]", '[0.1, 0.3], "step": 0.1'))
    # 2 unlabelled texts × 3 caps × (2 sizes + 3 dropouts)
    assert len(list(assignments(stepped))) == grid_size(stepped) == 2 * 3 * (2 + 3)


def test_a_range_of_billions_is_counted_and_walked_without_being_listed():
    tree = {"student": {"hidden_dim": {"int": [0, 2147483647]}}, "seed": {"int": [0, 9007199254740992]}}
    assert grid_size(tree) == 2147483648 * 9007199254740993
    first = list(itertools.islice(assignments(tree), 3))
    assert [plain["seed"] for plain in first] == [0, 1, 2]


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"float": [-1.7e308, 1.7e308], "step": 1e-300}, "more than 1,000,000,000 steps"),
        ({"float": [0, 1], "step": 1e-12}, "more than 1,000,000,000 steps"),
        (
            {"choice": list(range(10_000))},
            "choice has 10,000 options, at most 200 are allowed; search a range",
        ),
    ],
)
def test_searches_beyond_any_use_are_refused(search, message):
    with pytest.raises(ValueError, match=message):
        parse_search(search)
