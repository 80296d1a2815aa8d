"""Sweep files: what is refused, with all faults together, and what makes two sweeps the same search."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykd.errors import SpecError
from raykd.spec import load
from raykd.sweep.spec import preparation_trees, search_identity
from raykd.sweep.sweep_faults import check_sweep

ROOT = Path(__file__).parents[2]
SWEEPS = [path for path in sorted((ROOT / "sweeps").rglob("*.yaml")) if path.parent.name != "base"]
GOOD = """\
name: good
corpus: {source: builtin}
teachers: {kind: bilstm_crf}
student: {kind: bilstm, embedding_dim: {choice: [8, 16]}, hidden_dim: 8}
objective: {kind: top_wk, k: {int: [1, 5]}}
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str, *overrides: str):
        path = tmp_path / "sweep.yaml"
        path.write_text(text)
        return load(path, overrides)

    return write


def faults(document) -> list[str]:
    """line, path and message of all faults."""
    with pytest.raises(SpecError) as refused:
        check_sweep(document)
    return [f"{fault.line} {fault.path}: {fault.message}" for fault in refused.value.faults]


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.name)
def test_every_sweep_file_is_valid_and_says_what_it_is_for(path):
    check_sweep(load(path))
    comment = [
        line.removeprefix("#").strip() for line in path.read_text().splitlines() if line.startswith("#")
    ]
    assert len(comment[0]) > 20, "the first line says the purpose"
    for heading in ("Paper:", "Command:", "Hardware:"):
        assert any(line.startswith(heading) for line in comment), f"{path.name} has no line {heading}"
    assert f"raykd sweep {path.relative_to(ROOT)}" in path.read_text()


def test_faults_of_every_kind_are_reported_together(written):
    text = "baseline: {choice: [gold, none]}\n" + GOOD.replace("top_wk, k", "top_wk, kk")
    document = written(
        text + "teachers_: 1\nsearch: {sampler: tpee}\ntraining: {learning_rate: {float: [1, 0]}}\n"
    )
    reported = faults(document)
    assert [line.split(": ")[0] for line in reported] == [
        "1 baseline", "6 objective.kk", "7 teachers_", "8 search.sampler", "9 training.learning_rate"
    ]  # fmt: skip
    assert "plain value" in reported[0]
    assert "did you mean 'k'" in reported[1]


def test_a_malformed_search_where_none_is_allowed_is_a_fault_like_others(written):
    (fault,) = faults(written(GOOD + "budget: {minutes: {choice: 64}}\n"))
    assert fault.startswith("6 budget.minutes: choice takes a list")


def test_corpus_and_teachers_are_searched_in_every_combination(written):
    text = GOOD.replace("builtin}", "builtin, unlabelled_cap: {choice: [50, 100]}}")
    document = written(text.replace("bilstm_crf}", "bilstm_crf, hidden_dim: {int: [8, 24], step: 8}}"))
    check_sweep(document)
    trees = preparation_trees(document.tree)
    assert [(tree["corpus"]["unlabelled_cap"], tree["teachers"]["hidden_dim"]) for tree in trees] == [
        (cap, size) for cap in (50, 100) for size in (8, 16, 24)
    ]


def test_a_teacher_is_checked_against_every_objective(written):
    # One alternative beside the other both would pass: the first teacher with the first objective, and so on.
    text = GOOD.replace("kind: bilstm_crf", "choice: [{kind: bilstm_crf}, {kind: bilstm_maxent}]")
    text = text.replace("{kind: top_wk, k: {int: [1, 5]}}", "{choice: [{kind: structural}, {kind: token}]}")
    (fault,) = faults(written(text.replace("hidden_dim: 8", "hidden_dim: 8, decoder: maxent")))
    assert "'token' is between MaxEnt models, got teachers: crf" in fault


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hidden_dim: 8", "hidden_dim: {int: [1, 1000]}", "4 student: its space has 2000 shapes"),
        ("builtin}", "builtin, seed: {int: [0, 19]}}", "2 corpus: 20 settings of corpus, and each"),
        ("bilstm_crf}", "bilstm_crf, word_dropout: {float: [0, 0.5]}}", "3 teachers: infinitely many settings"),
        ("", "search: {sampler: grid}\ntraining: {learning_rate: {float: [1e-4, 1e-2]}}\n", "search.sampler: a grid"),
        ("", "search: {objectives: {latency_ms: min}}\n", "f1 must be among them"),
        ("", "search: {objectives: {f1: min}}\n", "search.objectives.f1: got 'min'; write f1: max"),
        ("", "search: {objectives: {f1: max, dev_f1_target: max}}\n",
         "search.objectives: dev_f1_target is not known without dev of the target languages; set corpus.zero_shot_dev"),
        ("", "search: {constraints: [dev_f1_target >= 0.5]}\n", "set corpus.zero_shot_dev: true"),
        ("", "training: {precision: fp16}\n", "6 training.precision: 'fp16' needs a GPU"),
        ("{kind: top_wk, k: {int: [1, 5]}}", "{kind: token}", "5 objective.kind: 'token' is between MaxEnt models"),
        ("name: good", "name: ../elsewhere", "1 name:"),
    ],
    ids=["shapes", "corpora", "teachers", "grid", "f1 missing", "direction", "dev of targets", "constraint", "fp16",
         "token", "name"],
)  # fmt: skip
def test_sections_that_do_not_fit_together_are_refused(written, old, new, message):
    text = GOOD.replace(old, new) if old else GOOD + new
    assert any(message in line for line in faults(written(text)))


