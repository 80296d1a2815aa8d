"""Metrics of a server, in the text format of Prometheus."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

PATHS = ("/predict", "/health", "/metrics")
"""Paths with separate series; all others are counted together."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds of the histograms' buckets: seconds of a request, texts of a batch."""


class Monitor:
    """Metrics of one server, which start at 0: `RequestCounter` records requests, `Batcher` batches."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "raykd_requests", "Requests by path and HTTP status; errors have 4xx and 5xx.",
            ["path", "status"], registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "raykd_request_seconds", "From a request's first byte to the end of its answer.", ["path"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._texts = Histogram(
            "raykd_batch_texts", "Texts that were labelled together.", buckets=TEXTS, registry=self.registry
        )

    def record_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            path: Path of the request; unknown paths are counted together.
            status: HTTP status of the answer.
            seconds: Time from the first byte of the request to the end of the answer.
        """
        path = path if path in PATHS else "other"  # a client's invented paths must not become series
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def record_batch(self, texts: int) -> None:
        """Count a labelled batch.

        Args:
            texts: Texts of the batch.
        """
        self._texts.observe(texts)

    def prometheus_text(self) -> bytes:
        """Return all metrics, as `GET /metrics` answers."""
        return generate_latest(self.registry)


class RequestCounter:
    """ASGI middleware: records requests in a monitor."""

    def __init__(self, app: Any, *, monitor: Monitor):
        self.app, self.monitor = app, monitor

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request and record its status and duration."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def send_counted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            self.monitor.record_request(scope["path"], status, perf_counter() - started)
