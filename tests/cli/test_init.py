"""`raykd init`: the file that it writes is valid and can be planned, and what it says."""

from __future__ import annotations

import json
import re

import pytest
from ruamel.yaml import YAML

from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.detect import DetectedCorpus
from raykd.errors import CorpusError
from raykd.forms.tag_schemes import from_bioes
from raykd.spec import load
from raykd.sweep.draft import LEAST_STEPS, Sizes, _checkpoint, draft_sweep_file
from raykd.sweep.small_variant import AMOUNTS, larger_settings
from raykd.sweep.sweep_faults import check_sweep
from raykd.tasks import TASKS
from raykd.teachers import HFTokenClassifierTeacher
from tests.corpora.test_detect import CASES, write
from tests.sweep.in_process import call, code_of, without_ray

SHAPES = (
    "conll-2003", "treebanks", "spans without letters", "no dev", "one file", "a language to transfer to",
    "words without tags", "texts with names of columns", "json lines", "latin-1", "pairs", "atis", "xsid", "multiatis",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, in which `mine` is the corpus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def shown(capsys):
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("case", SHAPES)
def test_the_file_is_valid_with_every_variant(folder, case):
    write(folder / "mine", CASES[case][0])
    call("init", "mine")
    check_sweep(load(folder / "sweep.yaml", ()))
    small = load(folder / "sweep.yaml", (), variants=["small"])
    check_sweep(small)
    assert larger_settings(load(folder / "sweep.yaml", ()), small) == []


@pytest.mark.parametrize("sentences", [30, 400, 3_000, 8_000, 16_000, 200_000])
@pytest.mark.parametrize("languages", [1, 9])
@pytest.mark.parametrize("task", ["ner", "classification", "parsing"])
def test_the_small_form_is_not_larger_than_the_file_of_any_corpus(tmp_path, sentences, languages, task):
    """Of corpora that differ in size alone: the figures are given."""
    names = [f"l{number}" for number in range(languages)]
    row = {"sentences": sentences // languages, "tokens": 15 * sentences // languages}
    figures = {
        "unit": TASKS[task].unit, "scheme": TASKS[task].form.scheme, "pairs": False, "labels": ["PER"],
        "languages": names, "roles": dict.fromkeys(names, "labelled"), "schemes": dict.fromkeys(names, "flat"),
        "parts": [{**row, "part": part, "language": name} for part in ("train", "dev") for name in names],
    }  # fmt: skip
    settings = {"source": "conll", "languages": names} | ({"split": {"test": 0}} if languages > 1 else {})
    detected = DetectedCorpus("mine", settings, BuiltinSource(source="builtin"), {}, (), (), {})
    path = tmp_path / "sweep.yaml"
    path.write_text(draft_sweep_file(detected, figures, "sweep.yaml", task))
    whole, small = load(path, ()).tree, load(path, (), variants=["small"]).tree
    compared = [
        (key, small[section][key], value)
        for section in ("corpus", "teachers", "student", "schedule", "search")
        for key, value in whole[section].items()
        if isinstance(value, int) and (key in AMOUNTS or key == "trials")
    ]
    assert {"hidden_dim", "epochs", "trials"} <= {key for key, _, _ in compared}
    assert all(least <= value for _, least, value in compared), compared


def test_the_file_can_be_planned(folder, capsys):
    write(folder / "mine", CASES["no dev"][0])
    call("init", "mine", "--out", "made/mine.yaml")
    out = shown(capsys)
    assert "│ de │ train │ de/train.conll │" in out
    assert "│ │ dev │ drawn from train │ 3 │" in out
    assert "note: no dev; dev is drawn from train, 9 : 1" in out
    assert (
        "raykd check made/mine.yaml, raykd plan made/mine.yaml --small, raykd sweep made/mine.yaml --small"
        in out
    )
    with without_ray():
        call("plan", "made/mine.yaml", "--small")
    assert "Next: raykd sweep made/mine.yaml --small" in shown(capsys)


@pytest.mark.parametrize(
    ("case", "task", "score"),
    [
        ("treebanks", "pos", "accuracy"),
        ("texts with classes", "classification", "accuracy"),
        ("bioes", "ner", "f1"),
        ("xsid", "intent_slots", "exact_match"),
        ("pairs", "pairs", "accuracy"),
    ],
)
def test_the_task_follows_from_the_labels(folder, case, task, score):
    write(folder / "mine", CASES[case][0])
    call("init", "mine")
    tree = load(folder / "sweep.yaml", ()).tree
    assert tree["task"] == task
    assert tree["search"]["objectives"] == {score: "max", "latency_ms": "min", "parameters": "min"}


@pytest.mark.parametrize("case", ["bioes", "texts with classes"])
def test_the_lines_for_a_checkpoint_are_valid_too(folder, case):
    write(folder / "mine", CASES[case][0])
    call("init", "mine")
    text = (folder / "sweep.yaml").read_text()
    (lines,) = re.findall(r"^# teachers:\n(?:#   .*\n)+", text, re.M)
    text = re.sub(r"^teachers:.*\n(?:  .*\n)+", "", text, count=1, flags=re.M)
    text = re.sub(r"^    teachers: .*\n", "", text, flags=re.M).replace(
        lines, re.sub("^# ", "", lines, flags=re.M)
    )
    (folder / "sweep.yaml").write_text(text)
    check_sweep(load(folder / "sweep.yaml", ()))
    check_sweep(load(folder / "sweep.yaml", (), variants=["small"]))


@pytest.mark.parametrize(("sentences", "batch_tokens"), [(400, 300), (8_000, 1000), (50_000, 2000)])
def test_a_checkpoint_is_trained_for_steps_however_few_sentences_there_are(sentences, batch_tokens):
    lines = "\n".join(re.findall(r"^#(.*)$", _checkpoint("ner", Sizes(sentences, 100, 1, 0)), re.M)[2:])
    teacher = YAML(typ="safe", pure=True).load(lines)["teachers"]
    config = HFTokenClassifierTeacher.model_validate_json(json.dumps(teacher))
    assert config.epochs is None
    assert config.training.batch_tokens == batch_tokens
    steps = config.max_steps or 0
    assert steps >= LEAST_STEPS
    # Three passes or more, of some 25 pieces a sentence.
    assert steps * batch_tokens >= 0.95 * 3 * 25 * min(sentences, 20_000)


def test_the_file_for_a_parser_needs_no_edits(folder, capsys):
    write(folder / "mine", CASES["treebanks"][0])
    call("init", "mine")
    assert "for parsers: raykd init DIR --task parsing" in shown(capsys)
    call("init", "mine", "--task", "parsing", "--out", "parser.yaml")
    for small in ((), ("--small",)):
        call("check", "parser.yaml", *small)
    tree = load(folder / "parser.yaml", ()).tree
    assert (tree["task"], tree["corpus"]["tag"], tree["teachers"]["kind"]) == (
        "parsing",
        "tree",
        "biaffine_parser",
    )
    assert (tree["student"]["decoder"], tree["student"]["encoding"]) == ("maxent", "relative_pos")


@pytest.mark.parametrize("case", ["bioes", "texts with classes"])
def test_a_task_that_the_labels_do_not_fit_is_refused(folder, capsys, case):
    write(folder / "mine", CASES[case][0])
    assert code_of("init", "mine", "--task", "parsing") == 3
    assert "mine: its labels do not fit the task 'parsing'; give --task " in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (folder / "sweep.yaml").exists()


def test_an_existing_file_is_kept_without_a_flag(folder, capsys):
    write(folder / "mine", CASES["bioes"][0])
    (folder / "sweep.yaml").write_text("mine")
    assert code_of("init", "mine") == 4
    assert "add --overwrite" in capsys.readouterr().err
    assert (folder / "sweep.yaml").read_text() == "mine"
    call("init", "mine", "--overwrite")
    assert (folder / "sweep.yaml").read_text() != "mine"


def test_a_folder_without_a_corpus_is_refused_in_a_sentence(folder, capsys):
    write(folder / "mine", {"notes.md": "x"})
    assert code_of("init", "mine") == 3
    err = " ".join(capsys.readouterr().err.split())
    assert err.startswith(
        "error mine: no file with labels is there. Seen: notes.md (by its name no text of a corpus)"
    )
    assert code_of("init", "elsewhere") == 3
    assert not (folder / "sweep.yaml").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Namen 2024", "namen_2024"), ("données-fr", "donnees_fr"), ("语料", "sweep")],
)
def test_the_sweep_has_the_name_of_the_folder_that_is_meant(folder, monkeypatch, name, expected):
    write(folder / name, CASES["bioes"][0])
    monkeypatch.chdir(folder / name)
    call("init", ".")
    text = (folder / name / "sweep.yaml").read_text()
    assert load(folder / name / "sweep.yaml", ()).tree["name"] == expected
    assert (
        "# Choose:    raykd front sweep.yaml            (after the try: raykd front sweep.yaml --small)"
        in text
    )


def test_words_with_spaces_are_told_where_the_corpus_is_looked_at(folder, capsys):
    lines = "sinh viên\tS-PER\nđọc\tO\n{0}\tO\nHà Nội\tS-LOC\n\nAn\tS-PER\nnói\tO\n{0}\tO\nHuế\tS-LOC\n\n"
    files = {
        f"vi/{part}.conll": "".join(lines.format(f"{part}{number}") for number in range(6))
        for part in ("train", "dev", "test")
    }
    write(folder / "mine", files)
    message = (
        "25.0 % of the words of vi have a space inside (for example 'sinh viên', 'Hà Nội'): served text is "
        "split at white space"
    )
    call("init", "mine")
    assert message in capsys.readouterr().err
    call("check", "sweep.yaml")
    assert message in capsys.readouterr().err


def test_sentences_with_faults_are_left_out_only_where_they_are_few(folder, capsys):
    good = "Ada{0}\tB-PER\nlives{0}\tO\nin{0}\tO\nBerlin{0}\tB-LOC\n\n"
    for copies, share in ((150, "few"), (20, "many")):
        texts = {
            part: "".join(good.format(f"{part}{n}") for n in range(copies))
            for part in ("train", "dev", "test")
        }
        write(folder / share, {f"{part}.conll": text + f"x{part}\tPER\n\n" for part, text in texts.items()})
    call("init", "few")
    output = shown(capsys)
    assert (
        f"note: sentences with faults are left out (on_error: skip); the first: {folder}/few/train.conll:751"
        in output
    )
    assert YAML(typ="safe").load(folder / "sweep.yaml")["corpus"]["on_error"] == "skip"
    assert code_of("init", "many", "--overwrite") == CorpusError.exit_code
    message = " ".join(capsys.readouterr().err.split())
    assert "many/train.conll:101: some tags are spans (B-, I-) and others are not (PER)" in message


@pytest.mark.parametrize(
    ("scheme", "spell", "expected_text"),
    [
        ("bmes", lambda tag: tag, "scheme: bmes"),
        (
            "iob2",
            lambda tag: tag.replace("-", "_"),
            "scheme: iob2 tags of und: tags as B_PER are read as B-PER",
        ),
        ("iob2", lambda tag: tag[0], "scheme: iob2 tags of und: tags as B are read as B-SPAN"),
    ],
)
def test_how_tags_are_written_is_found_and_said(folder, capsys, scheme, spell, expected_text):
    tags = from_bioes(["B-PER", "I-PER", "E-PER", "O", "S-LOC", "O", "O", "O"], scheme)
    rows = ["".join(f"w{n}PART{i}\t{spell(tag)}\n" for i, tag in enumerate(tags)) for n in range(30)]
    files = {f"{part}.conll": "\n".join(rows).replace("PART", part) for part in ("train", "dev", "test")}
    write(folder / "mine", files)
    call("init", "mine")
    assert expected_text in shown(capsys)
    corpus = YAML(typ="safe").load(folder / "sweep.yaml")
    assert (corpus["task"], corpus["corpus"]["scheme"]) == ("ner", scheme)
    assert "on_error" not in corpus["corpus"]
    call("corpus", "show", "sweep.yaml")
    assert expected_text in shown(capsys)
    call("check", "sweep.yaml")


ANSWERS = {
    "samples": {
        "samples": [{"mentions": [{"text": "Ada", "label": "PERSON"}]}, {"mentions": {"GPE": ["Oslo"]}}]
    },
    "mentions": {"mentions": [["Ada", "PERSON"], ["Bob", "PERSON"], ["Oslo", "GPE"]]},
    "probabilities": {
        "probabilities": [{"B-PERSON": 0.5, "O": 0.5}, {"O": 1.0}, {"B-PERSON": 0.1, "B-GPE": 0.9}]
    },
}


@pytest.mark.parametrize("form", ANSWERS)
def test_texts_with_the_answers_of_an_annotator_become_a_sweep_without_gold_labels(folder, form, capsys):
    lines = [f"Ada left Oslo {number} ." for number in range(30)]
    answers = "".join(json.dumps({"text": line, **ANSWERS[form]}) + "\n" for line in lines)
    write(folder / "mine", {"texts.txt": "\n".join(lines) + "\n", "answers.jsonl": answers})
    call("init", "mine")
    assert f"answers of an annotator ({form}), with the labels" in shown(capsys)
    for variant in ([], ["small"]):
        loaded = load(folder / "sweep.yaml", (), variants=variant)
        check_sweep(loaded)
        assert sorted(loaded.tree["corpus"]["labels"]) == ["GPE", "PERSON"]
        assert loaded.tree["teachers"]["answers"] == form
        assert loaded.tree["search"]["objectives"] == {"agreement": "max", "latency_ms": "min"}


def test_answers_beside_labelled_files_are_named(folder, capsys):
    write(folder / "mine", CASES["conll-2003"][0])
    (folder / "mine/answers.jsonl").write_text(json.dumps({"text": "Ada", **ANSWERS["mentions"]}) + "\n")
    call("init", "mine")
    assert "teachers: {kind: annotations, path: mine/answers.jsonl, answers: mentions}" in shown(capsys)


def test_answers_without_texts_are_refused(folder, capsys):
    write(folder / "mine", {"answers.jsonl": json.dumps({"text": "Ada", **ANSWERS["mentions"]}) + "\n"})
    assert code_of("init", "mine") == CorpusError.exit_code
    assert "there are answers (answers.jsonl) and no texts" in capsys.readouterr().err
