"""Teachers without training success: the sweep stops before using them, or warns with the languages concerned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.cluster.topology import Topology
from raykd.errors import RunError
from raykd.figures.results import Score
from raykd.figures.trial import Teacher
from raykd.spec import load
from raykd.storage.layout import RESULT
from raykd.sweep.driver import run_phases
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.phases.precompute import Precompute
from raykd.sweep.phases.teachers import Teachers
from raykd.sweep.sweep import Sweep
from raykd.sweep.teacher_rows import teacher_rows
from raykd.training.execute import find_result
from tests.scores import scores
from tests.silent import Silent
from tests.sweep.in_process import code_of, train_teachers, without_ray

# At this rate nothing is learnt in one step: every word gets the label that most words have, or one that is worse.
TEXT = """\
name: unlearnt
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6, unlabelled: 8}
teachers:
  kind: bilstm_crf
  scope: language
  embedding_dim: 6
  hidden_dim: 6
  character_dim: 0
  epochs: 1
  training: {learning_rate: 1e-9}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: gold}]}
schedule: {epochs: 1, anneal_horizon: 2}
search: {sampler: grid}
"""


class Warnings(Silent):
    """A listener recording warnings."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def warn(self, text: str) -> None:
        self.messages.append(text)


@pytest.fixture
def opened(tmp_path):
    """Return a function opening the sweep of TEXT with overrides, in a fresh store."""

    def open_sweep(*overrides: str) -> Sweep:
        (tmp_path / "sweep.yaml").write_text(TEXT)
        return Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path}/store", *overrides]))

    with without_ray():
        yield open_sweep


def taught(sweep: Sweep) -> list[str]:
    """The warnings of the phases up to the transfer sets."""
    listener = Warnings()
    context = PhaseContext(sweep, Topology.of({"CPU": 1.0}), listener)
    run_phases(context, [Teachers(context), Precompute(context)])
    return listener.messages


def give_scores(sweep: Sweep, **dev: float) -> None:
    """Train the teachers, and have each language's result say this score on dev."""
    train_teachers(sweep)
    for name, run in sweep.teachers:
        language = name[-2:]
        result = find_result(sweep.storage, run)
        assert result is not None
        changed_result = replace(
            result,
            scores=scores(
                Score.from_languages({language: dev[language]}), Score.from_languages({language: 0.5})
            ),
        )
        sweep.storage.child(*run.folder).write_json(RESULT, changed_result.to_plain())


def test_nothing_is_computed_from_teachers_that_learnt_nothing(opened):
    sweep = opened()
    give_scores(sweep, en=0.0, de=0.0)
    with pytest.raises(RunError) as stopped:
        taught(sweep)
    message = str(stopped.value)
    assert (
        "none predicts more than the most frequent label: bilstm_crf × 2 (en dev F1 0.0, de dev F1 0.0)"
        in message
    )
    assert "they were trained for at most 1 optimiser step: train them for more (teachers.epochs" in message
    assert not sweep.storage.names("transfer/")


def test_a_setting_goes_on_with_a_warning(opened):
    sweep = opened("teachers_must_learn=false")
    give_scores(sweep, en=0.0, de=0.0)
    (warning,) = taught(sweep)
    assert warning.startswith(
        "no more than the most frequent label is predicted by bilstm_crf × 2 (en dev F1 0.0, de"
    )
    assert sweep.storage.names("transfer/")


def test_one_language_of_several_is_named(opened):
    sweep = opened()
    give_scores(sweep, en=0.1, de=0.0)
    (warning,) = taught(sweep)
    assert "by bilstm_crf × 2 (de dev F1 0.0)" in warning


def test_a_dev_of_few_labels_proves_nothing(opened):
    sweep = opened("corpus.dev=2")
    give_scores(sweep, en=0.0, de=0.0)
    (warning,) = taught(sweep)
    assert "labels there, too few to be sure)" in warning


def test_teachers_that_nobody_reads_may_be_as_bad_as_they_are(opened):
    sweep = opened("objective={kind: gold}")
    give_scores(sweep, en=0.0, de=0.0)
    assert taught(sweep) == []


def test_good_teachers_are_not_spoken_of(opened):
    sweep = opened()
    give_scores(sweep, en=0.1, de=0.2)
    assert taught(sweep) == []
    assert [row.majority for row in teacher_rows(sweep, costs=False)] == [{"de": 0.0, "en": 0.0}]


def test_the_command_says_how_to_go_on_all_the_same(opened, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sweep = opened()
    give_scores(sweep, en=0.0, de=0.0)
    words = ("sweep", "sweep.yaml", "--set", f"store={tmp_path}/store", "--plain")
    assert code_of(*words) == RunError.exit_code
    err = " ".join(capsys.readouterr().err.split())
    assert "error teachers: none predicts more than the most frequent label" in err
    assert "Continue with: raykd sweep sweep.yaml --set" in err
    assert err.endswith("--set teachers_must_learn=false --resume")
    assert not sweep.records.load()


@pytest.mark.parametrize(("dev", "majority", "unlearnt"), [
    ({"en": 0.7, "de": 0.8}, {"en": 0.7, "de": 0.7}, {"en": 0.7}),
    ({"en": 0.0, "de": 0.1}, {}, {"en": 0.0}),
    # Where dev has one label only, nothing can be better.
    ({"en": 1.0}, {"en": 1.0}, {}),
])  # fmt: skip
def test_what_counts_as_learnt(dev, majority, unlearnt):
    assert Teacher("t", scores(Score.from_languages(dev)), majority=majority).unlearnt == unlearnt
