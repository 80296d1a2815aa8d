"""The origin of a page's figures."""

from datetime import UTC, datetime

import pytest

from raykd.report.front_page import front_html
from raykd.report.provenance import Provenance

WRITTEN = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


def facts_of(origin: Provenance) -> str:
    """The line below the heading."""
    page = front_html([], provenance=origin)
    return page.partition('<p class="facts note">')[2].partition("</p>")[0]


def test_date_version_and_sizes_are_in_one_line():
    origin = Provenance(WRITTEN, "1.2.3", {"train": 20_000, "unlabelled": 0, "dev": 4000}, dev_labels=5431)
    assert facts_of(origin) == (
        "written <time datetime='2026-03-04T05:06:00Z'>2026-03-04 05:06 UTC</time> by raykd 1.2.3 · "
        "sentences: train 20,000, dev 4,000 · 5,431 labels in dev"
    )
    treebank = Provenance(WRITTEN, pos_origin="gold, column UPOS")
    assert facts_of(treebank).endswith(" · parts of speech: gold, column UPOS")


@pytest.mark.parametrize(
    ("uri", "server"),
    [
        ("https://mlflow.example.org/base", "https://mlflow.example.org/base"),
        ("http://user:secret@localhost:5000/", "http://localhost:5000"),
        ("https://${USER}:${PASSWORD}@host", "https://host"),
    ],
)
def test_a_server_is_linked_to_without_its_password(uri, server):
    facts = facts_of(Provenance(tracking=uri, run="#/experiments/1/runs/abc?x=1&y=2"))
    assert f"<a href='{server}/#/experiments/1/runs/abc?x=1&amp;y=2' " in facts


def test_a_database_has_the_command_that_shows_it():
    facts = facts_of(Provenance(tracking="postgresql://me:secret@db/mlflow"))
    assert "<code>mlflow ui --backend-store-uri postgresql://me:***@db/mlflow</code>" in facts
    assert "href" not in facts


def test_the_sweep_file_is_folded_and_cannot_leave_its_place():
    page = front_html([], provenance=Provenance(file="name: '</pre><script>alert(1)</script>'"))
    assert "<details class='file'><summary>The sweep file</summary>" in page
    assert "<script>alert" not in page
    assert "<details" not in front_html([])
