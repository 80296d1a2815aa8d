"""Phases of the driver one by one; whole sweeps run in the end-to-end tests."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from raykd.cluster.topology import Topology
from raykd.precompute import model_cost
from raykd.precompute.latency import Timing
from raykd.precompute.model_cost import measure_cost
from raykd.spec import assignments, load
from raykd.sweep import driver
from raykd.sweep.driver import run_sweep
from raykd.sweep.phases import costs
from raykd.sweep.phases.costs import cost_of
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.phases.search import note_unused_text
from raykd.sweep.sweep import Sweep
from raykd.sweep.teacher_rows import teacher_rows
from raykd.training.execute import find_result
from tests.silent import Silent
from tests.sweep.in_process import Untracked, train_teachers, without_ray
from tests.training.small import recipe

ENSEMBLE = """\
name: ensemble
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6}
teachers: {kind: bilstm_crf, count: 2, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6}
objective: {kind: structural}
"""


@pytest.mark.parametrize(
    ("kinds", "baseline", "rows", "noted"),
    [
        (["structural", "top_1"], "none", 20, False),
        (["structural", "top_1"], "gold", 20, True),
        (["gold", "structural"], "none", 20, True),
        (["gold", "structural"], "gold", 0, False),
    ],
)
def test_it_is_noted_that_gold_uses_no_unlabelled_text(kinds, baseline, rows, noted):
    parts = {"unlabelled": SimpleNamespace(num_rows=rows)}
    variants = [recipe(objective={"kind": kind}) for kind in kinds]
    sweep: Any = SimpleNamespace(
        preparation=SimpleNamespace(corpus=SimpleNamespace(parts=parts)),
        variants=variants,
        file=SimpleNamespace(baseline=baseline),
    )
    notes: list[str] = []
    listener: Any = SimpleNamespace(note=notes.append)
    note_unused_text(sweep, listener)
    assert notes == ["gold is trained without the 20 unlabelled sentences; other objectives use them"] * noted


@pytest.fixture
def ensemble(tmp_path):
    """A sweep with means of two seeds as teachers, and the list of its finished runs, in order."""
    (tmp_path / "sweep.yaml").write_text(ENSEMBLE)
    with without_ray() as finished_runs:
        yield Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path}/store"])), finished_runs


def test_an_ensemble_is_evaluated_once_its_members_stand(ensemble):
    sweep, finished_runs = ensemble
    train_teachers(sweep)
    assert [run.id for run in finished_runs] == [run.id for _, run in [*sweep.members, *sweep.teachers]]
    assert [name for name, _ in sweep.members[:2]] == ["bilstm_crf en seed 0", "bilstm_crf en seed 1"]
    assert [bool(run.members) for run in finished_runs] == [False] * 4 + [True] * 2
    train_teachers(sweep)
    assert len(finished_runs) == 6


def test_an_ensembles_row_has_its_own_scores_above_those_of_its_members(ensemble):
    sweep, _ = ensemble
    train_teachers(sweep)
    for _, run in sweep.teachers:
        measure_cost(sweep.storage.uri, run)
    (row,) = teacher_rows(sweep)
    assert row.name == "bilstm_crf (mean of 2) × 2"
    assert [member.name for member in row.members] == ["bilstm_crf seed 0 × 2", "bilstm_crf seed 1 × 2"]
    for name, run in sweep.teachers:
        result = find_result(sweep.storage, run)
        assert result is not None
        assert row.scores.by_language("test")[name[-2:]] == result.scores.mean("test")
    members = [find_result(sweep.storage, run) for _, run in sweep.members]
    assert row.cost["parameters"] == sum(member.parameters for member in members if member is not None)


SMALL = """\
name: small
corpus: {source: builtin, languages: [en], train: 12, dev: 4, test: 4}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {kind: structural}
schedule: {epochs: 1, anneal_horizon: 2}
search: {trials: 1, sampler: grid}
"""


class Phases(Silent):
    """A listener recording the order of the phases."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, phase: str, total: int, *, done_before: int = 0) -> None:
        self.begun.append(phase)


@pytest.mark.parametrize(("cpus", "works"), [({}, 1), ({"students": {"cpus_per_worker": 0.5}}, 2)])
def test_the_slots_of_the_teachers_do_the_trials_where_they_may(tmp_path, cpus, works):
    path = tmp_path / "sweep.yaml"
    path.write_text(f"{SMALL}resources: {json.dumps(cpus)}\n")
    sweep, listener = Sweep(load(path, [f"store={tmp_path}/store"])), Phases()
    finished_phases, published = list[str](), list[tuple[str, ...]]()
    with without_ray(), pytest.MonkeyPatch.context() as patch:
        for module, name in ((driver, "work"), (costs, "measure_shapes")):
            really = getattr(module, name)

            def counted(*arguments: Any, name: str = name, really: Any = really, **options: Any) -> Any:
                asleep = name == "measure_shapes" and options["cluster"].slots_asleep
                finished_phases.append(f"{name}, slots asleep" if asleep else name)
                return really(*arguments, **options)

            patch.setattr(module, name, counted)
        cluster = Topology.of({"CPU": 1.0})
        context = PhaseContext(sweep, cluster, listener, lambda: published.append(tuple(listener.begun)))
        trials, teachers = run_sweep(context, Untracked())  # type: ignore[arg-type]
    assert [trial.state for trial in trials] == ["COMPLETE"]
    assert [teacher.name for teacher in teachers] == ["bilstm_crf"]
    phases = ("teachers", "precompute", "latency", "trials")
    assert listener.begun == list(phases)
    ends = [phases[:count] for count in range(len(phases) + 1)]
    assert published == ends
    assert finished_phases == (
        ["work", "measure_shapes, slots asleep"] if works == 1 else ["work", "measure_shapes", "work"]
    )


