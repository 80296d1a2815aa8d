"""A note warns once of bf16 on a processor without support; processors with bf16 and GPUs get no note."""

from __future__ import annotations

import pytest

from raykd.precompute import processor
from raykd.spec import load
from raykd.sweep.slow_precision import slow_precision
from tests.sweep.in_process import call, without_ray

FILE = """
name: precise
corpus: {source: builtin, languages: [en], train: 12, dev: 4, test: 4}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: gold}]}
"""
OLD, NEW, ARM = "flags\t\t: fpu sse2 avx2", "flags\t\t: fpu avx512f avx512_bf16", "Features\t: fp asimd bf16"


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Return a function giving the notes on a sweep file for the flags of a processor."""

    def notes_of(flags, *overrides):
        (tmp_path / "cpuinfo").write_text(f"model name\t: Old One\n{flags}\n" * 2)
        monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
        (tmp_path / "precise.yaml").write_text(FILE)
        return slow_precision(load(tmp_path / "precise.yaml", overrides))

    return notes_of


@pytest.mark.parametrize(("overrides", "keys"), [
    (["training.precision=bf16"], "training.precision"),
    (["teachers.training.precision=bf16"], "teachers.training.precision"),
    (["teachers={kind: hf_token_classifier, path: x, precision: bf16}"], "teachers.precision"),
    (["training.precision={choice: [float32, bf16]}", "teachers.training.precision=bf16"],
     "teachers.training.precision, training.precision"),
])  # fmt: skip
def test_each_setting_of_bf16_is_named_once(notes, overrides, keys):
    (note,) = notes(OLD, *overrides)
    assert note.startswith(f"{keys}: this machine's processor (Old One) has no bf16")
    assert notes(NEW, *overrides) == []
    assert notes(ARM, *overrides) == []


def test_a_gpu_has_it_and_float32_needs_none(notes):
    assert notes(OLD, "training.precision=bf16", "resources.gpus_per_worker=1") == []
    assert notes(OLD) == []


def test_a_system_that_says_nothing_of_its_processor_is_believed(notes, monkeypatch, tmp_path):
    notes(OLD)
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "nothing")
    assert slow_precision(load(tmp_path / "precise.yaml", ["training.precision=bf16"])) == []
    assert processor.processor_name()


def test_check_and_plan_say_it(notes, tmp_path, capsys):
    notes(OLD)
    words = [
        str(tmp_path / "precise.yaml"),
        "--set",
        "training.precision=bf16",
        "--set",
        f"store={tmp_path}/store",
    ]
    with without_ray():
        for verb in ("check", "plan"):
            call(verb, *words)
            output = capsys.readouterr()
            assert (output.out + output.err).count("has no bf16") == 1
