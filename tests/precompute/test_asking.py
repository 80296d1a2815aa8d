"""Annotators that are asked: what their code may return, how it may fail, and what is tried again."""

import json

import pytest

from raykd.corpora.answers import AskedText
from raykd.errors import MissingError, RunError
from raykd.precompute import asking
from raykd.precompute.asking import Asker, Asking
from raykd.teachers import PythonTeacher

WORDS = ("Ada", "left", "Oslo")


def texts(count):
    return [AskedText((*WORDS, str(number)), f"Ada left Oslo {number}", "en") for number in range(count)]


def teacher(folder, code, **settings):
    """An annotator whose file is in a folder, and its source."""
    (folder / "my_teacher.py").write_text(code)
    annotator = PythonTeacher(function="my_teacher:label", version="1", **{"answers": "mentions", **settings})
    return annotator, annotator.find_source([folder])


def reply(folder, code, count=3, keys=(), **settings):
    annotator, source = teacher(folder, code, **settings)
    return Asker(annotator, source, dict(keys)).ask(texts(count))


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(asking, "FIRST_PAUSE_S", 0.01)


@pytest.mark.parametrize("body", ["return [ask(text) for text in texts]", "yield from map(ask, texts)"])
def test_a_list_or_a_generator_answers_each_text_in_order(tmp_path, body):
    code = f"""
def ask(item):
    words, text, language = item
    return [{{"text": words[0], "label": language + text[-1]}}]

def label(texts):
    {body}
"""
    answers, failure = reply(tmp_path, code)
    assert failure is None
    records = [json.loads(stored.answer) for stored in answers]
    assert [record["mentions"] for record in records] == [
        [{"text": "Ada", "label": f"en{n}"}] for n in range(3)
    ]
    assert [(record["text"], record["tokens"]) for record in records] == [
        (text.text, list(text.words)) for text in texts(3)
    ]
    assert [stored.key for stored in answers] == [text.key for text in texts(3)]


def test_a_class_is_made_once_with_the_arguments(tmp_path):
    code = """
class label:
    def __init__(self, name):
        self.name, self.calls = name, 0
    def __call__(self, texts):
        self.calls += 1
        return [{"mentions": [["Ada", self.name]], "calls": self.calls} for text in texts]
"""
    annotator, source = teacher(tmp_path, code, arguments={"name": "PER"})
    asker = Asker(annotator, source, {})
    asker.ask(texts(1))
    record = json.loads(asker.ask(texts(1)).answers[0].answer)
    assert (record["mentions"], record["calls"]) == ([["Ada", "PER"]], 2)


def test_numbers_of_numpy_and_samples_are_stored(tmp_path):
    sample = "{'weight': np.float32(.5), 'mentions': []}"
    code = f"import numpy as np\ndef label(texts):\n    return [[{sample}] * 2 for _ in texts]"
    answers, _ = reply(tmp_path, code, answers="samples")
    assert json.loads(answers[0].answer)["samples"][1]["weight"] == 0.5
    assert answers[0].samples == 2


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("None", "nothing was returned"),
        ("ValueError('no JSON: sk-1')", "ValueError: no JSON: $KEY"),
        ("[{1, 2}]", "no JSON"),
    ],
)
def test_an_answer_that_cannot_be_used_is_kept_with_its_reason(tmp_path, value, problem):
    code = f"def label(texts):\n    return [[], {value}, []]"
    answers, failure = reply(tmp_path, code, keys={"KEY": "sk-1"}.items())
    assert failure is None
    assert [bool(stored.problem) for stored in answers] == [False, True, False]
    assert problem in answers[1].problem
    assert "'Ada left Oslo 1'" in answers[1].origin


@pytest.mark.parametrize(
    ("code", "kind", "problem"),
    [
        ("def label(texts): return None", "reply", "expected 3 answers in a list, got NoneType"),
        ("def label(texts): return 'Ada'", "reply", "in a list, got str"),
        ("def label(texts): return [[]] * 2", "reply", "expected 3 answers, got 2"),
        ("def label(texts): return [[]] * 4", "reply", "expected 3 answers, got more"),
        ("def label(texts):\n    yield []", "reply", "expected 3 answers, got 1"),
        ("import json\ndef label(texts):\n    json.loads('I am sorry')", "reply", "my_teacher.py:3: JSONDecodeError"),
        ("def label(texts):\n    raise ConnectionError('refused by http://me:pw@host')", "service", "http://me:***@host"),
        ("class Slow(Exception): ...\ndef label(texts):\n    raise Slow", "service", "my_teacher.py:3: Slow"),
        ("def label(texts):\n    return lable(texts)", "code", "my_teacher.py:2: NameError"),
        ("import no_such_package\ndef label(texts): ...", "code", "my_teacher.py:1: ModuleNotFoundError"),
        ("def label(texts:\n", "code", "my_teacher.py:1: SyntaxError"),
        ("def other(texts): ...", "code", "has no label"),
    ],
)  # fmt: skip
def test_a_failure_has_its_kind_and_its_place(tmp_path, code, kind, problem):
    answers, failure = reply(tmp_path, code)
    assert answers == []
    assert failure.kind == kind
    assert problem in failure.problem


def test_answers_before_an_error_are_kept(tmp_path):
    code = "def label(texts):\n    yield []\n    yield []\n    raise TimeoutError"
    answers, failure = reply(tmp_path, code)
    assert (len(answers), failure.kind) == (2, "service")


