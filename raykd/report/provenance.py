"""Where the figures of a page come from: when it was written, by what, from which text, and where else to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

from raykd.redact import redact


@dataclass(frozen=True)
class Provenance:
    """What the page says of itself beside its figures; what is not known is left out."""

    written: datetime = field(default_factory=lambda: datetime.now(UTC))
    version: str = ""
    """Of raykd."""
    sentences: Mapping[str, int] = field(default_factory=dict)
    """Part of the corpus → sentences of all languages."""
    dev_labels: int | None = None
    """How many labels the score on dev counts."""
    pos_origin: str = ""
    """Where the parts of speech of a treebank are from."""
    tracking: str = ""
    """The tracking server's URI."""
    run: str = ""
    """The sweep's run there, as it follows the server's URI: `#/experiments/1/runs/…`."""
    file: str = ""
    """The sweep file, as YAML."""

    @property
    def facts(self) -> list[str]:
        """What is known of the text."""
        sizes = [f"{part} {number:,}" for part, number in self.sentences.items() if number]
        return [
            *([f"sentences: {', '.join(sizes)}"] if sizes else []),
            *([] if self.dev_labels is None else [f"{self.dev_labels:,} labels in dev"]),
            *([f"parts of speech: {self.pos_origin}"] if self.pos_origin else []),
        ]

    @property
    def link(self) -> str:
        """The address of the sweep's run on a tracking server, without a password; empty where there is no server."""
        parts = urlsplit(self.tracking)
        if parts.scheme not in ("http", "https"):
            return ""
        server = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        return f"{server.rstrip('/')}/{self.run}"

    @property
    def command(self) -> str:
        """The command that shows the sweep's run where there is no server."""
        if not self.tracking or self.link:
            return ""
        return f"mlflow ui --backend-store-uri {redact(self.tracking)}"

    @property
    def redacted_file(self) -> str:
        """The sweep file without secrets."""
        return redact(self.file)
