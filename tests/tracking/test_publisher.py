"""Sweeps published in a real SQLite MLflow, resumed, and published while the server is away."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from raykd.errors import TrackingError
from raykd.figures.trial import Teacher, Trial
from raykd.tracking import publisher as publisher_module
from raykd.tracking.origin import git_commit
from raykd.tracking.pages import (
    KEY_LENGTH,
    VALUE_LENGTH,
    clean_key,
    dataset,
    epoch_values,
    flatten,
    searched_params,
    text,
)  # fmt: skip
from raykd.tracking.published_runs import PAIRS_PER_BATCH
from raykd.tracking.sweep_pages import Ending, Gain
from raykd.tracking.views import VIEWS, front_links
from tests.patience import until
from tests.scores import score, scores
from tests.tracking.swept import Swept

SETTINGS = {
    "student.embedding_dim": 32,
    "student.hidden_dim": 64,
    "student.decoder": "crf",
    "objective.kind": "top_wk",
    "objective.k": 3,
}


def trial(number=7, state="COMPLETE", **more):
    return Trial(number, state, {**SETTINGS, "student.hidden_dim": 64 + number}, objective="top_wk", **more)


@pytest.fixture(scope="module")
def database(empty_mlflow, tmp_path_factory):
    """One database for all tests: each test has an experiment of its own."""
    return f"sqlite:///{shutil.copy(empty_mlflow, tmp_path_factory.mktemp('mlflow'))}"


@pytest.fixture
def name(request):
    return request.node.name


@pytest.fixture
def client(database):
    return MlflowClient(database)


def runs(client, name):
    """Return the parent run, and its children by number."""
    experiment = client.get_experiment_by_name(name)
    all_runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in all_runs if "mlflow.parentRunId" not in run.data.tags]
    children = {int(r.data.tags["raykd.trial"].split("/")[1]): r for r in all_runs if r not in parents}
    assert len(parents) == 1
    assert len(children) == len(all_runs) - 1, "a trial has two runs"
    assert all(r.data.tags["mlflow.parentRunId"] == parents[0].info.run_id for r in children.values())
    return parents[0], children


def points(client, run, key):
    return [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, key)]


def test_a_trial_shows_settings_curves_results_and_tags(database, client, name):
    swept = Swept(database, name, tags={"transfer_id": "transfer-1"})
    swept.record(trial(state="RUNNING"))
    swept.pages.log_epoch(7, 0, {"loss": 2.5, "dev": 0.5, "dev_by_language": {"en": 0.4}})
    swept.pages.log_epoch(7, 1, {"loss": 1.5, "dev": 0.75})
    complete = trial(
        run_ids=("run-a", "run-b"),
        scores=scores(score(0.7, 0.8, languages={"en": 0.7}, languages_sd=0.25)),
        cost={"latency_ms": 1.5, "parameters": 12345},
    )
    swept.record(complete)
    assert swept.close() == ()

    parent, children = runs(client, name)
    child = children[7]
    assert parent.info.run_name == f"sweep {name}"
    assert (parent.info.status, child.info.status) == ("FINISHED", "FINISHED")
    assert child.info.run_name == "#07 top_wk k=3 · E32 H71 crf"
    assert child.data.params == {key: str(value) for key, value in complete.settings.items()}
    assert points(client, child, "epoch/loss") == [(0, 2.5), (1, 1.5)]
    assert points(client, child, "epoch/dev_f1/en") == [(0, 0.4)]
    results = {key: value for key, value in child.data.metrics.items() if not key.startswith("epoch/")}
    assert results == {
        "dev_f1": 0.75, "dev_f1_sd": 0.070711, "dev_f1_languages_sd": 0.25, "dev_f1/en": 0.7,
        "latency_ms": 1.5, "parameters": 12345,
    }  # fmt: skip
    tags = child.data.tags
    assert tags["run_id"] == "run-a, run-b"
    assert tags["transfer_id"] == parent.data.tags["transfer_id"] == "transfer-1"
    assert (tags["state"], tags["on_front"]) == ("COMPLETE", "false")


def test_languages_of_all_scripts_have_metrics_of_their_own(database, client, name):
    languages = [
        "中文",
        "日本",
        "हिन्दी",
        "हिन्दु",
        "français",
        "franc\u0327ais",
        "a+b",
        "a_b",
        "a_u2b_b",
        "😀",
        "zh/TW",
    ]
    dev = {language: (place + 1) / 20 for place, language in enumerate(languages)}
    swept = Swept(database, name)
    swept.record(trial(state="RUNNING"))
    swept.pages.log_epoch(7, 0, {"dev": 0.5, "dev_by_language": dev})
    swept.record(trial(scores=scores(score(0.7, 0.8, languages=dev))))
    assert swept.close() == ()
    metrics = runs(client, name)[1][7].data.metrics
    for kind in ("dev_f1/", "epoch/dev_f1/"):
        values = {key.removeprefix(kind): value for key, value in metrics.items() if key.startswith(kind)}
        assert sorted(values.values()) == sorted(dev.values())
        assert {key: values[key] for key in ("中文", "日本", "français", "a_b", "zh/TW")} == {
            key: dev[key] for key in ("中文", "日本", "français", "a_b", "zh/TW")
        }
        assert (values["a_u2b_b"], values["a_u5f_u2b_b"], values["_u1f600_"]) == (
            dev["a+b"],
            dev["a_u2b_b"],
            dev["😀"],
        )


def test_long_keys_and_keys_of_mappings_are_not_mixed_up():
    first, second = (clean_key("k" * KEY_LENGTH + end) for end in "ab")
    assert len(first) == len(second) == KEY_LENGTH
    assert first != second
    assert searched_params({"a+b": {"train": {"中文": "x"}}}) == {"a_u2b_b.train.中文": "x"}


@pytest.mark.parametrize(("state", "status"), [("PRUNED", "KILLED"), ("FAILED", "FAILED")])
def test_states_stay_honest(database, client, name, state, status):
    swept = Swept(database, name)
    swept.record(trial(state=state, message="because"))
    assert swept.close() == ()
    child = runs(client, name)[1][7]
    assert child.info.status == status
    assert (child.data.tags["state"], child.data.tags["message"]) == (state, "because")


def test_the_runs_of_one_trial_have_curves_of_their_own(database, client, name):
    names, swept = ("seed 0", "seed 1", "seed 1 en"), Swept(database, name)
    swept.record(trial(state="RUNNING"))
    for loss, run in enumerate(names):
        swept.pages.log_epoch(7, 0, {"loss": loss}, run=run)
    assert swept.close() == ()
    child = runs(client, name)[1][7]
    assert [points(client, child, f"epoch/{run}/loss") for run in names] == [[(0, 0)], [(0, 1)], [(0, 2)]]


def test_what_is_published_twice_changes_nothing(database, client, name):
    """Neither by one driver, nor by the next one."""
    for _ in range(2):
        swept = Swept(database, name, corpora=[dataset("wikiann", "corpus-1", source="/data")])
        swept.record(trial(1, scores=scores(0.5)), trial(2, "RUNNING"))
        for number in (1, 2):
            swept.pages.log_epoch(number, 0, {"loss": 2.0})
        assert swept.publish() == ()
        swept.shown.client = Mortal(swept.shown.client, 0)
        assert swept.publish() == ()
        before = shown(client, name)
    swept.shown.is_known = False  # as after an error
    assert swept.publish() == ()
    assert shown(client, name) == before


def test_a_resumed_sweep_finds_its_runs_again(database, client, name):
    """The first driver is killed: it never closes. The second repeats an epoch and a whole finished trial."""
    first = Swept(database, name, tags={"git_commit": "first"})
    first.record(trial(1, scores=scores(0.5)), trial(2, "RUNNING"))
    first.pages.log_epoch(2, 0, {"loss": 2.0, "tokens_per_second": 900.0})
    assert first.publish() == ()

    second = Swept(database, name, tags={"git_commit": "second"})
    second.record(trial(1, scores=scores(0.5)), trial(2, "RUNNING"))
    assert second.publish() == ()
    assert runs(client, name)[1][2].info.status == "RUNNING"
    second.pages.log_epoch(2, 0, {"loss": 2.0, "tokens_per_second": 950.0})
    second.pages.log_epoch(2, 1, {"loss": 1.0, "tokens_per_second": 960.0})
    second.record(trial(2, scores=scores(0.75)), trial(3, scores=scores(0.7)))
    second.pages.ending = Ending(frozenset({1, 2}))
    assert second.close() == ()

    parent, children = runs(client, name)
    assert sorted(children) == [1, 2, 3]
    assert {r.info.status for r in children.values()} == {"FINISHED"}
    assert points(client, children[1], "dev_f1") == [(0, 0.5)]
    assert points(client, children[2], "epoch/loss") == [(0, 2.0), (1, 1.0)]
    assert points(client, children[2], "epoch/tokens_per_second") == [(0, 900.0), (1, 960.0)]
    assert {n: r.data.tags["on_front"] for n, r in children.items()} == {1: "true", 2: "true", 3: "false"}
    commits = {n: r.data.tags["git_commit"] for n, r in children.items()}
    assert commits == {1: "first", 2: "first", 3: "second"}, "what a trial was begun with stays"
    assert parent.data.tags["git_commit"] == "second"


def test_an_epoch_that_no_driver_had_time_to_publish_is_shown_when_its_run_has_ended(database, client, name):
    """A run that goes on after the last checkpoint reports later epochs alone; its result has all of them."""
    first = Swept(database, name)
    first.record(trial(1, "RUNNING"))
    first.pages.log_epoch(1, 0, {"loss": 3.0})
    assert first.publish() == ()
    second = Swept(database, name)
    second.record(trial(1, "RUNNING"))
    second.pages.log_epoch(1, 2, {"loss": 1.0})
    assert second.publish() == ()
    for epoch, loss in enumerate((3.0, 2.0, 1.0)):
        second.pages.log_epoch(1, epoch, {"loss": loss})
    second.record(trial(1))
    assert second.close() == ()
    assert sorted(points(client, runs(client, name)[1][1], "epoch/loss")) == [(0, 3.0), (1, 2.0), (2, 1.0)]


def test_a_trial_of_an_earlier_driver_is_not_shown_as_ended_before_its_epochs_are_read(
    database, client, name
):
    swept = Swept(database, name)
    swept._trials[1] = trial(1)
    assert swept.publish() == ()
    assert runs(client, name)[1] == {}
    swept.pages.log_epoch(1, 0, {"loss": 3.0})
    swept.pages.end_trial(1)
    assert swept.publish() == ()
    assert points(client, runs(client, name)[1][1], "epoch/loss") == [(0, 3.0)]


WRITES = ("create_run", "log_batch", "log_inputs", "log_artifact", "set_terminated", "update_run")


class Killed(BaseException):
    """Stands for kill -9: no code of the tracker runs after it."""


class Mortal:
    """A client whose driver is killed once `writes` of its requests have been answered."""

    def __init__(self, client, writes):
        self.client, self.writes = client, writes

    def __getattr__(self, name):
        def call(*args, **kwargs):
            if name in WRITES:
                if self.writes == 0:
                    raise Killed
                self.writes -= 1
            return getattr(self.client, name)(*args, **kwargs)

        return call


def publish_sweep(database, name, monkeypatch, writes):
    """Publish a whole small sweep by a driver that makes so many `writes` at most; return whether it was killed."""
    link = Mortal(MlflowClient(database), writes)
    tree = {"name": "x", **{f"setting{number}": number for number in range(PAIRS_PER_BATCH)}}
    with monkeypatch.context() as patch:
        patch.setattr(publisher_module, "MlflowClient", lambda uri: link)
        try:
            corpora = [dataset("wikiann", "corpus-1", source="/data")]
            swept = Swept(database, name, tree=tree, corpora=corpora, files={"sweep.yaml": b"name: x"})
            swept.pages.log_teachers([(Teacher("crf", scores=scores(0.75)), {})])
            swept.record(trial(1, "RUNNING"))
            swept.publish()
            swept.pages.log_epoch(1, 0, {"loss": 2.0})
            swept.record(trial(1, scores=scores(0.5)))
            swept.pages.state = "COMPLETE"
            assert swept.publish() == ()
        except Killed:
            return True
    return False


def shown(client, name):
    """All that the runs of an experiment show, without identities, times and commits."""
    all_runs = client.search_runs([client.get_experiment_by_name(name).experiment_id])
    files = {
        run.info.run_id: [file.path for file in client.list_artifacts(run.info.run_id)] for run in all_runs
    }
    return {
        run.info.run_name.replace(name, ""): (
            run.info.status,
            run.data.params,
            {key: points(client, run, key) for key in run.data.metrics},
            {
                key: run.data.tags[key]
                for key in run.data.tags
                if not key.startswith(("mlflow.", "git_commit"))
            },
            [(used.dataset.name, used.dataset.digest) for used in run.inputs.dataset_inputs],
            files[run.info.run_id],
        )
        for run in all_runs
    }, len(all_runs)


@pytest.mark.slow
def test_a_driver_killed_after_any_of_its_writes_leaves_nothing_out(database, client, name, monkeypatch):
    """The parameters of a run are written after the run is made: a kill between the two once left it without them."""
    assert not publish_sweep(database, f"{name} undisturbed", monkeypatch, 10**6)
    undisturbed, count = shown(client, f"{name} undisturbed")
    assert count == len(undisturbed) == 3
    assert all(params or run == "teacher crf" for run, (_, params, *_) in undisturbed.items())
    writes = 0
    while publish_sweep(database, f"{name} {writes}", monkeypatch, writes):
        assert not publish_sweep(database, f"{name} {writes}", monkeypatch, 10**6)
        resumed, count = shown(client, f"{name} {writes}")
        assert count == 3, "a trial has two runs"
        for run, values in undisturbed.items():
            assert resumed[run] == values, f"killed after {writes} writes"
        writes += 1
    assert writes > 12


def test_the_front_is_marked_for_trials_of_an_earlier_driver(database, client, name):
    for front in (1, 2):
        swept = Swept(database, name)
        swept.record(trial(1), trial(2))
        swept.pages.ending = Ending(frozenset({front}))
        assert swept.close() == ()
    assert {n: r.data.tags["on_front"] for n, r in runs(client, name)[1].items()} == {1: "false", 2: "true"}


def test_how_the_front_grew_is_shown_once_for_each_trial_in_their_order(database, client, name):
    """Trial 2 ends before trial 1; a driver that is killed leaves nothing out."""
    cost = {"latency_ms": 1.0, "parameters": 100}
    ended = [trial(number, scores=scores(0.4 + number / 10), cost=cost) for number in range(3)]
    first = Swept(database, name)
    first.pages.log_teachers(
        [(Teacher("crf", scores=scores(0.9), cost={"latency_ms": 2.0, "parameters": 200}), {})]
    )
    first.record(ended[0], trial(1, "RUNNING"), ended[2])
    assert first.publish() == ()
    assert [step for step, _ in points(client, runs_with_teacher(client, name), "front/students")] == [1]
    second = Swept(database, name)
    second.pages.log_teachers(
        [(Teacher("crf", scores=scores(0.9), cost={"latency_ms": 2.0, "parameters": 200}), {})]
    )
    second.record(*ended)
    assert second.close() == ()
    parent = runs_with_teacher(client, name)
    assert points(client, parent, "front/students") == [(1, 1), (2, 1), (3, 1)]
    volumes = points(client, parent, "front/hypervolume")
    assert volumes == [(1, pytest.approx(0.1)), (2, pytest.approx(0.125)), (3, pytest.approx(0.15))]


def runs_with_teacher(client, name):
    """The sweep's own run."""
    (parent,) = client.search_runs([client.get_experiment_by_name(name).experiment_id], "tags.role = 'sweep'")
    return parent


