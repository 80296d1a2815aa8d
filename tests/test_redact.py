"""No password of a URI is shown, and what the environment holds gets to where a connection is made."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from raykd.errors import RaykdError, StoreError
from raykd.redact import expand_variables, redact
from raykd.storage.store import Storage


@pytest.mark.parametrize(("text", "shown"), [
    ("postgresql://raykd:se@cret@db/mlflow", "postgresql://raykd:***@db/mlflow"),
    ("postgresql://raykd@db/mlflow", "postgresql://raykd@db/mlflow"),
    ("postgresql://raykd:${DB_PASSWORD}@db/mlflow", "postgresql://raykd:${DB_PASSWORD}@db/mlflow"),
    ("https://token@host/x", "https://***@host/x"),
    ("s3://KEY:SECRET@bucket/x?endpoint_override=h:9000", "s3://KEY:***@bucket/x?endpoint_override=h:9000"),
    ("s3://bucket/x?secret_key=abc&region=eu", "s3://bucket/x?secret_key=***&region=eu"),
    ("https://host/x?X-Amz-Signature=abc&a=b", "https://host/x?X-Amz-Signature=***&a=b"),
    ("https://host/x?sig=abc", "https://host/x?sig=***"),
    # In JSON and Python.
    ("'http://me:pw@a:1', \"http://b:2\" of me@home", "'http://me:***@a:1', \"http://b:2\" of me@home"),
    ("sqlite:///data/a@b.db", "sqlite:///data/a@b.db"),
    ("see http://host/path@v2 at 10:30", "see http://host/path@v2 at 10:30"),
])  # fmt: skip
def test_passwords_are_hidden_and_nothing_else(text, shown):
    assert redact(text) == shown
    assert redact(shown) == shown


def test_a_variable_is_filled_in_and_quoted_where_a_uri_needs_it(monkeypatch):
    monkeypatch.setenv("PASSWORD", "a@b/c")
    monkeypatch.setenv("FOLDER", "data/x")
    assert expand_variables("postgresql://me:${PASSWORD}@db/m") == "postgresql://me:a%40b%2Fc@db/m"
    assert expand_variables("s3://bucket/${FOLDER}/y") == "s3://bucket/data/x/y"
    assert expand_variables("plain $HOME {x}") == "plain $HOME {x}"
    with pytest.raises(
        RaykdError, match=r"\$\{NOT_THERE\}@db: the environment variable NOT_THERE is not set"
    ):
        expand_variables("postgresql://me:${NOT_THERE}@db")


def test_a_store_takes_its_variables_with_it_and_not_what_they_hold(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERE", str(tmp_path))
    assert Storage("${WHERE}/store").uri == f"{tmp_path}/store"
    reached = []
    systems = SimpleNamespace(from_uri=lambda uri: (reached.append(uri), "bucket"))
    monkeypatch.setattr("raykd.storage.object_stores.fs", SimpleNamespace(FileSystem=systems))
    monkeypatch.setenv("SECRET", "s/e")
    storage = Storage("s3://KEY:${SECRET}@bucket/x?region=eu").child("a")
    assert reached == ["s3://KEY:s%2Fe@bucket/x?region=eu&allow_delayed_open=true"]
    assert b"s/e" not in pickle.dumps(storage)
    assert b"s%2Fe" not in pickle.dumps(storage)


def test_no_error_of_a_store_shows_its_password():
    storage = Storage("s3://KEY:CANARY@bucket/x?endpoint_override=localhost:1&scheme=http")
    assert "CANARY" not in repr(storage)
    with pytest.raises(StoreError, match=r"^s3://KEY:\*\*\*@bucket/x/a: cannot be read") as caught:
        storage.read("a")
    assert "CANARY" not in str(caught.value)
    with pytest.raises(StoreError) as caught:
        Storage("ftp://me:CANARY@host")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "?" + "password" * 30_000, "?sig" * 50_000, "://" * 60_000, "x://" + "@" * 200_000],
)
def test_a_long_text_takes_time_in_proportion(text):
    # A quadratic pattern takes minutes.
    assert len(redact(text)) > 1000
