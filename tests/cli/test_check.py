"""`raykd check`: which variants of a file are looked at, and how a fault of one is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from raykd.corpora.preview import FIRST
from raykd.spec import load
from raykd.sweep.spec import plain_sweep
from tests.sweep.in_process import call, code_of

FILE = """
name: checked
corpus: {source: builtin, languages: [en]}
teachers: {kind: bilstm_crf}
student: {kind: bilstm, embedding_dim: 8, hidden_dim: 8}
objective: {kind: representation, layer: 2}
search: {trials: 1}
variants:
  deep: {teachers: {layers: 2}}
  plain: {objective: {kind: gold}}
  shallow: {teachers: {layers: 1}}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "checked.yaml"
    path.write_text(FILE.replace("{kind: bilstm_crf}", "{kind: bilstm_crf, layers: 2}"))
    return str(path)


def test_a_fault_of_a_variant_names_it(file, capsys):
    assert code_of("check", file) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert "has no layer 2; choose from 0 (its input) to 1 (in variant shallow)" in output


def test_the_small_form_is_checked_alone(file, tmp_path, capsys):
    path = tmp_path / "checked.yaml"
    path.write_text(path.read_text() + "  small: {corpus: {source: builtin, languages: [en], train: 20}}\n")
    call("check", file, "--small")
    assert "--small" in capsys.readouterr().out


CORPUS = "{source: conll, root: ROOT, languages: [en], train: t, dev: t, test: t, unlabelled: u}"


def test_the_files_of_the_corpus_are_looked_at(tmp_path, capsys):
    path, text = tmp_path / "checked.yaml", tmp_path / "text"
    text.mkdir()
    body = FILE.split("variants")[0].replace("layer: 2", "layer: 1")
    corpus = CORPUS.replace("ROOT", str(text))
    path.write_text(body.replace("{source: builtin, languages: [en]}", corpus))
    assert code_of("check", str(path)) == 3
    output = capsys.readouterr().err.replace("\n", " ")
    assert f"{text}/t: no such file" in output
    assert f"{text}/u: no such file" in output
    (text / "t").write_text("a O\nb\n\nc O\n\nd\n")
    (text / "u").write_text("a\n\n")
    assert code_of("check", str(path)) == 3
    output = capsys.readouterr().err
    assert f"{text}/t:2: 1 column where 2 are expected" in output
    assert f"{text}/t:6: 1 column" in output
    # What is after the first sentences is for `raykd corpus show`.
    (text / "t").write_text("a O\n\n" * FIRST + "b\n")
    call("check", str(path))
    output = capsys.readouterr().out
    assert "corpus: the first sentences of 4 files can be read" in output
    assert "is valid" in output


def test_every_alternative_of_the_corpus_is_looked_at(tmp_path, capsys):
    path = tmp_path / "checked.yaml"
    (tmp_path / "t").write_text("a O\n")
    here, there = (
        CORPUS.replace(", unlabelled: u", "").replace("ROOT", str(root)) for root in (tmp_path, "nowhere")
    )
    body = FILE.split("variants")[0].replace("layer: 2", "layer: 1")
    path.write_text(body.replace("{source: builtin, languages: [en]}", f"{{choice: [{here}, {there}]}}"))
    assert code_of("check", str(path)) == 3
    assert "nowhere/t: no such file" in capsys.readouterr().err.replace("\n", "")


def test_a_variant_that_is_named_is_checked_alone(file, capsys):
    """`deep` laid over `shallow` is nobody's setting."""
    for name in ("deep", "plain"):
        call("check", file, "--variant", name)
        assert f"--variant {name}" in capsys.readouterr().out
    assert code_of("check", file, "--variant", "shallow") == 2
    assert "in variant" not in capsys.readouterr().err


HEIR = """
name: heir
extends: checked.yaml
student: {kind: transformer, embedding_dim: 8, layers: 1, heads: 2}
objective: {kind: gold}
variants:
  shallow: {teachers: {layers: 2}}
"""