PREPARATIONS = """\
name: several
corpus:
  {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6, unlabelled: 12, unlabelled_cap: {choice: [4, 8]}}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: {choice: [6, 8]}, character_dim: 0, epochs: 1}
teacher_corpus: {unlabelled_cap: null}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: gold}]}
"""


@pytest.fixture
def several(tmp_path):
    """A sweep with searches in the corpus and in the teachers."""
    (tmp_path / "sweep.yaml").write_text(PREPARATIONS)
    return Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path}/store"]))


def test_each_alternative_of_corpus_and_teachers_is_prepared(several):
    assert several.trials == 8
    assert [preparation.differences for preparation in several.preparations.values()] == [
        {"corpus.unlabelled_cap": cap, "teachers.hidden_dim": size} for cap in (4, 8) for size in (6, 8)
    ]
    assert several.preparation.corpus.parts["unlabelled"].num_rows == 16, "the larger one is shown"


def test_teachers_that_alternatives_share_are_trained_once_and_named_apart(several):
    assert [name for name, _ in several.members] == [
        f"bilstm_crf {language} (teachers.hidden_dim={size})" for size in (6, 8) for language in ("en", "de")
    ]
    assert several.teachers == several.members
    assert [title for title, _ in several.teacher_groups] == [
        f"bilstm_crf (teachers.hidden_dim={size})" for size in (6, 8)
    ]


def test_a_setting_learns_from_its_own_teachers_and_is_resolved_once(several):
    settings = [several.settings.of(tree) for tree in assignments(several.document.tree)]
    assert [several.settings.of(dict(setting.tree)) for setting in settings] == settings
    for setting in settings:
        assert setting.recipe.corpus.unlabelled_cap == setting.prepared.differences["corpus.unlabelled_cap"]
        (run,) = setting.runs
        teacher_ids = [teacher.run.id for teacher in setting.prepared.preparation.teachers]
        assert [source.teacher_id for source in run.sources] == (teacher_ids if run.sources else [])
    # Teachers have no effect on gold.
    assert len({setting.run_ids for setting in settings}) == 4 + 2


def test_each_teacher_is_asked_for_what_it_offers(tmp_path):
    """A search over the kinds of teachers: a teacher over spans has no emissions to store."""
    sizes = "embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1"
    kinds = f"{{choice: [{{kind: bilstm_crf, {sizes}}}, {{kind: biaffine_ner, {sizes}}}]}}"
    text = PREPARATIONS.replace("{kind: bilstm_crf, embedding_dim: 6, hidden_dim: {choice: [6, 8]}, ", "@")
    text = text.replace("@character_dim: 0, epochs: 1}", kinds).replace(
        "{kind: structural}", "{kind: posterior}"
    )
    (tmp_path / "sweep.yaml").write_text(text)
    plan = Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path}/store"])).transfer()
    assert plan is not None
    signals_by_offer = {task.teacher.offers[0]: [need.signal for need in task.needs] for task in plan.tasks}
    # Posteriors, and the best path as the label of unlabelled text.
    assert signals_by_offer == {
        "emissions": ["emissions", "transitions", "kbest"], "token_marginals": ["token_marginals", "kbest"]
    }  # fmt: skip


def test_one_plan_has_the_transfer_sets_of_all_alternatives(several):
    plan = several.transfer()
    assert plan is not None
    assert {task.teacher.teacher_id for task in plan.tasks} == {run.id for _, run in several.teachers}
    text_ids = {
        t.text.id for alternative in several.preparations.values() for t in alternative.preparation.teachers
    }
    assert text_ids <= {task.text.id for task in plan.tasks}


def test_a_student_is_compared_with_its_own_teachers(several, monkeypatch):
    monkeypatch.setattr(model_cost, "time_in_turns", lambda calls: dict.fromkeys(calls, Timing(1.0, 2.0)))
    for run in [*several.shapes(), *(run for _, run in several.teachers)]:
        measure_cost(several.storage.uri, run)
    compression = {}
    for tree in assignments(several.document.tree):
        setting = several.settings.of(tree)
        size = setting.prepared.differences["teachers.hidden_dim"]
        compression.setdefault(size, set()).add(cost_of(several, setting)["compression"])
    assert min(compression[8]) > max(compression[6])