def test_two_sweeps_of_one_name_share_the_experiment_only(database, client, name):
    for sweep_id in ("sweep-a", "sweep-b"):
        swept = Swept(database, name, sweep_id=sweep_id)
        swept.record(trial(1))
        assert swept.close() == ()
    all_runs = client.search_runs([client.get_experiment_by_name(name).experiment_id])
    assert len(all_runs) == 4
    assert len({r.data.tags["mlflow.parentRunId"] for r in all_runs if "raykd.trial" in r.data.tags}) == 2


class Away:
    """A client whose server is away while `away` is true. `after`: how many writes still arrive before."""

    def __init__(self, client):
        self.client, self.away, self.after = client, False, 0

    def __getattr__(self, name):
        def call(*args, **kwargs):
            if self.away and self.after <= 0:
                raise ConnectionError("the server is away")
            self.after -= self.away
            return getattr(self.client, name)(*args, **kwargs)

        return call


class Lost:
    """A client that does what it is asked, and loses the answer to the first call of each of `names`."""

    def __init__(self, client, *names):
        self.client, self.names = client, set(names)

    def __getattr__(self, name):
        def call(*args, **kwargs):
            answer = getattr(self.client, name)(*args, **kwargs)
            if name in self.names:
                self.names.remove(name)
                raise ConnectionError("the answer was lost")
            return answer

        return call


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_what_a_dead_server_missed_is_written_when_it_answers_again(database, client, name, after):
    warnings = []
    swept = Swept(database, name, warn=warnings.append)
    swept.shown.client = link = Away(swept.shown.client)
    swept.pages.log_teachers([])
    link.away, link.after = True, after
    swept.record(trial(1, "RUNNING"))
    for epoch in range(3):
        swept.pages.log_epoch(1, epoch, {"loss": float(epoch)})
        swept.publish()
    swept.record(trial(1, scores=scores(0.5)))
    assert any(line.startswith("#01 top_wk") for line in swept.publish())
    assert swept.publisher.waiting > 0
    assert len(warnings) == 1, "one sentence, not one per write"
    assert "the server is away" in warnings[0]

    link.away = False
    assert swept.close() == ()
    assert swept.publisher.waiting == 0
    assert len(warnings) == 2
    assert "answers again" in warnings[1]
    parent, children = runs(client, name)
    assert points(client, children[1], "epoch/loss") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert points(client, children[1], "dev_f1") == [(0, 0.5)]
    assert points(client, parent, "front/hypervolume") == [(1, 0.0)]