class TestAnInheritedVariantThatDoesNotFit:
    """`wide` sets what a BiLSTM has, and the heir's student is a Transformer."""

    @pytest.fixture
    def check(self, file, tmp_path, capsys):
        with open(file, "a") as base:
            base.write("  wide: {student: {hidden_dim: 16}, schedule: {epochs: 0}}\n")

        def check(text: str, *options: str) -> tuple[int, str]:
            (tmp_path / "heir.yaml").write_text(text)
            code = code_of("check", str(tmp_path / "heir.yaml"), *options)
            return code, " ".join(capsys.readouterr().err.split())

        return check

    def test_it_is_a_warning_when_the_file_is_read(self, check, file):
        code, output = check(HEIR)
        assert code == 0
        start = "warning the inherited variant wide does not fit this file and cannot be used: "
        assert output.startswith(
            f"{start}{file}:12 schedule.epochs: got 0; must be at least 1; 1 other fault"
        )
        assert "heir.yaml --variant wide shows all faults" in output
        assert output.count("inherited variant") == 1

    def test_it_is_refused_when_it_is_asked_for(self, check, file):
        code, output = check(HEIR, "--variant", "wide")
        assert code == 2
        assert f"{file}:12 student.hidden_dim: unknown key 'hidden_dim'" in output
        assert "schedule.epochs: got 0; must be at least 1" in output

    @pytest.mark.parametrize("own", ["wide: {search: {trials: 2}}", "tall: {student: {hidden_dim: 16}}"])
    def test_a_variant_that_the_file_writes_is_refused_when_it_is_read(self, check, own):
        code, output = check(f"{HEIR}  {own}\n")
        assert code == 2
        assert "unknown key 'hidden_dim'" in output
        assert f"(in variant {own[:4]})" in output

    def test_the_faults_of_all_variants_of_the_file_are_reported(self, check):
        code, output = check(
            f"{HEIR}  tall: {{student: {{hidden_dim: 16}}}}\n  long: {{schedule: {{epochs: 0}}}}\n"
        )
        assert code == 2
        assert "(in variant tall)" in output
        assert "(in variant long)" in output


def test_what_the_file_resolves_to_is_a_page_and_the_same_file(file, tmp_path, capsys):
    call("check", file, "--variant", "deep")
    out = capsys.readouterr().out
    assert out.startswith("check: 1 setting; the first one, with defaults")
    output = out.partition(":\n")[2].partition("check:")[0]
    assert len(output.splitlines()) < 40
    assert "null" not in output
    assert "teachers: {kind: bilstm_crf, " in output
    (tmp_path / "again.yaml").write_text(output)
    reloaded, first = load(tmp_path / "again.yaml"), load(file, variants=["deep"])
    assert plain_sweep(reloaded.tree) == plain_sweep(first.tree)


GIVEN = """
name: checked
corpus: {{source: builtin, languages: [en]}}
teachers: {teachers}
student: {student}
objective: {{kind: posterior}}
training: {{seed: 3}}
search: {{trials: 1, runs_per_setting: 2}}
"""
BILSTM = "{kind: bilstm, embedding_dim: 4, hidden_dim: 4}"


def given(tmp_path, teachers="{kind: bilstm_maxent}", student=BILSTM):
    path = tmp_path / "checked.yaml"
    path.write_text(GIVEN.format(teachers=teachers, student=student))
    return str(path)


