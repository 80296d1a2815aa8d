"""`raykd compare` on a sweep's records: no file, no Ray and no corpus is needed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from raykd.cli.main import main
from raykd.storage import Storage
from raykd.sweep.records import Record, SweepRecords
from raykd.trial import Trial

ROOT = Path(__file__).parents[2]
SCORES = {"structural": (0.70, 0.71, 0.72), "top_k": (0.61, 0.622, 0.632), "gold": (0.60, 0.61, 0.62)}
LOADED = """
import atexit, json, sys
slow = ("ray", "mlflow", "optuna", "torch")
atexit.register(lambda: print(json.dumps([name for name in slow if name in sys.modules])))
from raykd.cli.main import main
main()
"""


def saved(store: Path, name: str, corpus: str = "one") -> None:
    """A sweep of three trials as an older version left it: the seeds' scores stand with the runs."""
    storage = Storage(str(store))
    records = SweepRecords(storage, name)
    records.open(sweep_id=f"sweep-{name}", text="{}", resume=False)
    for number, (kind, scores) in enumerate(SCORES.items()):
        ids = tuple(f"run-{kind}-{i}" for i in range(len(scores)))
        for run_id, f1 in zip(ids, scores, strict=True):
            storage.child("runs", run_id).write_json(
                "result.json", {part: {"mean": f1} for part in ("dev", "test")}
            )
        role = "baseline" if kind == "gold" else "search"
        ended = Trial(
            number,
            "COMPLETE",
            {"student.hidden_dim": 8},
            role,
            kind,
            ids,
            dev_f1=scores[1],
            test_f1=scores[1],
        )
        records.save(Record(ended, {"corpus": {"source": corpus}}))
    records.save(Record(Trial(3, "FAILED", {}, objective="emission", message="[no] memory"), {}))


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """What the command prints and how it ends."""
    saved(tmp_path / "store", "ner")

    def run(*words: str) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "argv", ["raykd", "compare", *words, "--store", str(tmp_path / "store")])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return said.out, said.err, int(left.value.code or 0)

    return run


def test_the_table_ends_with_what_was_left_out_and_the_next_verb(told):
    out, _, code = told("ner")
    assert code == 0
    assert "structural · H8" in out
    assert "left out: ner: #03 emission failed ([no] memory)" in out
    assert "compare: 1 better, 1 cannot tell. Next: raykd front ner" in out


def test_a_file_is_told_how_to_get_more_seeds(told, tmp_path):
    file = tmp_path / "ner.yaml"
    file.write_text("name: ner\n")
    out, _, _ = told(str(file))
    found = json.loads(told(str(file), "--format", "json")[0])
    needed = next(each["seeds_needed"] for each in found["comparisons"] if each["seeds_needed"])
    assert f"raykd sweep {file} --set search.runs_per_setting={needed} --set name=ner-{needed}-seeds" in out


def test_data_stands_alone_on_standard_output(told):
    out, err, _ = told("ner", "--format", "json", "--baseline", "gold", "--alpha", "0.1", "--no-bonferroni")
    plain = json.loads(out)
    assert [each["setting"]["by_seed"] for each in plain["comparisons"]] == [
        list(SCORES["structural"]), list(SCORES["top_k"])
    ]  # fmt: skip
    assert {each["alpha"] for each in plain["comparisons"]} == {0.1}
    assert "Next: raykd front ner" in err
    assert told("ner", "--format", "csv")[0].startswith("sweep,score,number")
    assert told("ner", "--format", "markdown")[0].startswith("**ner: test F1")


def test_an_unknown_baseline_ends_with_code_2(told):
    _, err, code = told("ner", "--baseline", "top_w")
    assert code == 2
    assert "did you mean 'top_k'? there are structural, top_k, gold, and trials 0, 1, 2" in err
    _, err, code = told("pos")
    assert code == 4
    assert "sweep 'pos': is not in the store" in err


@pytest.mark.parametrize(("corpus", "warned"), [("one", False), ("other", True)])
def test_sweeps_of_another_corpus_are_compared_with_a_warning(told, tmp_path, corpus, warned):
    saved(tmp_path / "store", "pos", corpus)
    out, err, code = told("ner", "pos", "--baseline", "ner:gold")
    assert code == 0
    assert "pos:02" in out
    assert ("differ in their corpus" in err) is warned


def test_it_needs_neither_ray_nor_torch(tmp_path):
    saved(tmp_path, "ner")
    words = ["compare", "ner", "--store", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", LOADED, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
