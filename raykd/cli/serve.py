"""`raykd serve`: serve an exported model over HTTP."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from raykd.cli.console import stdout
from raykd.cli.options import Away, ExportDir, Int8, RunCode, Split, Threads
from raykd.errors import Fault, RaykdError, SpecError, StoreError
from raykd.serving.batching import MAX_BATCH, MAX_WAIT_MS
from raykd.serving.labeller import LabellerError, load, model_file

GRACE_S = 10
"""Seconds for requests in progress when the server is stopped."""


def serve(
    folder: ExportDir,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")] = 8000,
    pos: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False,
            help="For a parser: an exported student of task pos that predicts the parts of speech of sentences without "
            "them.",
        ),
    ] = None,
    threads: Threads = 1,
    int8: Int8 = False,
    split: Split = None,
    away: Away = "student",
    run_code: RunCode = False,
    max_batch: Annotated[int, typer.Option(min=1, help="Most texts in one batch.")] = MAX_BATCH,
    max_wait_ms: Annotated[
        float, typer.Option(min=0, help="Milliseconds that a text may wait for others to share a batch.")
    ] = MAX_WAIT_MS,
) -> None:  # fmt: skip
    """Serve the exported model in DIR: POST /predict, GET /health, GET /metrics."""
    try:
        import uvicorn

        from raykd.serving.server import create_app
    except ModuleNotFoundError as error:
        raise RaykdError(
            f"serving needs {error.name}; run pip install fastapi uvicorn prometheus_client"
        ) from None
    try:
        labeller = load(
            folder,
            file=model_file(int8=int8),
            threads=threads,
            pos=pos,
            split=split,
            away=away,
            run_code=run_code,
        )
    except LabellerError as error:
        raise StoreError(str(folder), str(error), "see docs/SERVING.md") from None
    app = create_app(labeller, max_batch=max_batch, max_wait_ms=max_wait_ms)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
    listening = _listen(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    stdout.print(f"serve: {labeller.card['run']} ({labeller.card['task']}, {labeller.file}) on {address}")
    stdout.print(
        "POST /predict, GET /health, GET /metrics; see /docs for their formats. Ctrl-C stops the server."
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again after it has stopped
        pass
    finally:
        listening.close()
    stdout.print("serve: stopped")


def _listen(host: str, port: int) -> Any:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", error)).partition(" (")[0]
        problem = f"cannot listen on {host}:{port} ({reason}); choose another --host or --port"
        raise SpecError((Fault("--port", None, "", problem),)) from None