@pytest.mark.parametrize("write", ["create_run", "log_batch", "log_inputs", "log_artifact", "set_terminated"])
def test_what_is_written_and_not_answered_is_there_once(database, client, name, write):
    swept = Swept(database, name, files={"a": b"1"}, corpora=[dataset("wikiann", "corpus-1", source="/data")])
    swept.shown.client = Lost(swept.shown.client, write)
    swept.record(trial(1, scores=scores(0.5)))
    swept.pages.log_epoch(1, 0, {"loss": 2.0})
    assert swept.publish() != ()
    assert swept.close() == ()
    child = runs(client, name)[1][1]
    assert points(client, child, "epoch/loss") == [(0, 2.0)]
    assert points(client, child, "dev_f1") == [(0, 0.5)]
    assert child.info.status == "FINISHED"


def test_close_names_what_a_dead_server_never_got(database, name, monkeypatch):
    monkeypatch.setattr(publisher_module, "LAST_S", 0.0)
    swept = Swept(database, name)
    swept.shown.client = link = Away(swept.shown.client)
    link.away = True
    swept.record(trial(1, scores=scores(0.5)))
    missing = swept.close()
    assert "the server is away" in missing[0]
    assert any("#01 top_wk k=3" in line for line in missing[1:])


def test_the_thread_publishes_without_being_asked(database, client, name):
    swept = Swept(database, name, seconds=0.05)
    swept.record(trial(1, scores=scores(0.5)))
    until(lambda: "#01" in str(client.search_runs([swept.publisher.experiment_id])))
    until(lambda: not swept.publisher.missing())
    assert points(client, runs(client, name)[1][1], "dev_f1") == [(0, 0.5)]
    assert swept.close() == ()


