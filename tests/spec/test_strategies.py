"""Named strategies: replacing names, checking unused strategies, and the places of faults."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field

from raykd.errors import SpecError
from raykd.spec import Frozen, assignments, check, covering_trees, grid_size, load, option_labels


class Stage(Frozen):
    loss: Literal["gold", "logits"]
    weight: Annotated[float, Field(ge=0)] = 1.0


class Strategy(Frozen):
    name: str
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    scope: Literal["language", "all"] | None = None


class Sweep(Frozen):
    name: str = "x"
    size: int = 1
    strategy: Strategy | None = None


BASE = """\
strategies:
  D0: {stages: [{loss: gold}], scope: language}
  D4.1:
    stages:
      - {loss: logits, weight: 2}
      - {loss: gold}
  D4.2:
    stages:
      - loss: logits
        weight: {choice: [1, 3]}
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write a file with three strategies and one that extends it, and load the second."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(BASE)

    def read(text: str, *overrides: str, variants: tuple[str, ...] = ()):
        (tmp_path / "x.yaml").write_text(f"extends: base.yaml\n{text}\n")
        return load("x.yaml", overrides, variants=variants)

    return read


def faults(document, extra=None) -> list[str]:
    """Return the faults reported by `check`."""
    with pytest.raises(SpecError) as refused:
        check(document, Sweep, extra=extra)
    return [str(fault) for fault in refused.value.faults]


def refused(read, *args) -> list[str]:
    """Return the faults raised on reading."""
    with pytest.raises(SpecError) as caught:
        read(*args)
    return [str(fault) for fault in caught.value.faults]


def test_a_name_stands_for_its_strategy_and_the_others_are_dropped(read):
    document = read("strategy: D4.1")
    check(document, Sweep)
    stages = [{"loss": "logits", "weight": 2}, {"loss": "gold"}]
    assert document.tree == {"strategy": {"name": "D4.1", "stages": stages}}
    assert set(document.unused) == {"D0", "D4.2"}
    assert document.place(("strategy", "stages", 1, "loss")) == ("base.yaml", 6)
    assert document.place(("strategy",)) == ("base.yaml", 3)


def test_a_choice_of_names_is_a_conditional_space(read):
    """A strategy's searches exist only if the strategy is chosen."""
    document = read("strategy: {choice: [D0, D4.2, {name: own, stages: [{loss: gold, weight: 5}]}]}")
    check(document, Sweep)
    assert option_labels(tuple(document.tree["strategy"]["choice"])) == ("D0", "D4.2", "own")
    assert grid_size(document.tree) == 1 + 2 + 1
    chosen = [tree["strategy"] for tree in assignments(document.tree)]
    assert [(strategy["name"], strategy["stages"][0].get("weight")) for strategy in chosen] == [
        ("D0", None), ("D4.2", 1), ("D4.2", 3), ("own", 5)
    ]  # fmt: skip
    assert {plain.tree["strategy"]["name"] for plain in covering_trees(document.tree)} == {
        "D0",
        "D4.2",
        "own",
    }
    assert document.place(("strategy", "choice", 1, "stages", 0, "weight")) == ("base.yaml", 10)
    assert document.place(("strategy", "choice", 2, "stages")).file == "x.yaml"


def test_overrides_come_before_names_and_names_may_have_dots(read):
    document = read("", "strategies.D4.1.stages.0.weight=7", "strategy=D4.1", "strategies.D0.scope=all")
    assert document.tree["strategy"]["stages"][0]["weight"] == 7
    assert document.unused["D0"]["scope"] == "all"
    (fault,) = faults(read("strategy: D4.1", "strategies.D4.1.stages.0.weight=-1"))
    assert fault.startswith("--set strategies.D4.1.stages.0.weight: got -1")


