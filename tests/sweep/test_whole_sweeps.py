"""Whole sweeps by the real verbs, with MLflow and without Ray: stages, a student of each language, transfer sizes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Run as MlflowRun
from mlflow.tracking import MlflowClient

from raykd.cli.console import stdout
from raykd.corpora import open_corpus
from raykd.figures.front import find_gold_twin
from raykd.figures.trial import Trial
from raykd.recipes.run import Run
from raykd.spec import load
from raykd.storage.store import Storage
from raykd.sweep import settings as settings_module
from raykd.sweep.doctor import examine_store
from raykd.sweep.records import SweepRecords
from raykd.sweep.sweep import Sweep
from raykd.sweep.uses import unused
from raykd.training.execute import find_result
from tests.sweep.in_process import call, without_ray

SHARED = """\
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6, unlabelled: 8}
teachers:
  {kind: bilstm_crf, scope: language, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
schedule: {epochs: 2, anneal_horizon: 2}
training: {batch_tokens: 200}
search: {sampler: grid}
teachers_must_learn: false
"""
STAGES = """\
stages:
  - objective:
      kind: mix
      parts:
        - {objective: {kind: structural}, weight: {choice: [0.5, 1.0]}}
        - {objective: {kind: top_1}, anneal: rising}
    text: all
    schedule: {epochs: 2, anneal_horizon: 2}
  - {objective: {kind: gold}, schedule: {epochs: 1}, training: {learning_rate: 1e-3}, layers: [head]}
baseline: gold
"""


@dataclass(frozen=True)
class Swept:
    """An ended sweep and the executed runs."""

    path: Path
    tree: dict[str, Any]
    runs: list[Run]
    client: MlflowClient

    @property
    def storage(self) -> Storage:
        return Storage(self.tree["store"])

    @property
    def trials(self) -> list[Trial]:
        return [record.trial for record in SweepRecords(self.storage, self.tree["name"]).load()]

    def runs_of(self, trial: Trial) -> list[Run]:
        """The runs of a trial, in the order of their ids."""
        by_id = {run.id: run for run in self.runs}
        return [by_id[run_id] for run_id in trial.run_ids]

    def mlflow_trials(self) -> dict[int, MlflowRun]:
        """Runs of the trials in MLflow, by trial number."""
        experiment = self.client.get_experiment_by_name(self.tree["name"])
        assert experiment is not None
        mlflow_runs = self.client.search_runs([experiment.experiment_id])
        trials = [run for run in mlflow_runs if "raykd.trial" in run.data.tags]
        return {int(run.data.tags["raykd.trial"].split("/")[1]): run for run in trials}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, empty_mlflow: Path) -> Iterator[Callable[..., Swept]]:
    """Return a function running `raykd check` and `raykd sweep` on a text."""

    def sweep(name: str, text: str, *overrides: str) -> Swept:
        folder = tmp_path_factory.mktemp(name)
        path, database = folder / "sweep.yaml", folder / "mlflow.db"
        shutil.copy(empty_mlflow, database)
        tracking = f"tracking: {{uri: 'sqlite:///{database}'}}"
        path.write_text(f"name: {name}\nstore: {folder}/store\n{tracking}\n{SHARED}{text}")
        with without_ray() as runs:
            call("check", str(path), *overrides)
            call("sweep", str(path), *overrides)
        return Swept(path, load(path).tree, list(runs), MlflowClient(f"sqlite:///{database}"))

    return sweep


@pytest.fixture(scope="module")
def stages(swept):
    return swept("stages", STAGES)


@pytest.mark.slow
def test_a_weight_in_a_stage_is_searched(stages):
    trials = stages.trials
    assert [(trial.role, trial.state, trial.objective) for trial in trials] == [
        ("search", "COMPLETE", "mix > gold"), ("search", "COMPLETE", "mix > gold"), ("baseline", "COMPLETE", "gold")
    ]  # fmt: skip
    weight = "stages.0.objective.parts.0.weight"
    assert [trial.settings.get(weight) for trial in trials] == [0.5, 1.0, None]


def test_stages_follow_each_other_in_one_run(stages):
    (run,) = stages.runs_of(stages.trials[0])
    result = find_result(stages.storage, run)
    assert result is not None
    assert [(epoch["epoch"], epoch["stage"]) for epoch in result.epochs] == [(0, 0), (1, 0), (2, 1)]
    assert [set(epoch["losses"]) for epoch in result.epochs] == [{"structural", "top_1"}] * 2 + [{"gold"}]
    assert [epoch["lambda"] for epoch in result.epochs[:2]] == [1.0, 0.5]


def test_each_stage_has_its_own_curves_and_no_epoch_is_missing(stages):
    mlflow_trials = stages.mlflow_trials()
    for number, names in ((0, ("stage1_structural+top_1/", "stage2_gold/")), (2, ("",))):
        (run,) = stages.runs_of(stages.trials[number])
        result = find_result(stages.storage, run)
        assert result is not None
        for stage, name in enumerate(names):
            key = f"epoch/{name}loss".replace("+", "_")
            points = stages.client.get_metric_history(mlflow_trials[number].info.run_id, key)
            assert {point.step: point.value for point in points} == {
                epoch["epoch"]: epoch["loss"] for epoch in result.epochs if epoch["stage"] == stage
            }
        assert ("epoch/loss" in mlflow_trials[number].data.metrics) is (len(names) == 1)


def test_the_page_shows_the_curves_of_every_student_and_the_labels_of_each_language(stages):
    folder = Path(stages.tree["store"]) / "sweeps/stages"
    page = (folder / "front.html").read_text()
    data = json.loads(page.partition('id="figures">')[2].partition("</script>")[0])
    complete = [trial for trial in stages.trials if trial.state == "COMPLETE"]
    assert set(data["students"]) == {str(trial.number) for trial in complete}
    for trial in complete:
        run, *_ = stages.runs_of(trial)
        result = find_result(stages.storage, run)
        assert result is not None
        student = data["students"][str(trial.number)]
        curve, *_ = student["curves"]["runs"]
        assert curve["dev"] == pytest.approx([100 * epoch["dev"] for epoch in result.epochs], rel=1e-3)
        corpus = open_corpus(stages.storage, run.corpus_id)
        train = corpus.parts["train"].to_pylist()
        tags = {
            language: [tag for row in train if row["language"] == language for tag in row["tags"]]
            for language in ("en", "de")
        }
        spans = {
            language: sum(corpus.tag_set.tags[tag][0] in "BS" for tag in language_tags)
            for language, language_tags in tags.items()
        }
        labels = data["languages"]["labels"][student["labels"]]
        assert dict(zip(data["languages"]["names"], labels, strict=True)) == spans
    assert f"sentences: train {len(train):,}" in page


def test_the_sweep_knows_its_run_on_the_tracking_server(stages):
    records = SweepRecords(stages.storage, "stages")
    (parent,) = {run.data.tags["mlflow.parentRunId"] for run in stages.mlflow_trials().values()}
    assert f"/runs/{parent}?" in records.run_place()
    assert records.run_place().startswith("#/experiments/")


def test_the_gold_twin_of_a_setting_with_stages_takes_as_many_steps_as_they_do(stages):
    *searched, twin = stages.trials
    assert {trial.steps for trial in stages.trials} == {twin.settings["schedule.max_steps"]}
    assert [find_gold_twin(trial, stages.trials) for trial in searched] == [twin, twin]
    (run,) = stages.runs_of(twin)
    assert [stage["objective"]["kind"] for stage in run.stages] == ["gold"]
    assert run.sources == ()


def test_the_front_shows_stages(stages, capsys, monkeypatch):
    monkeypatch.setattr(stdout, "width", 140)
    call("front", str(stages.path))
    printed = capsys.readouterr().out
    assert "mix > gold" in printed
    assert "on the front" in printed
    table = (Path(stages.tree["store"]) / "sweeps/stages/front.csv").read_text()
    assert "stages.0.objective.parts.0.weight" in table.splitlines()[0]


@pytest.fixture(scope="module")
def languages(swept):
    """A sweep with one student per language and two seeds."""
    text = "objective: {choice: [{kind: structural}, {kind: gold}]}\n"
    return swept("languages", text, "--set", "student.scope=language", "--set", "search.runs_per_setting=2")


def test_a_student_of_each_language_is_one_trial(languages):
    trials = languages.trials
    assert [trial.objective for trial in trials] == ["structural", "gold"]
    for trial in trials:
        results = [find_result(languages.storage, run) for run in languages.runs_of(trial)]
        assert len(results) == 4
        for part in ("dev", "test"):
            by_seed = [
                sum(result.scores.mean(part) for result in results[2 * seed : 2 * seed + 2]) / 2 for seed in range(2)
            ]  # fmt: skip
            score = trial.scores.get(part)
            assert score.by_seed == pytest.approx(by_seed)
            assert score.mean == pytest.approx(sum(by_seed) / 2)
            assert set(score.by_language) == {"en", "de"}
        # What is served are the students of all languages; a sentence passes one of them.
        assert trial.cost["parameters"] == sum(result.parameters for result in results[:2])
        assert trial.cost["latency_ms"] == 1.0


def test_each_student_learns_from_the_teacher_of_its_language(languages):
    runs = languages.runs_of(languages.trials[0])
    assert [[source.languages for source in run.sources] for run in runs] == [[("en",)], [("de",)]] * 2


def test_curves_are_named_by_seed_and_language(languages):
    for number, mlflow_trial in languages.mlflow_trials().items():
        names = [f"epoch/seed {seed} {language}" for seed in range(2) for language in ("en", "de")]
        for name, run in zip(names, languages.runs_of(languages.trials[number]), strict=True):
            points = languages.client.get_metric_history(mlflow_trial.info.run_id, f"{name}/dev_f1")
            result = find_result(languages.storage, run)
            assert result is not None
            assert [(point.step, point.value) for point in sorted(points, key=lambda point: point.step)] == [
                (epoch["epoch"], epoch["dev"]) for epoch in result.epochs
            ]
        curves = {
            key.rsplit("/", 1)[0] for key in mlflow_trial.data.metrics if key.endswith("/learning_rate")
        }
        assert curves == set(names)


STRATEGIES = f"""\
extends: {Path(__file__).parents[2]}/sweeps/base/strategies.yaml
strategy: {{choice: [D0, D2, D4.2]}}
strategies:
  D2:
    stages:
      0:
        objective:
          parts: {{0: {{weight: {{choice: [0.5, 2]}}}}, 1: {{objective: {{layer: 1, precision: int8}}}}}}
  D4.2: {{stages: {{0: {{objective: {{layer: 1}}}}}}}}
baseline: gold
"""


@pytest.fixture(scope="module")
def strategies(swept):
    return swept("strategies", STRATEGIES)


@pytest.mark.slow
def test_a_searched_strategy_brings_its_own_searches_and_its_scope(strategies):
    searched = [trial for trial in strategies.trials if trial.role == "search"]
    methods = [(trial.settings["strategy.name"], trial.objective, trial.method) for trial in searched]
    assert methods == [("D0", "gold", "D0"), *[("D2", "D2", "D2")] * 2, ("D4.2", "D4.2", "D4.2")]
    recorded = SweepRecords(strategies.storage, strategies.tree["name"]).trials()
    assert [trial.method for trial in recorded if trial.role == "search"] == [
        "D0",
        "D2 weight=0.5",
        "D2 weight=2",
        "D4.2",
    ]
    assert [trial.settings.get("objective.parts.0.weight") for trial in searched] == [None, 0.5, 2, None]
    assert [len(trial.run_ids) for trial in searched] == [2, 1, 1, 1]
    assert [trial.settings["student.scope"] for trial in searched] == ["language", "all", "all", "all"]
    assert {trial.state for trial in strategies.trials} == {"COMPLETE"}
    (run,) = strategies.runs_of(searched[3])
    assert [(stage["text"], stage["layers"], stage.get("head")) for stage in run.stages] == [
        ("unlabelled", "all", None), ("unlabelled", "unfreeze", None), ("labelled", "unfreeze", "new")
    ]  # fmt: skip


def test_both_precisions_of_a_layer_are_stored_once(strategies):
    sources = {
        name
        for run in strategies.runs
        if run.role == "student"
        for source in run.sources
        for name in source.signals
    }
    assert sources == {"hidden.1", "hidden_int8.1", "emissions", "transitions"}


def test_the_baseline_of_a_strategy_is_its_student_on_gold_labels(strategies):
    trials = strategies.trials
    (staged,) = (trial for trial in trials if trial.settings.get("strategy.name") == "D4.2")
    twin = find_gold_twin(staged, trials)
    assert twin is not None
    assert (twin.role, twin.objective, twin.settings.get("strategy.name")) == ("baseline", "gold", None)


@pytest.fixture(scope="module")
def sizes(swept):
    """The size of the transfer set is searched."""
    text = "objective: {kind: structural}\nteacher_corpus: {unlabelled_cap: null}\n"
    return swept("sizes", text, "--set", "corpus.unlabelled_cap={choice: [3, 6]}")


def test_every_size_is_a_trial_and_teachers_are_trained_once(sizes):
    assert [trial.settings["corpus.unlabelled_cap"] for trial in sizes.trials] == [3, 6]
    assert [run.role for run in sizes.runs] == ["teacher"] * 2 + ["student"] * 2
    small, large = (sizes.runs_of(trial)[0] for trial in sizes.trials)
    assert [source.teacher_id for source in small.sources] == [source.teacher_id for source in large.sources]
    assert small.id != large.id


def test_only_the_largest_text_is_precomputed(sizes):
    small, large = (sizes.runs_of(trial)[0] for trial in sizes.trials)
    assert [set(source.stored_ids.values()) for source in small.sources] == [
        set(source.signals.values()) for source in large.sources
    ]
    transfer = sizes.storage.child("transfer")
    manifests = [Path(name) for name in transfer.names() if name.endswith("manifest.json")]
    signals = {signal for source in large.sources for signal in source.signals.values()}
    assert {part for path in manifests for part in path.parts} & {
        *signals,
        *small.sources[0].signals.values(),
    } == signals
    assert len(manifests) == len(signals)


STUDENTS = """\
student={choice: [
  {kind: bilstm, embedding_dim: 4, hidden_dim: {choice: [4, 6]}, projection: {choice: [null, teacher]},
   embeddings: {kind: svd}, vocabulary: {kind: teacher}},
  {kind: transformer, embedding_dim: 4, heads: 2, embeddings: {choice: [{kind: random}, {kind: pca}]},
   vocabulary: {kind: teacher}}]}"""


@pytest.fixture(scope="module")
def students(swept):
    """Kinds of students, their projections and where their embeddings start are searched, on gold labels."""
    text = "objective: {kind: gold}\n"
    return swept("students", text, "--set", STUDENTS.replace("\n", ""), "--set", "teachers.scope=all")


@pytest.mark.slow
def test_students_of_all_kinds_start_from_the_teacher_that_was_trained_before(students):
    trials = students.trials
    assert [run.role for run in students.runs] == ["teacher"] + ["student"] * 6
    assert len({trial.run_ids for trial in trials}) == 6
    assert {trial.state for trial in trials} == {"COMPLETE"}
    assert len({trial.cost["parameters"] for trial in trials}) == 5, "where embeddings start costs nothing"


def test_what_students_start_from_is_used(students):
    """The store keeps embeddings in use even if no signal of the teacher is."""
    assert students.storage.names("embeddings/")
    assert not any(run.sources for run in students.runs)
    assert unused(students.storage) == []
    assert not examine_store(students.storage).damages


PRETRAINING = """\
task=masked_lm
corpus.unlabelled=0
teachers={kind: none}
student={kind: encoder, embedding_dim: {choice: [4, 8]}, layers: 1, heads: 2, vocabulary: {kind: bert, size: 200}}
"""


def test_pretraining_sweeps_without_teachers_or_labels(swept, capsys):
    pretraining = swept("pretraining", "objective: {kind: gold}\n", *(
        word for line in PRETRAINING.splitlines() for word in ("--set", line)
    ))  # fmt: skip
    assert [run.role for run in pretraining.runs] == ["student"] * 2
    assert SweepRecords(pretraining.storage, pretraining.tree["name"]).dev_labels() is None
    output = "".join(capsys.readouterr())
    assert "one seed a setting" in output
    assert "labels, so its" not in output
    assert "not logged as a model" not in output
    assert all(trial.scores.get("dev").beside["perplexity"].mean > 1 for trial in pretraining.trials)


def test_each_corpus_is_read_once(tmp_path, monkeypatch):
    read, caps = settings_module.read_corpus, []

    def counted(config, *arguments):
        caps.append(config.unlabelled_cap)
        return read(config, *arguments)

    monkeypatch.setattr(settings_module, "read_corpus", counted)
    (tmp_path / "sweep.yaml").write_text(f"name: read\nobjective: {{kind: structural}}\n{SHARED}")
    overrides = [
        "corpus.unlabelled_cap={choice: [3, 6]}", "teachers.hidden_dim={choice: [4, 6, 8]}", f"store={tmp_path}/store"
    ]  # fmt: skip
    assert len(Sweep(load(tmp_path / "sweep.yaml", overrides)).preparations) == 6
    assert caps == [3, 6]