def test_the_thread_publishes_as_soon_as_it_is_woken(database, client, name):
    swept = Swept(database, name)  # its next turn comes in days
    swept.record(trial(1, "RUNNING"))
    swept.publisher.wake()
    until(lambda: sorted(runs(client, name)[1]) == [1])
    swept.record(trial(1))
    swept.publisher.wake()
    until(lambda: {run.info.status for run in runs(client, name)[1].values()} == {"FINISHED"})
    assert swept.close() == ()


def test_records_that_cannot_be_read_are_reported_and_tried_again(database, client, name):
    """The store may not answer for a while: that ends no thread, and the sweep does not say that all is in MLflow."""
    warnings, failing = [], [True]

    def trials():
        if failing[0]:
            raise OSError("the store does not answer")
        return [trial(1, scores=scores(0.5))]

    swept = Swept(database, name, warn=warnings.append, seconds=0.05)
    swept.pages.trials = trials
    swept.pages.end_trial(1)
    until(lambda: warnings)
    assert "the store does not answer" in warnings[0]
    failing[0] = False
    assert swept.close() == ()
    assert sorted(runs(client, name)[1]) == [1]


def test_nothing_is_written_by_a_driver_that_has_lost_the_sweep(database, client, name):
    swept = Swept(database, name)
    swept.publisher._may_write = lambda: False
    swept.record(trial(1, scores=scores(0.5)))
    assert swept.publish() != ()
    assert runs(client, name)[1] == {}


