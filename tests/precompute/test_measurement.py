"""Consistent costs: what is timed again, with a timer that is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from raykd.figures.results import Cost
from raykd.precompute import machine_load, measurement
from raykd.precompute.machine_load import LoadMeter, current_load
from raykd.precompute.measurement import Bench, contradictions
from raykd.precompute.model_cost import MAX_MODELS, MeasuredCost
from raykd.storage.store import Storage
from tests.silent import Silent

HARDWARE = {"processor": "p"}


@dataclass(frozen=True)
class Shape:
    """The part of a run read by a bench: its id, and here its sizes."""

    embedding: int
    hidden: int
    kind: str = "bilstm"

    @property
    def id(self) -> str:
        return f"{self.kind} {self.embedding} {self.hidden}"

    def measured(self, ms: float, load: float = 0.0) -> MeasuredCost:
        shape = {
            "model": {"kind": self.kind, "embedding_dim": self.embedding, "hidden_dim": self.hidden},
            "tags": 9,
        }
        sizes = Cost({"parameters": self.embedding * self.hidden}, shape)
        return MeasuredCost(
            sizes, Cost({"latency_ms": ms}, shape, HARDWARE, spreads={"latency_ms": 0.01}, load=load)
        )


@dataclass
class Timer:
    """Gives a shape the sum of its sizes in milliseconds, times what `factor` says of the n-th measurement."""

    factor: Callable[[int, Shape], float] = lambda call, shape: 1.0
    load: float = 0.0
    groups: list[list[str]] = field(default_factory=list)

    def __call__(self, shapes: Sequence[Any]) -> list[MeasuredCost]:
        group = list(shapes)[:MAX_MODELS]
        self.groups.append([shape.id for shape in group])
        call = len(self.groups)
        return [
            shape.measured((shape.embedding + shape.hidden) / 100 * self.factor(call, shape), self.load)
            for shape in group
        ]


class Heard(Silent):
    """Keeps the reports."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.done = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def advance(self, phase: str, units: int = 1, *, detail: str = "", sentences: int = 0) -> None:
        self.done += units


@pytest.fixture(autouse=True)
def _shapes_are_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace a run's shape by the id of the shape."""
    stored_costs: dict[str, MeasuredCost] = {}

    def keep(storage: Any, run: Any, measured: MeasuredCost) -> Cost:
        stored_costs[run.id] = measured
        return measured.cost

    def note(storage: Any, run: Any, on: Any, text: str) -> Cost:
        from dataclasses import replace

        old = stored_costs[run.id]
        return keep(storage, run, MeasuredCost(old.sizes, replace(old.timed, notes=(*old.timed.notes, text))))

    monkeypatch.setattr(
        measurement,
        "find_cost",
        lambda s, run, *_: stored_costs[run.id].cost if run.id in stored_costs else None,
    )
    monkeypatch.setattr(measurement, "store_cost", keep)
    monkeypatch.setattr(measurement, "add_cost_note", note)


def bench(timer: Timer, *, load: float = 0.0) -> tuple[Bench, Heard]:
    heard = Heard()
    return Bench(Storage("memory"), HARDWARE, timer, lambda: load, heard), heard


SHAPES: Any = [Shape(16, 16), Shape(16, 64), Shape(64, 64)]


def test_shapes_are_timed_together_and_once():
    timer = Timer()
    machine, heard = bench(timer)
    machine.run(SHAPES)
    assert timer.groups == [[shape.id for shape in SHAPES]]
    assert (heard.done, heard.notes, heard.warnings) == (3, [], [])
    bench(timer)[0].run(SHAPES)
    assert len(timer.groups) == 1


def test_new_shapes_are_timed_beside_a_known_one_in_every_group():
    timer = Timer()
    bench(timer)[0].run(SHAPES)
    new: Any = [Shape(16, 100 + number) for number in range(MAX_MODELS + 1)]
    machine, heard = bench(timer)
    machine.run([*SHAPES, *new])
    assert [group[0] for group in timer.groups[1:]] == ["bilstm 16 16", "bilstm 16 16"]
    assert sorted(name for group in timer.groups[1:] for name in group[1:]) == sorted(run.id for run in new)
    assert heard.done == len(new)


def test_where_nothing_is_known_later_groups_are_timed_beside_one_of_the_first():
    timer, many = Timer(), [Shape(16, 100 + number) for number in range(2 * MAX_MODELS)]
    bench(timer)[0].run(many)  # type: ignore[arg-type]
    assert [len(group) for group in timer.groups] == [MAX_MODELS, MAX_MODELS, 2]
    assert {group[0] for group in timer.groups} == {"bilstm 16 100"}