def test_a_file_beside_the_sweep_file_comes_before_a_package(tmp_path):
    annotator = PythonTeacher(function="json:label", version="1", answers="spans")
    package = annotator.find_source([tmp_path])
    assert package.path.endswith("json/__init__.py")
    assert (package.content, len(package.sha256)) == ("", 64)
    (tmp_path / "json.py").write_text("")
    assert annotator.find_source([tmp_path]).path == str(tmp_path / "json.py")
    inner = annotator.model_copy(update={"function": "json.decoder:label"})
    assert inner.find_source([tmp_path]).path.endswith("json/decoder.py")
    missing = annotator.model_copy(update={"function": "no_such_module:label"})
    with pytest.raises(MissingError, match=r"no file no_such_module.py in .*, and no installed package"):
        missing.find_source([tmp_path])


def test_settings_that_change_no_answer_are_no_part_of_the_identity():
    def identity(**settings):
        settings_of = {"function": "a:b", "version": "1", "answers": "spans", **settings}
        return PythonTeacher(**settings_of).pinned()

    same = identity()
    technical = {
        "texts": 5,
        "batch_size": 3,
        "concurrency": 9,
        "tries": 2,
        "keys": ("KEY",),
        "timeout_s": 3.0,
    }
    assert identity(**technical) == same
    for change in ({"version": "2"}, {"arguments": {"model": "x"}}, {"function": "a:c"}):
        assert identity(**change).answers_id != same.answers_id
    # Reading the answers in another way asks nothing.
    assert identity(labels={"A": "B"}).answers_id == same.answers_id


COUNTING = """
import os, time
from pathlib import Path

def calls(text):
    folder = Path({folder!r}) / text.words[-1]
    folder.mkdir(exist_ok=True)
    (folder / f"{{time.time_ns()}}-{{os.getpid()}}").touch()
    return len(list(folder.iterdir()))

def label(texts):
    for text in texts:
        number, call = int(text.words[-1]), calls(text)
        {body}
        yield []
"""


def ask_about(folder, body, count, *, actors=2, **settings):
    """The answers about some texts, by the number of the text, and the calls of each."""
    (folder / "calls").mkdir()
    code = COUNTING.format(folder=str(folder / "calls"), body=body)
    annotator, source = teacher(folder, code, **{"batch_size": 4, "tries": 3, "cpus": 0.5, **settings})
    by_key = {}

    def keep(answers):
        for stored in answers:
            assert stored.key not in by_key
            by_key[stored.key] = stored

    about = texts(count)
    error = None
    try:
        Asking(annotator, source, keys={}, actors=actors, on_answers=keep).ask(about)
    except RunError as raised:
        error = raised
    calls = {int(path.name): len(list(path.iterdir())) for path in (folder / "calls").iterdir()}
    numbers = {text.key: number for number, text in enumerate(about)}
    return {numbers[key]: stored for key, stored in by_key.items()}, calls, error


def test_texts_that_failed_are_tried_again_and_no_others(tmp_path, ray_cluster):
    body = "if call == 1 and number % 4 == 2: raise ConnectionError('busy')"
    answers, calls, error = ask_about(tmp_path, body, 10)
    assert error is None
    assert set(answers) == set(range(10))
    assert {number for number, count in calls.items() if count > 1} == {2, 6}


def test_a_text_whose_reply_is_never_an_answer_is_kept_as_unusable(tmp_path, ray_cluster):
    answers, calls, error = ask_about(tmp_path, "if number == 5: {}['names']", 8)
    assert error is None
    assert {number: stored.problem for number, stored in answers.items() if stored.problem}.keys() == {5}
    assert "KeyError: 'names'" in answers[5].problem
    assert calls[5] == 4  # its three tries, and one alone
    assert all(count == 1 for number, count in calls.items() if number != 5)


def test_a_service_that_is_gone_ends_the_asking_and_keeps_the_answers(tmp_path, ray_cluster):
    answers, _, error = ask_about(tmp_path, "if number >= 6: raise ConnectionError('gone')", 12, actors=1)
    assert "failed 3 times in a row: my_teacher.py" in str(error)
    assert "ConnectionError: gone" in str(error)
    assert set(answers) == set(range(6))


def test_code_at_fault_ends_the_asking_at_once(tmp_path, ray_cluster):
    _, calls, error = ask_about(tmp_path, "lable(text)", 12, actors=1)
    assert "NameError" in str(error)
    assert calls == {0: 1}


def test_a_text_on_which_every_actor_dies_ends_the_asking_and_is_not_stored(tmp_path, ray_cluster):
    answers, _, error = ask_about(tmp_path, "if number == 1: os._exit(1)", 4, tries=1, actors=1)
    assert "its actor ended" in str(error)
    assert 1 not in answers


@pytest.mark.slow
def test_an_actor_that_dies_or_hangs_is_replaced(tmp_path, ray_cluster):
    body = "if call == 1 and number == 1: os._exit(1)\n        if call == 1 and number == 5: time.sleep(600)"
    answers, _, error = ask_about(tmp_path, body, 8, timeout_s=60.0)
    assert error is None
    assert set(answers) == set(range(8))


def test_a_limit_of_texts_a_minute_holds_for_all_actors_together(tmp_path, ray_cluster):
    answers, _, error = ask_about(tmp_path, "pass", 12, batch_size=2, texts_per_minute=240.0)
    assert error is None
    assert len(answers) == 12
    stamps = sorted(int(file.name.partition("-")[0]) for file in (tmp_path / "calls").glob("*/*"))
    # Six batches, half a second apart; actors that start late may shorten one pause.
    assert stamps[-1] - stamps[2] >= 1.4e9