def checkpoint(folder, **settings):
    """The files by which a checkpoint is known."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **settings}))
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_text("")
    return folder


def test_folders_of_checkpoints_that_are_not_there_are_named(tmp_path, capsys):
    """As a warning: another sweep may have to write them first."""
    (tmp_path / "teacher").mkdir()
    checkpoint(tmp_path / "small-3")
    teachers = f"{{kind: hf_token_classifier, path: {tmp_path}/techer, fine_tune: true}}"
    call("check", given(tmp_path, teachers, f'{{kind: pretrained, path: "{tmp_path}/small-{{seed}}"}}'))
    output = " ".join(capsys.readouterr().err.split())
    assert f"teachers.path: {tmp_path}/techer: is not a folder; did you mean {tmp_path}/teacher?" in output
    assert f"student.path: {tmp_path}/small-4: is not a folder; did you mean {tmp_path}/small-3?" in output
    assert "small-3: is not a folder" not in output


def of_spacy(folder):
    folder.mkdir()
    for name in ("config.cfg", "meta.json", "tokenizer"):
        (folder / name).write_text("{}")


def without_weights(folder):
    (checkpoint(folder) / "model.safetensors").unlink()


def without_tokenizer(folder):
    (checkpoint(folder) / "tokenizer.json").unlink()


def without_type(folder):
    checkpoint(folder, model_type=None)


def of_encoder(folder):
    checkpoint(folder, architectures=["BertModel"])


@pytest.mark.parametrize(("make", "problem"), [
    (of_spacy, "is a spaCy pipeline, not a checkpoint of Transformers; give a folder with config.json"),
    (Path.mkdir, "has no config.json; give a folder"),
    (without_type, "its config.json names no model_type"),
    (without_weights, "holds no weights in safetensors"),
    (without_tokenizer, "has no tokenizer (tokenizer.json)"),
    (of_encoder, "has no trained head: its class is BertModel, not ForTokenClassification; set fine_tune: true"),
])  # fmt: skip
def test_what_is_given_to_a_teacher_is_opened(tmp_path, capsys, make, problem):
    make(tmp_path / "given")
    file = given(tmp_path, f"{{kind: hf_token_classifier, path: {tmp_path}/given}}")
    assert code_of("check", file) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert f"{file}:4 teachers.path: {tmp_path}/given {problem}" in output


def test_a_checkpoint_that_can_be_fine_tuned_is_valid(tmp_path, capsys):
    of_encoder(tmp_path / "given")
    call("check", given(tmp_path, f"{{kind: hf_token_classifier, path: {tmp_path}/given, fine_tune: true}}"))
    assert "given" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["bert", "modernbert", "deberta-v2"])
def test_attention_that_a_checkpoint_does_not_show_is_refused(tmp_path, capsys, kind):
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    checkpoint(tmp_path / "given", model_type=kind, vocab_size=9, pad_token_id=0, **sizes)
    file = Path(given(tmp_path, f"{{kind: hf_token_classifier, path: {tmp_path}/given, fine_tune: true}}"))
    student = f"{{kind: pretrained, path: {tmp_path}/given}}"
    attention = "objective: {kind: attention, layers: [1], student_layers: [1]}"
    file.write_text(
        file.read_text().replace(BILSTM, student).replace("objective: {kind: posterior}", attention)
    )
    if kind == "bert":
        call("check", str(file))
        return
    assert code_of("check", str(file)) == 2
    output = " ".join(capsys.readouterr().err.split())
    for line, key in ((4, "teachers.path"), (5, "student.path")):
        assert re.search(rf"{file}:{line} {key}: {tmp_path}/given .*omit the objective 'attention'", output)


@pytest.mark.parametrize(("student", "key", "problem"), [
    ("contextual: {path: X}", "contextual.path", "is a spaCy pipeline"),
    ("vocabulary: {kind: pretrained, path: X}", "vocabulary.path", "has no tokenizer"),
    ("embeddings: {kind: vectors, path: X}", "embeddings.path", "cannot be read"),
    ("embeddings: {kind: vectors, path: X/meta.json}", "embeddings.path", "its first line is not a word with its"),
])  # fmt: skip
def test_what_is_given_to_a_student_is_opened(tmp_path, capsys, student, key, problem):
    of_spacy(tmp_path / "given")
    student = BILSTM.replace("}", f", {student.replace('X', f'{tmp_path}/given')}}}")
    file = given(tmp_path, student=student)
    assert code_of("check", file) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert f"{file}:5 student.{key}: {tmp_path}/given" in output
    assert problem in output


def test_a_run_to_start_from_that_is_not_there_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("check", given(tmp_path), "--set", "start_from=run-1")
    assert (
        "start_from: run-1 is no finished run of the store, and no folder of one" in capsys.readouterr().err
    )
