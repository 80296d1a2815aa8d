"""What the page says of itself."""

from datetime import UTC, datetime

import pytest

from raykd.report.page import front_html
from raykd.report.provenance import Provenance

WRITTEN = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


def test_date_version_and_sizes_are_in_one_line():
    known = Provenance(WRITTEN, "1.2.3", {"train": 20_000, "unlabelled": 0, "dev": 4000}, dev_labels=5431)
    facts = known.facts()
    assert (
        "2026-03-04 05:06 UTC</time> by raykd 1.2.3 · sentences: train 20,000, dev 4,000 · 5,431 labels"
        in facts
    )
    assert "MLflow" not in facts
    assert "parts of speech" not in facts
    treebank = Provenance(WRITTEN, pos_origin="gold, column UPOS")
    assert treebank.facts().endswith(" · parts of speech: gold, column UPOS")
    assert known.facts() in front_html([], provenance=known)


@pytest.mark.parametrize(
    ("uri", "server"),
    [
        ("https://mlflow.example.org/base", "https://mlflow.example.org/base"),
        ("http://user:secret@localhost:5000/", "http://localhost:5000"),
        ("https://${USER}:${PASSWORD}@host", "https://host"),
    ],
)
def test_a_server_is_linked_to_without_its_password(uri, server):
    facts = Provenance(tracking=uri, run="#/experiments/1/runs/abc?x=1&y=2").facts()
    assert f"<a href='{server}/#/experiments/1/runs/abc?x=1&amp;y=2' " in facts


def test_a_database_has_the_command_that_shows_it():
    facts = Provenance(tracking="postgresql://me:secret@db/mlflow").facts()
    assert "<code>mlflow ui --backend-store-uri postgresql://me:***@db/mlflow</code>" in facts
    assert "href" not in facts


def test_the_sweep_file_is_folded_and_cannot_leave_its_place():
    page = front_html([], provenance=Provenance(file="name: '</pre><script>alert(1)</script>'"))
    assert "<details class='file'><summary>The sweep file</summary>" in page
    assert "<script>alert" not in page
    assert "<details" not in front_html([])