def test_a_known_shape_that_moved_causes_all_to_be_timed_again():
    bench(Timer())[0].run(SHAPES)
    slower = Timer(lambda call, shape: 1.4)
    machine, heard = bench(slower)
    machine.run([*SHAPES, Shape(8, 8)])  # type: ignore[list-item]
    assert slower.groups == [["bilstm 16 16", "bilstm 8 8"], [*(shape.id for shape in SHAPES), "bilstm 8 8"]]
    assert (
        "has another latency than before (latency_ms 0.448, was 0.32), so 4 shapes are timed again"
        in heard.notes[0]
    )
    assert machine.costs["bilstm 64 64"]["latency_ms"] == pytest.approx(1.4 * 1.28)
    assert heard.warnings == []


def test_a_machine_that_never_is_as_fast_as_before_is_told_of():
    many: Any = [Shape(16, 100 + number) for number in range(MAX_MODELS + 1)]
    machine, heard = bench(Timer(lambda call, shape: 1.2**call))
    machine.run(many)
    assert len(heard.notes) == len(heard.warnings) == 1
    assert "the speed of this machine changes" in heard.warnings[0]


def test_an_order_that_contradicts_the_work_is_timed_again():
    """Seen on a busy machine: E 16 H 64 at 1.09 ms, E 64 H 64 at 0.78."""
    timer = Timer(lambda call, shape: 3.0 if call == 1 and shape == SHAPES[0] else 1.0)
    machine, heard = bench(timer)
    machine.run(SHAPES)
    assert timer.groups[1] == ["bilstm 16 16", "bilstm 16 64"]
    assert machine.costs["bilstm 16 16"]["latency_ms"] == pytest.approx(0.32)
    assert ("was slower than" in heard.notes[0], heard.warnings, heard.done) == (True, [], 3)
    assert machine.costs["bilstm 16 16"].notes == ()


def test_an_order_that_comes_back_is_true_and_reported():
    machine, heard = bench(Timer(lambda call, shape: 3.0 if shape == SHAPES[0] else 1.0))
    machine.run(SHAPES)
    assert machine.costs["bilstm 16 16"]["latency_ms"] == pytest.approx(0.96)
    (note,) = machine.costs["bilstm 16 16"].remarks
    assert (
        note
        == "slower than bilstm embedding_dim 16, hidden_dim 64, though smaller in every size; timed twice"
    )
    assert heard.warnings == [f"latency: bilstm embedding_dim 16, hidden_dim 16 is {note}"]


def test_only_shapes_of_one_kind_and_beyond_the_spread_contradict_each_other():
    slow, fast, transformer = Shape(16, 16), Shape(16, 64), Shape(64, 64, "transformer")
    costs = {
        slow.id: slow.measured(0.82).cost,
        fast.id: fast.measured(0.80).cost,
        transformer.id: transformer.measured(0.1).cost,
    }
    assert contradictions([slow, fast, transformer], costs) == []  # type: ignore[list-item]
    costs[slow.id] = slow.measured(0.92).cost
    assert contradictions([slow, fast, transformer], costs) == [(slow, fast)]  # type: ignore[list-item]


def test_what_was_measured_under_load_is_measured_again_on_a_quiet_machine_and_else_told_of():
    busy = Timer(load=0.6)
    _, heard = machine = bench(busy)
    machine[0].run(SHAPES)
    assert "3 of 3 shapes timed while other programs used up to 60% of the machine" in heard.warnings[0]
    still, heard = bench(busy, load=0.5)
    still.run(SHAPES)
    assert len(busy.groups) == 1
    assert heard.warnings
    assert still.costs["bilstm 16 16"].remarks == ("timed while other programs used 60% of the machine",)
    quiet = Timer()
    second_bench, heard = bench(quiet)
    second_bench.run(SHAPES)
    assert quiet.groups == [[shape.id for shape in SHAPES]]
    assert heard.warnings == []
    assert not second_bench.costs["bilstm 16 16"].loaded


def test_the_load_is_what_others_used(monkeypatch):
    monkeypatch.undo()
    times = iter([(10.0, 20.0, 5.0), (16.0, 30.0, 8.0)])
    monkeypatch.setattr(machine_load, "_processor_seconds", lambda: next(times))
    assert LoadMeter().share() == pytest.approx(0.3)


def test_the_start_of_others_is_waited_for(monkeypatch):
    shares, slept = iter([0.9, 0.1, 0.9]), list[float]()
    monkeypatch.setattr(LoadMeter, "share", lambda meter: next(shares))
    assert current_load(slept.append) == 0.1
    assert len(slept) == 2
    monkeypatch.setattr(LoadMeter, "share", lambda meter: 0.8)
    assert current_load(slept.append) == 0.8
