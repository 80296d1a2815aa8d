"""All trials as CSV and Parquet."""

import io

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from raykd.figures.front import pareto_front
from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import Trial
from raykd.report.trials_file import trials_csv, trials_parquet, trials_table
from tests.report.fake_sweep import fake_trials, with_targets


def read_csv(data):
    return pa_csv.read_csv(io.BytesIO(data))


@pytest.mark.parametrize(
    ("write", "read"),
    [(trials_csv, read_csv), (trials_parquet, lambda data: pq.read_table(io.BytesIO(data)))],
)
def test_all_trials_come_back_with_the_front_marked(write, read):
    trials = fake_trials()
    table = read(write(list(reversed(trials))))
    assert table["number"].to_pylist() == [t.number for t in trials]
    assert table["state"].to_pylist() == [t.state for t in trials]
    marked = {
        n for n, on in zip(table["number"].to_pylist(), table["on_front"].to_pylist(), strict=True) if on
    }
    assert marked == {t.number for t in pareto_front(trials, OBJECTIVES)}
    assert table["dev_f1"].to_pylist() == pytest.approx([t.scores.mean("dev") for t in trials], nan_ok=True)
    assert table["test_f1_nl"].to_pylist()[0] == pytest.approx(trials[0].scores.by_language("test")["nl"])
    assert table["latency_ms"].to_pylist()[0] == trials[0].cost["latency_ms"]
    assert table["parameters"].to_pylist()[0] == trials[0].cost["parameters"]
    assert table["student.hidden_dim"].to_pylist() == [t.settings["student.hidden_dim"] for t in trials]


def test_settings_keep_their_type_where_all_agree_and_become_json_where_not():
    trials = [
        Trial(0, "COMPLETE", {"a": 1, "b": 1, "c": "x", "d": True, "e": [1, 2], "f": "x"}),
        Trial(1, "COMPLETE", {"a": 2, "b": 0.5, "c": "y", "d": False, "f": 3}),
    ]
    table = trials_table(trials).select(list("abcdef")).to_pydict()
    assert table == {
        "a": [1, 2],
        "b": [1.0, 0.5],
        "c": ["x", "y"],
        "d": [True, False],
        "e": ["[1, 2]", None],
        "f": ['"x"', "3"],
    }


def test_no_trials_make_an_empty_table_with_its_headings():
    assert trials_csv([]).startswith(b'"number","name","on_front"')
    assert b'"dev_f1"' in trials_csv([])
    assert pq.read_table(io.BytesIO(trials_parquet([]))).num_rows == 0


def test_target_languages_have_columns_of_their_own_where_there_are_any():
    trials = fake_trials()
    apart = {"test_f1_target", "test_f1_target_sd", "test_f1_target_languages_sd", "test_f1_sv", "test_f1_tr"}
    table = trials_table([with_targets(trial, test=0.4) for trial in trials])
    assert set(table.column_names) - set(trials_table(trials).column_names) == apart
    assert table["test_f1_target"].to_pylist()[0] == 0.4
    assert table["test_f1_sv"].to_pylist()[0] == pytest.approx(0.35)
    assert set(table["metric"].to_pylist()) == {"F1"}


def test_columns_of_scores_are_named_after_the_task_s_score():
    names = trials_table(
        [with_targets(trial, test=0.4, label="accuracy") for trial in fake_trials()]
    ).column_names
    assert {
        "dev_accuracy",
        "dev_accuracy_sd",
        "dev_accuracy_en",
        "test_accuracy_target",
        "test_accuracy_sv",
    } < {*names}
    assert not [name for name in names if "_f1" in name]
