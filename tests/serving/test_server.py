"""The server: what it answers, refuses and counts, how texts are batched, and the command in a process of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pytest

import raykd
from raykd.serving import batching
from raykd.serving.batching import Batcher, BusyError
from raykd.serving.labeller import Labelled, LabellerError
from raykd.serving.server import MAX_BODY, MODEL, create_app
from tests.serving.trained import get, of_texts, post, served
from tests.sweep.in_process import code_of

TEXTS = ["Ada Lovelace lives in London.", "", "Zoë ist in Berlin"]


@pytest.fixture(scope="module")
def address(names):
    with served(create_app(names)) as at:
        yield at


def plain(labelled):
    """The labelled text as parsed JSON."""
    return json.loads(
        json.dumps({key: value for key, value in asdict(labelled).items() if value is not None})
    )


def test_texts_and_words_get_what_the_labeller_says(names, address):
    label = raykd.load(names)
    status, answer = post(f"{address}/predict", {"texts": TEXTS})
    assert status == 200
    assert answer["model"] == label.card["run"]
    actual = list(label(TEXTS))
    assert [entry["text"] for entry in answer["results"]] == TEXTS
    for result, labelled in zip(answer["results"], map(plain, actual), strict=True):
        assert [word["label"] for word in result["words"]] == [word["label"] for word in labelled["words"]]
        for inputs, expected in zip(
            result["words"] + result["spans"], labelled["words"] + labelled["spans"], strict=True
        ):
            assert inputs == {**expected, "probability": pytest.approx(expected["probability"], rel=1e-4)}
    words = [["Ada", "Lovelace", "lives"], ["New York", "!"]]
    _, answer = post(f"{address}/predict", {"tokens": words})
    assert [[word["text"] for word in entry["words"]] for entry in answer["results"]] == words
    assert [[word["label"] for word in entry["words"]] for entry in answer["results"]] == label.label(words)
    assert answer["results"][1]["text"] == "New York !"
    assert [(word["start"], word["end"]) for word in answer["results"][1]["words"]] == [(0, 8), (9, 10)]


def test_health_says_which_model_answers(names, address):
    label = raykd.load(names)
    labelled = json.loads(get(f"{address}/health"))
    assert (labelled["status"], labelled["model"], labelled["task"]) == ("ok", label.card["run"], "ner")
    assert (labelled["file"], labelled["labels"]) == ("model.onnx", list(label.labels))


def test_a_model_of_whole_texts_gives_label_and_probability(tmp_path):
    with served(create_app(of_texts(tmp_path))) as at:
        _, answer = post(f"{at}/predict", {"texts": ["a dull film"]})
    (labelled,) = answer["results"]
    assert labelled["label"] in ("bad", "good")
    assert 0.5 <= labelled["probability"] <= 1


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"texts": []}, 422, "texts is empty; give one at least"),
        ({"tokens": [["a"], []]}, 422, "tokens.1 has no words; remove it"),
        ({"tokens": [["a", ""]]}, 422, "tokens.0 has an empty word; remove it"),
        ({}, 422, "give either texts or tokens"),
        ({"texts": ["a"], "tokens": [["a"]]}, 422, "give either texts or tokens"),
        ({"text": "a"}, 422, 'text: unknown key; did you mean texts? send {"texts": ["…"]} or {"tokens"'),
        ({"texts": ["a"], "model": 1}, 422, 'model: unknown key; send {"texts": ["…"]}'),
        ({"texts": "a"}, 422, 'texts: Input should be a valid list; send {"texts": ["…"]}'),
        ({"texts": ["a"] * 1001}, 422, "1,001 texts, and one request may have 1,000; send several"),
        ({"texts": ["a", "b" * 20_001]}, 422, "texts.1 has 20,001 characters, and 20,000 are allowed; send it"),
        ({"texts": ["b" * 20_000] * 10 + ["c"]}, 422, "texts: 200,001 characters, and one request may have 200,000"),
        ({"tokens": [["abcd"] * 5000] * 11}, 422, "tokens: 220,000 characters, and one request may have 200,000"),
        ({"texts": ["\ud800"]}, 422, "texts.0 is not Unicode: it has half of a surrogate pair"),
        (b"{", 422, "the body is not JSON"),
        (b"[]", 422, 'send {"texts": ["…"]} or {"tokens": [["…"]]} with the header'),
        (b"", 422, 'send {"texts"'),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_request_is_one_sentence(address, body, status, message):
    actual_status, answer = post(f"{address}/predict", body)
    assert actual_status == status
    assert message in answer["detail"]


def test_too_large_a_body_is_refused_before_it_is_sent(address):
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.putrequest("POST", "/predict")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(MAX_BODY + 1))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert "more than 4 MiB; send fewer texts" in json.loads(answer.read())["detail"]
    connection.close()


def test_too_large_a_body_that_is_not_announced_is_refused(address):
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/predict", iter([b" " * MAX_BODY, b" "]), headers, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 413
    assert "more than 4 MiB; send fewer texts" in json.loads(answer.read())["detail"]
    connection.close()


def counts(address):
    lines = [line.rsplit(" ", 1) for line in get(f"{address}/metrics").splitlines() if line[0] != "#"]
    return {name: float(value) for name, value in lines}


def test_requests_errors_latencies_and_batches_are_counted(names):
    # Batches of two, for which a text waits as long as it takes.
    with served(create_app(names, max_batch=2, max_wait_ms=1e9)) as at:
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda _: post(f"{at}/predict", {"texts": ["London"]}), range(8)))
        assert {status for status, _ in answers} == {200}
        post(f"{at}/predict", {"texts": []})
        with pytest.raises(OSError, match="404"):
            get(f"{at}/never/asked/for")
        actual = counts(at)
    assert actual['raykd_requests_total{path="/predict",status="200"}'] == 8
    assert actual['raykd_requests_total{path="/predict",status="422"}'] == 1
    assert actual['raykd_requests_total{path="other",status="404"}'] == 1
    assert actual['raykd_request_seconds_count{path="/predict"}'] == 9
    assert actual["raykd_batch_texts_sum"] == 8
    assert actual["raykd_batch_texts_count"] == 4
    assert actual["process_resident_memory_bytes"] > 0


class Upper:
    """A labeller with a record of batches, and one refused text."""

    def __init__(self):
        self.batches = []

    def __call__(self, texts, *, batch):
        self.batches.append(list(texts))
        for text in texts:
            if text == "bad":
                raise ArithmeticError(text)
            yield Labelled(text.upper())


def batched(labeller, *requests, **settings):
    """Send requests at the same time; return the texts, or an exception, for each of them."""

    async def main():
        counted = []
        batcher = Batcher(labeller, max_wait_ms=20, on_batch=counted.append, **settings)
        task = asyncio.create_task(batcher.run())
        result = await asyncio.gather(*map(batcher.label, requests), return_exceptions=True)
        task.cancel()
        return [
            [labelled.text for labelled in answer] if isinstance(answer, list) else answer
            for answer in result
        ], counted

    return asyncio.run(main())


def test_what_waits_together_is_labelled_together():
    labeller = Upper()
    actual, counted = batched(labeller, ["a", "b"], ["c"], ["d", "e"], max_batch=4)
    assert actual == [["A", "B"], ["C"], ["D", "E"]]
    assert labeller.batches == [["a", "b", "c", "d"], ["e"]]
    assert counted == [4, 1]


def test_a_fault_is_of_its_request_alone():
    actual, _ = batched(Upper(), ["a"], ["b", "bad"], ["c"], max_batch=8)
    assert (actual[0], actual[2]) == (["A"], ["C"])
    assert isinstance(actual[1], ArithmeticError)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(batching, "MAX_BATCH_CHARACTERS", 10)
    monkeypatch.setattr(batching, "MAX_WAITING_TEXTS", 6)
    labeller = Upper()
    actual, _ = batched(labeller, ["a" * 11, "bbbb", "c", "dddddd", "e"], ["f", "g"], max_batch=8)
    assert labeller.batches == [["a" * 11], ["bbbb", "c"], ["dddddd"], ["e"]]
    assert isinstance(actual[1], BusyError)


def test_the_characters_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr(batching, "MAX_WAITING_CHARACTERS", 6)
    actual, _ = batched(Upper(), ["abc", "def"], ["g"], max_batch=8)
    assert actual[0] == ["ABC", "DEF"]
    assert isinstance(actual[1], BusyError)


def test_too_many_waiting_texts_are_answered_with_503(names, monkeypatch):
    monkeypatch.setattr(batching, "MAX_WAITING_TEXTS", 1)
    with served(create_app(names)) as at:
        assert post(f"{at}/predict", {"texts": ["a", "b"]}) == (
            503, {"detail": "too many texts are waiting; try again later"},
        )  # fmt: skip


def test_a_factory_reads_the_environment(names, monkeypatch):
    monkeypatch.setenv(MODEL, str(names))
    assert create_app().title == "raykd"
    monkeypatch.delenv(MODEL)
    with pytest.raises(LabellerError, match="no model: set RAYKD_MODEL"):
        create_app()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_and_stops_on_a_signal(names, number):
    code = "from raykd.cli.main import main; main()"
    command = [sys.executable, "-c", code, "serve", str(names), "--port", "0", "--int8", "--threads", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "COLUMNS": "200"}
    ) as process:  # fmt: skip
        try:
            first = process.stdout.readline()
            assert "model-int8.onnx) on http://127.0.0.1:" in first
            at = first.split()[-1]
            process.stdout.readline()
            assert post(f"{at}/predict", {"texts": ["London"]})[0] == 200
            assert json.loads(get(f"{at}/health"))["file"] == "model-int8.onnx"
            process.send_signal(number)
            assert process.stdout.read() == "serve: stopped\n"
            assert process.wait() == 0
        finally:
            process.kill()


def test_what_keeps_the_command_from_serving(names, tmp_path, capsys, monkeypatch):
    def message():
        return " ".join(capsys.readouterr().err.split())

    assert code_of("serve", str(tmp_path)) == 4
    assert "give a folder that raykd export wrote" in message()
    with socket.create_server(("127.0.0.1", 0)) as busy_socket:
        port = str(busy_socket.getsockname()[1])
        assert code_of("serve", str(names), "--port", port) == 2
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use); choose another" in message()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert code_of("serve", str(names)) == 1
    assert "serving needs uvicorn; run pip install fastapi uvicorn prometheus_client" in message()
