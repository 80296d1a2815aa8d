"""`raykd compare` on a sweep's records: no file, no Ray and no corpus is needed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from raykd.cli.main import main
from raykd.figures.trial import Trial
from raykd.storage.store import Storage
from raykd.sweep.records import Record, SweepRecords
from tests.scores import score, scores

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
    """A sweep of three trials of three seeds each, and one that failed."""
    records = SweepRecords(Storage(str(store)), name)
    records.open(sweep_id=f"sweep-{name}", text="{}", resume=False)
    for number, (kind, by_seed) in enumerate(SCORES.items()):
        role = "baseline" if kind == "gold" else "search"
        own_scores = scores(score(*by_seed), score(*by_seed))
        ended = Trial(number, "COMPLETE", {"student.hidden_dim": 8}, role, kind, scores=own_scores)
        records.save(Record(ended, {"corpus": {"source": corpus}}))
    records.save(Record(Trial(3, "FAILED", {}, objective="emission", message="[no] memory"), {}))


@pytest.fixture
def output_of(tmp_path, monkeypatch, capsys):
    """Run the command; return output, messages and exit code."""
    saved(tmp_path / "store", "ner")

    def run(*words: str) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "argv", ["raykd", "compare", *words, "--store", str(tmp_path / "store")])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as raised:
            main()
        output = capsys.readouterr()
        return output.out, output.err, int(raised.value.code or 0)

    return run


def test_the_table_ends_with_what_was_left_out_and_the_next_verb(output_of):
    out, _, code = output_of("ner")
    assert code == 0
    assert "structural · H8" in out
    assert "left out: ner: #03 emission failed ([no] memory)" in out
    assert "compare: 1 better, 1 cannot tell. Next: raykd front ner --store " in out


def test_for_a_file_the_way_to_more_seeds_is_shown(output_of, tmp_path):
    file = tmp_path / "ner.yaml"
    file.write_text("name: ner\n")
    out, _, _ = output_of(str(file))
    report = json.loads(output_of(str(file), "--format", "json")[0])
    needed = next(
        comparison["seeds_needed"] for comparison in report["comparisons"] if comparison["seeds_needed"]
    )
    options = f"--set name=ner-{needed}-seeds --set store={tmp_path}/store"
    assert f"raykd sweep {file} --set search.runs_per_setting={needed} {options}" in out


def test_data_stands_alone_on_standard_output(output_of):
    out, err, _ = output_of(
        "ner", "--format", "json", "--baseline", "gold", "--alpha", "0.1", "--no-bonferroni"
    )
    plain = json.loads(out)
    assert [comparison["setting"]["by_seed"] for comparison in plain["comparisons"]] == [
        list(SCORES["structural"]), list(SCORES["top_k"])
    ]  # fmt: skip
    assert {comparison["alpha"] for comparison in plain["comparisons"]} == {0.1}
    assert "Next: raykd front ner" in err
    assert output_of("ner", "--format", "csv")[0].startswith("sweep,score,number")
    assert output_of("ner", "--format", "markdown")[0].startswith("**ner: test F1")


def test_an_unknown_baseline_ends_with_code_2(output_of):
    _, err, code = output_of("ner", "--baseline", "top_w")
    assert code == 2
    assert "did you mean 'top_k'? there are structural, top_k, gold, and trials 0, 1, 2" in err
    _, err, code = output_of("pos")
    assert code == 4
    assert "sweep 'pos': is not in the store" in err


def test_a_metric_that_the_task_does_not_have_is_refused_with_those_it_has(output_of):
    assert output_of("ner", "--metric", "f1") == output_of("ner")
    _, err, code = output_of("ner", "--metric", "slot_f1")
    assert code == 2
    assert "error --metric slot_f1: unknown metric 'slot_f1'; " in err
    assert "f1" in err


def test_another_score_is_compared_by_name(output_of):
    assert output_of("ner", "--score", "dev", "--format", "markdown")[0].startswith("**ner: dev F1")
    _, err, code = output_of("ner", "--score", "target")
    assert code == 2
    assert "no complete setting with a target score" in err


@pytest.mark.parametrize(("corpus", "warned"), [("one", False), ("other", True)])
def test_sweeps_of_another_corpus_are_compared_with_a_warning(output_of, tmp_path, corpus, warned):
    saved(tmp_path / "store", "pos", corpus)
    out, err, code = output_of("ner", "pos", "--baseline", "ner:gold")
    assert code == 0
    assert "pos:02" in out
    assert ("have different corpora" in err) is warned


def test_it_needs_neither_ray_nor_torch(tmp_path):
    saved(tmp_path, "ner")
    words = ["compare", "ner", "--store", str(tmp_path)]
    process = subprocess.run([sys.executable, "-c", LOADED, *words], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout.splitlines()[-1]) == []