SEARCHED = "search: {objectives: {f1: max, %s}}\n"


@pytest.mark.parametrize(
    ("figure", "old", "new", "message"),
    [
        ("latency_ms_int8: min", "hidden_dim: 8", "hidden_dim: 8, contextual: {vectors: x.vec}",
         "objectives.latency_ms_int8: latency_ms_int8 is of the export, and the student has none: it reads frozen "
         "encoders or vectors; search latency_ms_torch"),
        ("speedup_int8: max", "kind: bilstm_crf", "kind: bilstm_crf, count: 2",
         "and the teacher has none: it is an ensemble; search latency_ms_int8"),
        ("speedup_batch32: max", "kind: bilstm_crf", "kind: biaffine_ner",
         "and the teacher has none: it finds spans; search latency_ms_batch32"),
        ("compression: max", "kind: bilstm_crf", "kind: second_order_parser",
         "and the teacher has none: it scores arcs; search bytes_torch or parameters"),
        ("latency_ms_torch: min", "hidden_dim: 8", "hidden_dim: 8, contextual: {vectors: x.vec}", None),
        ("latency_ms_int8: min", "kind: bilstm_crf", "kind: bilstm_crf, count: 2", None),
        ("bytes_int8: min, speedup: max", "", "", None),
        ("speedup: max", "kind: bilstm_crf", "kind: annotations, path: a.jsonl",
         "and the teacher has none: it labels text outside of raykd"),
        ("speedup: max", "kind: bilstm_crf", "kind: annotations, path: a.jsonl, latency_ms: 850", None),
        ("compression: max", "kind: bilstm_crf", "kind: annotations, path: a.jsonl, latency_ms: 850",
         "and the teacher has none: it labels text outside of raykd"),
    ],
    ids=["contextual student", "ensemble", "spans", "arcs", "torch", "absolute", "both", "annotator", "stated time",
         "unknown size"],
)  # fmt: skip
def test_a_deployed_form_is_searched_where_there_is_one(written, figure, old, new, message):
    document = written(GOOD.replace(old, new) + SEARCHED % figure)
    if message is None:
        check_sweep(document)
    else:
        assert any(message in line for line in faults(document))


STRATEGIES = f"""\
{GOOD.replace("objective: {kind: top_wk, k: {int: [1, 5]}}", "")}
extends: {ROOT}/sweeps/base/strategies.yaml
strategy: {{choice: [D0-S, D1]}}
"""


def test_strategies_need_the_text_that_they_learn_from(written):
    check_sweep(written(STRATEGIES))
    (fault,) = faults(written(STRATEGIES, "corpus.unlabelled=0"))
    path = "strategies.D1.stages.0.objective.parts.1.text"
    assert fault.endswith(f" {path}: the corpus has no unlabelled text; set corpus.unlabelled")
    lines = (ROOT / "sweeps/base/strategies.yaml").read_text().splitlines()
    assert "logits" in lines[int(fault.split()[0]) - 1]


def test_a_strategy_searches_weights_and_counts_as_what_it_is(written):
    weight = "strategies.D1.stages.0.objective.parts.0.weight={float: [0.01, 100], log: true}"
    check_sweep(written(STRATEGIES, weight))
    (fault,) = faults(written(STRATEGIES, weight, "search={sampler: grid}"))
    assert "a grid needs a step in every float range" in fault
    same = search_identity(written(STRATEGIES))
    assert search_identity(written(STRATEGIES, weight)) != same
    # What another strategy says is no part of the search.
    assert search_identity(written(STRATEGIES, "strategies.D4.2.stages.0.objective.layer=3")) == same


@pytest.mark.parametrize("decoder", ["crf", "maxent"])
def test_token_kd_is_between_maxent_models(written, decoder):
    text = GOOD.replace("bilstm_crf", "bilstm_maxent").replace(
        "{kind: top_wk, k: {int: [1, 5]}}", "{kind: token}"
    )
    document = written(text.replace("hidden_dim: 8", f"hidden_dim: 8, decoder: {decoder}"))
    if decoder == "maxent":
        check_sweep(document)
    else:
        assert "token" in faults(document)[0]


@pytest.mark.parametrize(
    ("override", "same"),
    [
        ("search.trials=99", True), ("budget.minutes=1", True), ("resources.workers=4", True),
        ("store=elsewhere", True), ("baseline=gold", True), ("tracking.uri=http://mlflow:5000", True),
        ("search.seed=1", False), ("student.hidden_dim=9", False), ("training.seed=1", False),
        ("corpus.seed=1", False), ("search.runs_per_setting=2", False), ("teachers.hidden_dim=9", False),
    ],
)  # fmt: skip
def test_a_sweep_goes_on_only_with_the_same_search(written, override, same):
    assert (search_identity(written(GOOD)) == search_identity(written(GOOD, override))) == same