def test_a_trial_that_still_runs_at_the_end_is_not_left_running(database, client, name):
    swept = Swept(database, name)
    swept.record(trial(1, "RUNNING"))
    assert swept.close("FAILED") == ()
    parent, children = runs(client, name)
    assert (parent.info.status, children[1].info.status) == ("FAILED", "KILLED")


def test_the_corpus_is_the_dataset_of_sweep_and_trials(database, client, name):
    profile = {"sentences": 5}
    for _ in range(2):
        corpus = dataset("wikiann", "corpus-0123456789abcdef", source="/data", profile=profile)
        swept = Swept(database, name, corpora=[corpus])
        swept.record(trial(1))
        assert swept.close() == ()
    parent, children = runs(client, name)
    for run in (parent, children[1]):
        (used,) = run.inputs.dataset_inputs
        assert (used.dataset.name, used.dataset.digest) == ("wikiann", "corpus-0123456789abcdef")
        assert json.loads(used.dataset.profile) == {"sentences": 5}


def test_files_and_description_stand_on_the_parent(database, client, name, tmp_path):
    swept = Swept(database, name)
    swept.pages.ending = Ending(files={"front.html": b"old"})
    swept.publish()
    text_ = (
        f"{front_links(swept.publisher.experiment_id, swept.publisher.published.sweep_run)}\n\n| a front |"
    )
    swept.pages.ending = Ending(files={"front.html": b"new"}, description=text_, verdict="ship none")
    assert swept.close() == ()
    parent, _ = runs(client, name)
    assert [f.path for f in client.list_artifacts(parent.info.run_id)] == ["front.html"]
    path = client.download_artifacts(parent.info.run_id, "front.html", str(tmp_path))
    assert Path(path).read_bytes() == b"new"
    note = parent.data.tags["mlflow.note.content"]
    assert note.endswith("\n\n| a front |")
    assert f"/runs/{parent.info.run_id}/artifacts/front.html" in note
    assert parent.data.tags["verdict"] == "ship none"
    place = f"#/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}?"
    assert swept.publisher.place.startswith(place)


