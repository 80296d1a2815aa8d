"""Origin of a page's figures: date, version, text, tracking server and sweep file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

from raykd.redact import redact


@dataclass(frozen=True)
class Provenance:
    """Facts about the page; unknown facts are left out."""

    written: datetime = field(default_factory=lambda: datetime.now(UTC))
    version: str = ""
    """Version of raykd."""
    sentences: Mapping[str, int] = field(default_factory=dict)
    """Part of the corpus → sentences of all languages."""
    dev_labels: int | None = None
    """Number of labels counted by the score on dev."""
    pos_origin: str = ""
    """Source of a treebank's parts of speech."""
    tracking: str = ""
    """URI of the tracking server."""
    run: str = ""
    """Address of the sweep's run, relative to the server's URI: `#/experiments/1/runs/…`."""
    file: str = ""
    """Sweep file as YAML."""

    @property
    def facts(self) -> list[str]:
        """Facts about the text, in words."""
        sizes = [f"{part} {number:,}" for part, number in self.sentences.items() if number]
        return [
            *([f"sentences: {', '.join(sizes)}"] if sizes else []),
            *([] if self.dev_labels is None else [f"{self.dev_labels:,} labels in dev"]),
            *([f"parts of speech: {self.pos_origin}"] if self.pos_origin else []),
        ]

    @property
    def link(self) -> str:
        """Address of the sweep's run on a tracking server, without a password; empty if there is no server."""
        parts = urlsplit(self.tracking)
        if parts.scheme not in ("http", "https"):
            return ""
        server = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        return f"{server.rstrip('/')}/{self.run}"

    @property
    def command(self) -> str:
        """Command for showing the sweep's run if there is no server."""
        if not self.tracking or self.link:
            return ""
        return f"mlflow ui --backend-store-uri {redact(self.tracking)}"

    @property
    def redacted_file(self) -> str:
        """Sweep file without secrets."""
        return redact(self.file)
