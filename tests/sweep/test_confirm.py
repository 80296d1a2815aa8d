"""Confirmation: the front over more seeds, in the store, in the tables and in the verdict."""

from __future__ import annotations

import re
from dataclasses import replace

from raykd.figures.front import find_confirmation, pareto_front
from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import Teacher
from raykd.report.findings import judge
from raykd.report.front_page import front_html
from raykd.report.front_rows import front_rows
from raykd.storage.store import Storage
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.constraints import Constraints
from raykd.sweep.phases.confirm import confirm_front, with_seeds
from raykd.sweep.records import SweepRecords
from raykd.sweep.spec import search_identity
from tests.scores import scores
from tests.silent import Silent
from tests.sweep.in_process import call, without_ray
from tests.sweep.samples import COST
from tests.sweep.test_baseline import record
from tests.sweep.test_spec import GOOD, faults, written  # noqa: F401  (a fixture)
from tests.sweep.test_trials import Tracked, complete, setting_of

TEACHER = Teacher("teacher", scores=scores(0.9))


def confirmed_sweep(folder, *dev: float) -> tuple[SweepRecords, list[int]]:
    """Two students of a search, the first alone on the front, confirmed over as many seeds as `dev` has scores.

    Returns:
        The records, and the number of runs of each trial.
    """
    records, sizes = SweepRecords(Storage(str(folder)), "sweep"), []
    recorder = Recorder(
        records, Tracked(), Silent(), OBJECTIVES, lambda _: COST,  # type: ignore[arg-type]
        Constraints.from_sources(["f1 >= 0.9 * teacher"], "f1", 0.9), phase="confirm",
    )  # fmt: skip
    if not records.load():
        records.save(record(0, "structural", 0.86, violations={"f1 >= 0.9 * teacher": -0.1}))
        records.save(record(1, "posterior", 0.7))

    def resolve(tree):
        return setting_of(tree, tree.get("search", {}).get("runs_per_setting", 1))

    def execute(trials):
        while (job := trials.next()) is not None:
            sizes.append(len(job.runs))
            trials.ended(job.key, complete(job.runs, *dev))

    for trials in confirm_front(recorder, len(dev), resolve):
        execute(trials)
    return records, sizes


def test_each_student_of_the_front_is_confirmed_once_and_shown_with_the_mean_of_its_seeds(tmp_path):
    records, sizes = confirmed_sweep(tmp_path, 0.86, 0.84, 0.88)
    assert sizes == [3]
    assert confirmed_sweep(tmp_path, 0.86, 0.84, 0.88)[1] == [], "it is found"
    trials = records.trials()
    assert [shown_trial.role for shown_trial in trials] == ["search", "search", "confirm"]
    by = find_confirmation(trials[0], trials)
    assert by is not None
    assert by is trials[2]
    assert by.run_ids[:1] == trials[0].run_ids, "the run of the search is one of them"
    assert pareto_front(trials, OBJECTIVES) == [trials[0]]
    (row,) = front_rows(trials, [TEACHER])
    dev = row.trial.scores.get("dev")
    assert dev is not None
    assert (round(dev.mean, 6), round(dev.sd or 0, 6), len(dev.by_seed)) == (0.86, 0.02, 3)
    judged = judge(trials, [TEACHER])
    assert judged.verdict.text.endswith("3 seeds")
    page = front_html(trials, [TEACHER])
    assert "86.0 ±2.0" in page
    assert "#02" not in page, "it is no student of its own"


def test_a_student_that_was_lucky_is_not_shipped(tmp_path):
    trials = confirmed_sweep(tmp_path, 0.86, 0.7, 0.72)[0].trials()
    judged = judge(trials, [TEACHER], chosen=trials[0])
    assert judged.verdict.text == "Do not ship #00 yet: confirmed over more seeds, misses search.constraints"


def test_a_baseline_has_the_seeds_of_its_student(tmp_path):
    records = confirmed_sweep(tmp_path, 0.86, 0.84)[0].load()
    first, second = with_seeds(records[:2], records)
    assert first.resolved["search"] == {"runs_per_setting": 2}
    assert second.resolved == records[1].resolved
    assert first.trial == records[0].trial


def test_it_needs_more_seeds_than_the_search_had_and_may_be_asked_for_later(written):  # noqa: F811
    (fault,) = faults(written(f"{GOOD}search: {{runs_per_setting: 3, confirm: {{seeds: 3}}}}\n"))
    assert fault == "6 search.confirm.seeds: got 3, and the search has run 3 seeds already; ask for more"
    later = search_identity(written(f"{GOOD}search: {{runs_per_setting: 3, confirm: {{seeds: 5}}}}\n"))
    assert later == search_identity(written(f"{GOOD}search: {{runs_per_setting: 3}}\n"))


WHOLE = """\
name: whole
corpus: {source: builtin, languages: [en], train: 20, dev: 6, test: 6, unlabelled: 10}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: {choice: [4, 6]}, hidden_dim: 6}
objective: {choice: [{kind: structural}, {kind: posterior}]}
schedule: {epochs: 1}
search:
  trials: 3
  sampler: random
  constraints: ["parameters < 100_000"]
  start_from: [{student.embedding_dim: 6, objective.kind: posterior}]
  confirm: {seeds: 2}
baseline: gold
budget: {hours: 5, trials: 2}
"""


def test_a_sweep_starts_from_settings_keeps_to_its_budget_and_confirms_its_front(tmp_path, capsys):
    (tmp_path / "sweep.yaml").write_text(WHOLE)
    store = [
        f"store={tmp_path / 'store'}",
        f"tracking.uri=sqlite:///{tmp_path}/mlflow.db",
        "tracking.models=none",
    ]
    words = [str(tmp_path / "sweep.yaml"), *(word for item in store for word in ("--set", item))]
    with without_ray():
        call("plan", *words)
        printed = capsys.readouterr().out
        assert "start: 1 setting of search.start_from first" in printed
        assert "constraints: 2 of 2 student shapes meet those on costs" in printed
        call("sweep", *words)
        printed = capsys.readouterr().out
        assert re.search(r"confirm: done, \d complete", printed)
        assert printed.count("latency: done") == 1, "the limits and the phases ask for the same costs"
        records = SweepRecords(Storage(str(tmp_path / "store")), "whole")
        trials = records.trials()
        searched = [item for item in trials if item.role == "search"]
        assert len(searched) == 2
        assert (searched[0].settings["student.embedding_dim"], searched[0].objective) == (6, "posterior")
        assert searched[0].violations["parameters < 100_000"] < 0
        front = pareto_front(trials, OBJECTIVES)
        confirms = [item for item in trials if item.role == "confirm"]
        assert len(confirms) == len(front)
        assert {len(item.run_ids) for item in trials if item.role != "search"} == {2}
        of_search = {run_id for item in searched for run_id in item.run_ids}
        assert all(item.run_ids[0] in of_search and item.run_ids[1] not in of_search for item in confirms)
        call("sweep", *words, "--resume")
        assert len(records.load()) == len(trials)


def test_confirmations_are_no_candidates():
    candidate = record(0, "structural", 0.9).trial
    assert pareto_front([replace(candidate, role="confirm")], OBJECTIVES) == []