def test_a_file_changes_single_items_of_a_strategy_that_it_inherits(read):
    text = """\
strategy: D4.1
strategies:
  D4.1: {stages: {1: {weight: 9}}}
  own: {stages: [{loss: gold}]}
variants:
  small: {strategies: {D4.1: {stages: {0: {weight: {choice: [3, 4]}}}}}}"""
    document = read(text)
    assert document.tree["strategy"]["stages"] == [
        {"loss": "logits", "weight": 2},
        {"loss": "gold", "weight": 9},
    ]
    assert document.place(("strategy", "stages", 1, "weight")) == ("x.yaml", 4)
    assert document.place(("strategy", "stages", 1, "loss")) == ("base.yaml", 6)
    assert set(document.unused) == {"D0", "D4.2", "own"}
    small = read(text, variants=("small",))
    assert small.tree["strategy"]["stages"][0] == {"loss": "logits", "weight": {"choice": [3, 4]}}
    assert small.tree["strategy"]["stages"][1]["weight"] == 9
    (fault,) = faults(read(text.replace("1: {weight: 9}", "2: {weight: 9}")))
    assert fault.startswith('x.yaml:4 strategies.D4.1.stages: got {"2": {"weight": 9}}')


def test_a_fault_is_reported_where_the_strategy_is_written(read):
    text = "strategies:\n  own: {stages: [{loss: glod}]}\n"
    for strategy in ("own", "{choice: [D0, own]}", "D0"):
        (fault,) = faults(read(f"{text}strategy: {strategy}"))
        assert fault.startswith("x.yaml:3 strategies.own.stages.0.loss: unknown 'glod'; did you mean 'gold'?")


def test_a_strategy_that_is_not_named_need_not_fit_the_other_settings(read):
    def no_scope(sweep: Sweep):
        scoped = sweep.strategy is not None and sweep.strategy.scope
        return [(("strategy", "scope"), "there is one language")] if scoped else []

    check(read("strategy: D4.1"), Sweep, extra=no_scope)
    check(read(""), Sweep, extra=no_scope)
    for strategy in ("D0", "{choice: [D4.1, D0]}"):
        assert faults(read(f"strategy: {strategy}"), no_scope) == [
            "base.yaml:2 strategies.D0.scope: there is one language"
        ]
    # Faults of the other settings are those of the sweep alone.
    assert faults(read("strategy: D4.1\nsize: small"))[0].startswith("x.yaml:3 size: got 'small'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strategy: D41", "x.yaml:2 strategy: no strategy 'D41'; did you mean 'D4.1'? (D0, D4.1, D4.2)"),
        ("strategy: {choice: [D0, E]}", "x.yaml:2 strategy.choice.1: no strategy 'E'; (D0, D4.1, D4.2)"),
        ("strategies: {D0: 1}", "x.yaml:2 strategies.D0: must be a mapping, got 1; write `D0: {stages: […]}`"),
        ("strategies: {D0: {name: D0}}", "x.yaml:2 strategies.D0.name: its name is its key, 'D0'; remove `name`"),
        ("strategies: [D0]", "x.yaml:2 strategies: must be a mapping, got ['D0']; write `strategies: {NAME:"),
    ],
)  # fmt: skip
def test_what_is_no_strategy_is_refused(read, text, message):
    (fault,) = refused(read, text)
    assert fault.startswith(message)


def test_a_file_without_strategies_says_so(tmp_path):
    (tmp_path / "x.yaml").write_text("strategy: D1\n")
    with pytest.raises(
        SpecError, match="no strategy 'D1': the file has no `strategies`; extend a file that has"
    ):
        load(tmp_path / "x.yaml")


def test_a_malformed_choice_of_strategies_is_reported_like_others(read):
    assert any("choice takes a list of options" in fault for fault in faults(read("strategy: {choice: D0}")))


def test_a_list_is_not_too_short_because_its_items_are_wrong(read):
    assert len(faults(read("strategies: {own: {stages: [{loss: glod}]}}"))) == 1
    (fault,) = faults(read("strategies: {own: {stages: []}}"))
    assert "must not be empty" in fault