def test_long_and_odd_settings_are_cut_not_refused(database, client, name):
    settings = {"corpus.root (déjà)": "x" * 9000, "k" * 400: 1, "none": None}
    swept = Swept(database, name)
    swept.record(Trial(1, "COMPLETE", settings))
    assert swept.close() == ()
    params = runs(client, name)[1][1].data.params
    assert len(params["corpus.root _u28_déjà_u29_"]) == VALUE_LENGTH
    assert params[clean_key("k" * 400)] == "1"
    assert params["none"] == ""


def test_more_values_than_one_request_takes(database, client, name):
    swept = Swept(database, name)
    swept.record(Trial(1, "RUNNING", {f"setting.{i}": i for i in range(250)}))
    for epoch in range(600):
        swept.pages.log_epoch(1, epoch, {"loss": 1.0, "dev": 0.5})
    assert swept.close() == ()
    child = runs(client, name)[1][1]
    assert len(child.data.params) == 250
    assert len(points(client, child, "epoch/loss")) == 600


def test_a_deleted_experiment_is_reported_with_the_hint(database, client, name):
    Swept(database, name).close()
    client.delete_experiment(client.get_experiment_by_name(name).experiment_id)
    with pytest.raises(TrackingError, match="mlflow experiments restore"):
        Swept(database, name)


def test_what_is_known_before_training_is_shown_once(database, client, name):
    swept = Swept(database, name)
    cost = {"latency_ms": 1.5, "parameters": 100}
    swept.record(trial(1, "RUNNING", cost=cost))
    assert swept.publish() == ()
    assert runs(client, name)[1][1].data.metrics == {"latency_ms": 1.5, "parameters": 100}
    swept.record(trial(1, cost=cost, scores=scores(0.123456789)))
    assert swept.close() == ()
    child = runs(client, name)[1][1]
    assert points(client, child, "latency_ms") == [(0, 1.5)]
    assert points(client, child, "dev_f1") == [(0, 0.12346)]


def test_the_experiment_offers_views_that_name_what_is_shown(database, client, name):
    """The format is MLflow's own Save view: an envelope with a name, and the state of the page as JSON."""
    swept = Swept(database, name)
    swept.record(trial(1, scores=scores(0.5, 0.5), cost={"latency_ms": 1.0, "parameters": 5}))
    swept.pages.ending = Ending(frozenset({1}))
    assert swept.close() == ()
    experiment = client.get_experiment_by_name(name)
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    child = runs(client, name)[1][1].data
    known_columns = {f"metrics.`{key}`" for key in child.metrics} | {f"tags.`{key}`" for key in child.tags}
    for key in VIEWS:
        envelope = json.loads(experiment.tags[f"mlflow.sharedViewState.{key}"])
        assert set(envelope) == {"name", "createdAt", "updatedAt", "state"}
        state = json.loads(envelope["state"])
        assert set(state["selectedColumns"]) <= known_columns
        assert state["orderByKey"] in known_columns
        client.search_runs([experiment.experiment_id], state["searchFilter"])
        assert f"viewStateShareKey={key}&" in experiment.tags["mlflow.note.content"]
    front = json.loads(json.loads(experiment.tags["mlflow.sharedViewState.raykd-front"])["state"])
    (run,) = client.search_runs([experiment.experiment_id], front["searchFilter"])
    assert run.info.run_name.startswith("#01")


