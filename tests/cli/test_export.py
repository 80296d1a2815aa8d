"""`raykd export`: which model is meant, where it goes, what is printed and what is refused."""

from __future__ import annotations

import pytest

from raykd.runs.execute import find_result
from raykd.runs.export import FILES
from raykd.runs.prepare import prepare, student_runs, with_seed
from raykd.storage import Storage
from raykd.sweep.records import Record, SweepRecords
from raykd.trial import Trial
from tests.runs.small import executed, recipe
from tests.sweep.in_process import code_of


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A store with a sweep of one student per language, of which there are two, with two seeds each."""
    asked = recipe(student={"scope": "language"}, objective={"kind": "gold"}, schedule={"epochs": 1})
    ready = prepare(asked, Storage(str(tmp_path_factory.mktemp("export") / "store")))
    runs = [with_seed(run, offset) for offset in (0, 1) for run in student_runs(asked, ready)]
    for run in runs:
        executed(ready, run)
        assert find_result(ready.storage, run) is not None
    records = SweepRecords(ready.storage, "small")
    records.open(sweep_id="sweep-small", text="{}", resume=False)
    records.save(Record(Trial(7, "COMPLETE", run_ids=tuple(run.id for run in runs)), {}))
    records.save(Record(Trial(8, "FAILED"), {}))
    return ready.storage, runs


@pytest.fixture
def export(capsys, tmp_path):
    """What the command prints, with a new line for each of its words, and how it ends."""

    def run(*words):
        code = code_of("export", *map(str, words))
        output = capsys.readouterr()
        return " ".join((output.out + output.err).split()), code

    return run


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_first_seed_of_a_trial_is_exported_for_each_language(swept, export, tmp_path):
    storage, runs = swept
    output, code = export("small#7", tmp_path / "out", "--store", storage.uri)
    assert code == 0
    assert "trial 7 has 2 seeds: seed 0 is exported (--seed chooses another)" in output
    assert files_in(tmp_path / "out") == sorted(
        f"{language}/{name}" for language in ("en", "de") for name in FILES
    )
    for run, language in zip(runs[:2], ("en", "de"), strict=True):
        assert f"{run.id} in {tmp_path}/out/{language}" in output
        assert f'"{run.id}"' in (tmp_path / "out" / language / "export.json").read_text()
    assert "compared on 8 sentences of test" in output
    assert "export: 2 models, one for each language, in" in output


def test_another_seed_is_chosen(swept, export, tmp_path):
    storage, runs = swept
    output, code = export("small#7", tmp_path, "--store", storage.uri, "--seed", 1)
    assert code == 0
    assert "is exported" not in output
    assert f'"{runs[2].id}"' in (tmp_path / "en/export.json").read_text()


def test_a_run_is_named_by_its_id_or_its_folder(swept, export, tmp_path):
    storage, runs = swept
    for place, words in enumerate(
        (
            [runs[0].id, tmp_path / "0", "--store", storage.uri],
            [f"{storage.uri}/runs/{runs[0].id}", tmp_path / "1"],
        )
    ):
        output, code = export(*words)
        assert code == 0
        assert "model-int8.onnx" in output
        assert "export: 1 model in" in output
        assert "compared on" in output, "the folder's store is found"
        assert files_in(tmp_path / str(place)) == sorted(FILES)


def test_files_of_an_export_are_replaced_on_request_alone(swept, export, tmp_path):
    storage, runs = swept
    words = (runs[0].id, tmp_path, "--store", storage.uri)
    (tmp_path / "README.md").write_text("own")
    assert export(*words)[1] == 0
    output, code = export(*words)
    assert code == 4
    assert "holds export.json already; give another folder, or --overwrite" in output
    assert export(*words, "--overwrite")[1] == 0
    assert (tmp_path / "README.md").read_text() == "own"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["small#8"], 4, "trial 8 is FAILED; complete trials are 7"),
        (["small#9"], 4, "has no trial '9'; complete trials are 7"),
        (["other#7"], 4, "sweep 'other': is not in the store"),
        (["small#7", "--seed", "2"], 2, "trial 7 has 2 seeds; choose from 0 to 1"),
        (["run-0123456789abcdef", "--seed", "0"], 2, "only a trial (SWEEP#TRIAL) has seeds"),
        (["run-0123456789abcdef"], 4, "is not the folder of a finished run"),
    ],
)
def test_what_cannot_be_exported_is_refused(swept, export, tmp_path, words, code, message):
    storage, _ = swept
    what, *options = words
    output, found = export(what, tmp_path / "out", "--store", storage.uri, *options)
    assert (found, message in output) == (code, True), output
    assert not (tmp_path / "out").exists()
