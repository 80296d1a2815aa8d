"""Where the figures of a page come from: when it was written, by what, from which text, and where else to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from urllib.parse import urlsplit

from raykd.redact import redacted


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

    def facts(self) -> str:
        """One line, as HTML."""
        by = f" by raykd {escape(self.version)}" if self.version else ""
        date = f"<time datetime='{self.written:%Y-%m-%dT%H:%M:%SZ}'>{self.written:%Y-%m-%d %H:%M} UTC</time>"
        sizes = [f"{escape(part)} {number:,}" for part, number in self.sentences.items() if number]
        sentences = f"sentences: {', '.join(sizes)}" if sizes else ""
        labels = "" if self.dev_labels is None else f"{self.dev_labels:,} labels in dev"
        pos = f"parts of speech: {escape(self.pos_origin)}" if self.pos_origin else ""
        facts = (f"written {date}{by}", sentences, labels, pos, self._where())
        return " · ".join(fact for fact in facts if fact)

    def folded(self) -> str:
        """The sweep file, folded, as HTML."""
        if not self.file:
            return ""
        return (
            "<details class='file'><summary>The sweep file</summary>"
            f"<pre tabindex='0'>{escape(redacted(self.file))}</pre></details>"
        )

    def _where(self) -> str:
        """A link to the sweep's run, or the command that shows it."""
        if not self.tracking:
            return ""
        uri, parts = redacted(self.tracking), urlsplit(self.tracking)
        if parts.scheme in ("http", "https"):
            server = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
            link = f"{server.rstrip('/')}/{self.run}"
            return f"<a href='{escape(link, quote=True)}' rel='noreferrer'>run in MLflow</a>"
        return f"MLflow: <code>mlflow ui --backend-store-uri {escape(uri)}</code>"