def test_a_server_without_room_for_a_view_gets_all_else(database, client, name, monkeypatch, caplog):
    monkeypatch.setattr("mlflow.utils.validation.MAX_EXPERIMENT_TAG_VAL_LENGTH", 1000)
    swept = Swept(database, name)
    swept.record(trial(1, scores=scores(0.5, 0.5), cost={"latency_ms": 1.0}))
    assert swept.close() == ()
    tags = client.get_experiment_by_name(name).tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    assert not [key for key in tags if key.startswith("mlflow.sharedViewState.")]
    assert [record for record in caplog.messages if "the view raykd-front is too long" in record]


def test_scores_stand_by_the_name_that_their_task_gives_them(database, client, name):
    called = {"score_name": "accuracy", "score_label": "aspect accuracy"}
    swept = Swept(database, name, targets=True, **called)
    swept.record(trial(1, scores=scores(0.5, 0.4, 0.3), **called))
    swept.pages.log_epoch(1, 0, {"dev": 0.45, "dev_by_language": {"en": 0.45}, "loss": 1.0})
    assert swept.close() == ()
    metrics = runs(client, name)[1][1].data.metrics
    means = {"dev_accuracy": 0.5, "test_accuracy": 0.4, "test_accuracy_target": 0.3}
    spreads = {f"{key}_languages_sd": 0.0 for key in means}
    curves = {"epoch/dev_accuracy": 0.45, "epoch/dev_accuracy/en": 0.45, "epoch/loss": 1.0}
    assert metrics == means | spreads | curves
    tags = client.get_experiment_by_name(name).tags
    view = json.loads(tags["mlflow.sharedViewState.raykd-front"])
    assert view["name"] == "The front, by dev aspect accuracy"
    state = json.loads(view["state"])
    assert state["orderByKey"] == "metrics.`dev_accuracy`"
    assert state["selectedColumns"][:3] == [f"metrics.`{key}`" for key in means]
    assert "_f1" not in json.dumps(tags)


def test_what_people_wrote_about_an_experiment_stays(database, client, name):
    client.create_experiment(name, tags={"mlflow.note.content": "mine"})
    Swept(database, name).close()
    assert client.get_experiment_by_name(name).tags["mlflow.note.content"] == "mine"


def test_what_is_not_a_number_is_left_out():
    assert flatten({"a": float("nan"), "b": float("inf"), "c": None, "d": "x", "e": True, "f": 2}) == {
        "e": 1.0,
        "f": 2.0,
    }
    assert text(None) == ""


def test_an_epoch_s_numbers_have_the_names_of_the_score():
    metrics = {
        "stage": 1, "step": 0, "layers": ["head"], "lambda": 0.5, "loss": 2.0, "held_out_loss": 0.25,
        "losses": {"structural": 1.5, "gold": 0.5}, "dev": 0.75, "dev_languages_sd": 0.1,
        "dev_by_language": {"en": 0.7}, "device": 3,
    }  # fmt: skip
    common = {
        "epoch/stage": 2, "epoch/step": 1, "epoch/lambda": 0.5, "epoch/dev_accuracy": 0.75,
        "epoch/dev_accuracy_languages_sd": 0.1, "epoch/dev_accuracy/en": 0.7, "epoch/device": 3,
    }  # fmt: skip
    losses = {"loss": 2.0, "loss/structural": 1.5, "loss/gold": 0.5, "held_out_loss": 0.25}
    of_stage = {f"epoch/stage2_structural_gold/{name}": value for name, value in losses.items()}
    several = ("representation", "structural+gold")
    assert epoch_values(metrics, "accuracy", "epoch/", several) == common | of_stage
    single_stage = epoch_values(metrics | {"stage": 0}, "accuracy", "epoch/", ("structural+gold",))
    of_run = {f"epoch/{name}": value for name, value in losses.items()}
    assert single_stage == common | {"epoch/stage": 1} | of_run
    assert epoch_values({"dev": 0.5}, "f1", "epoch/seed 1/") == {"epoch/seed 1/dev_f1": 0.5}


def test_each_stage_has_loss_curves_of_its_own_and_the_views_chart_them(database, client, name):
    ways = [("representation", "gold"), ("gold",)]
    swept = Swept(database, name, run="seed 0", stages=ways)
    swept.record(trial(state="RUNNING"))
    for epoch, stage in enumerate((0, 0, 1)):
        metrics = {"stage": stage, "loss": 2.0 - epoch, "held_out_loss": 3.0, "dev": 0.1}
        swept.pages.log_epoch(7, epoch, metrics, run="seed 0", stages=ways[0])
    assert swept.close() == ()
    child = runs(client, name)[1][7]
    first, second = "epoch/seed 0/stage1_representation", "epoch/seed 0/stage2_gold"
    assert points(client, child, f"{first}/loss") == [(0, 2.0), (1, 1.0)]
    assert points(client, child, f"{second}/loss") == [(2, 0.0)]
    assert points(client, child, f"{second}/held_out_loss") == [(2, 3.0)]
    assert "epoch/seed 0/loss" not in child.data.metrics
    tags = client.get_experiment_by_name(name).tags
    state = json.loads(json.loads(tags["mlflow.sharedViewState.raykd-front"])["state"])
    charted = [chart["metricKey"] for chart in state["compareRunCharts"] if chart["type"] == "LINE"]
    assert charted == ["epoch/seed 0/dev_f1", f"{first}/loss", f"{second}/loss", "epoch/seed 0/loss"]


def test_the_commit_says_when_the_tree_differs(tmp_path, monkeypatch):
    def git(*words):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    monkeypatch.setenv("RAYKD_GIT_COMMIT", " ")
    assert git_commit(tmp_path) is None
    monkeypatch.setenv("RAYKD_GIT_COMMIT", "1f2e-dirty\n")
    assert git_commit(tmp_path) == "1f2e-dirty"
    git("init")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "one")
    commit = git_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    (tmp_path / "a").write_text("2")
    assert git_commit(tmp_path) == f"{commit}-dirty"


def test_teachers_are_runs_with_curves_and_the_gain_over_labels_alone_is_a_metric(database, client, name):
    teacher = Teacher("bilstm_crf × 2 (it's)", scores=scores(0.75, 0.5), cost={"latency_ms": 3.0})
    epochs = {"en": [{"epoch": 0, "loss": 2.0, "dev": 0.5}], "de": [{"epoch": 0, "dev": 0.25}]}
    for _ in range(2):
        swept = Swept(database, name)
        swept.pages.log_teachers([(teacher, epochs)])
        swept.record(trial(1, scores=scores(0.5)))
        swept.pages.ending = Ending(gains={1: Gain(4, {"over_gold": 0.1234567})})
        assert swept.close() == ()
    experiment = client.get_experiment_by_name(name).experiment_id
    (run,) = client.search_runs([experiment], "tags.role = 'teacher'")
    assert run.info.run_name == f"teacher {teacher.name}"
    assert run.info.status == "FINISHED"
    assert run.data.metrics["test_f1"] == 0.5
    assert points(client, run, "dev_f1") == [(0, 0.75)]
    assert points(client, run, "epoch/de/dev_f1") == [(0, 0.25)]
    (parent,) = client.search_runs([experiment], "tags.role = 'sweep'")
    assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
    (child,) = client.search_runs([experiment], "metrics.over_gold > 0.1")
    assert (child.data.metrics["over_gold"], child.data.tags["gold_twin"]) == (0.12346, "4")


def test_the_sweep_file_is_at_the_sweep_s_run_with_its_link(database, client, name, tmp_path):
    tree = {
        "name": "x",
        "student": {"kind": "bilstm", "hidden_dim": {"choice": [4, 8]}},
        "search": {"trials": 4},
    }
    assert Swept(database, name, tree=tree, files={"sweep.yaml": b"name: x"}).close() == ()
    resumed = {**tree, "search": {"trials": 8}}
    swept = Swept(database, name, tree=resumed, files={"sweep.yaml": b"name: x, resumed"})
    assert swept.close() == ()
    parent, _ = runs(client, name)
    assert parent.data.params == {
        "name": "x", "student.kind": "bilstm", "student.hidden_dim": '{"choice": [4, 8]}', "search.trials": "4"
    }  # fmt: skip
    path = client.download_artifacts(parent.info.run_id, "sweep.yaml", str(tmp_path))
    assert Path(path).read_bytes() == b"name: x, resumed"
    experiment = client.get_experiment_by_name(name).experiment_id
    assert swept.publisher.link.startswith(
        f"http://127.0.0.1:5000/#/experiments/{experiment}/runs/{parent.info.run_id}?"
    )
