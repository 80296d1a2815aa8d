"""An exported model behind HTTP: `POST /predict`, `GET /health`, `GET /metrics`.

`raykd serve` runs it, as does any ASGI server:

    RAYKD_MODEL=student uvicorn --factory raykd.serving.server:create_app

A parser whose labels name parts of speech gets these with the request, or from the model in RAYKD_POS. RAYKD_SPLIT says
how texts are split into words. A faulty request is answered with a status of 4xx and {"detail": one sentence}, a body
that is too large with 413.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.datastructures import Headers
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from raykd.serving.batching import MAX_BATCH, MAX_WAIT_MS, Batcher, BusyError
from raykd.serving.labeller import Labelled, Labeller, LabellerError, Text, check_pair, load
from raykd.serving.monitoring import Monitor, RequestCounter

MODEL = "RAYKD_MODEL"
"""Environment variable with the folder of the model, for `create_app` without arguments."""
POS = "RAYKD_POS"
"""Environment variable with the folder of the model that gives a parser its parts of speech."""
SPLIT = "RAYKD_SPLIT"
"""Environment variable with the way to split texts into words, if it differs from the export's."""
API = "1"
"""Version of the requests and answers."""
MAX_TEXTS, MAX_CHARACTERS, MAX_TOGETHER, MAX_BODY = 1000, 20_000, 200_000, 4 * 2**20
"""Limits of one request: texts, characters of a text, characters of all texts, bytes of the body."""
NEEDS_POS = (
    "the model reads parts of speech: send tokens with pos, or start the server with a model of them (--pos)"
)
FORM = 'send {"texts": ["…"]} or {"tokens": [["…"]]}'
EXAMPLE: dict[str, Any] = {"texts": ["Ada Lovelace lives in London."]}


class Texts(BaseModel):
    """Texts to label, or sentences that are split into words already."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    texts: list[str] | None = Field(
        None,
        description="Texts of one or a few sentences; for a model of pairs, two texts with a tab between them.",
    )
    tokens: list[list[str]] | None = Field(None, description="The words of each sentence.")
    pos: list[list[str]] | None = Field(
        None, description="For a parser: the parts of speech of each sentence's words, beside tokens."
    )

    @model_validator(mode="after")
    def _within_limits(self) -> Texts:
        if (self.texts is None) == (self.tokens is None):
            raise ValueError("give either texts or tokens")
        name, texts = ("texts", self.texts) if self.tokens is None else ("tokens", self.tokens)
        if not texts:
            raise ValueError(f"{name} is empty; give one at least")
        if len(texts) > MAX_TEXTS:
            raise ValueError(f"{len(texts):,} {name}, and one request may have {MAX_TEXTS:,}; send several")
        for number, text in enumerate(texts):
            if problem := _problem(text):
                raise ValueError(f"{name}.{number} {problem}")
        characters = sum(len(word) for text in texts for word in text)
        if characters > MAX_TOGETHER:
            problem = f"{characters:,} characters, and one request may have {MAX_TOGETHER:,}"
            raise ValueError(f"{name}: {problem}; send several")
        if self.pos is not None and [*map(len, self.pos)] != [*map(len, self.tokens or ())]:
            raise ValueError("pos: give one part of speech for each word of tokens")
        return self

    def for_labeller(self, labeller: Labeller) -> Sequence[Text]:
        """Return the texts in the form read by `labeller`.

        Args:
            labeller: The model.

        Raises:
            ValueError: A parser lacks parts of speech or does not know one, or a text is no pair.
        """
        texts: Sequence[Text] = self.texts or self.tokens or ()
        if labeller.trees is None or not labeller.trees.reads_pos:
            if self.pos is not None:
                raise ValueError("pos has no effect: the model reads words alone; leave it out")
            for text in texts if labeller.pairs else ():
                check_pair(text)  # pyright: ignore[reportArgumentType]
            return texts
        if self.pos is None or self.tokens is None:
            if labeller.needs_pos:
                raise ValueError(NEEDS_POS)
            return texts
        for number, (words, pos_tags) in enumerate(zip(self.tokens, self.pos, strict=True)):
            try:
                labeller.trees.check_pos(words, pos_tags, tagged=False)
            except ValueError as error:
                raise ValueError(f"pos.{number}: {error}") from None
        return [
            list(zip(words, pos_tags, strict=True))
            for words, pos_tags in zip(self.tokens, self.pos, strict=True)
        ]


def _problem(text: str | list[str]) -> str | None:
    """Describe the fault of a text or of a word; None without a fault."""
    if isinstance(text, list) and not (text and all(text)):
        return f"has {'an empty word' if text else 'no words'}; remove it"
    whole = "".join(text)
    if len(whole) > MAX_CHARACTERS:
        return (
            f"has {len(whole):,} characters, and {MAX_CHARACTERS:,} are allowed; send it sentence by sentence"
        )
    try:
        whole.encode()
    except UnicodeEncodeError:  # JSON can write halves of a character
        return "is not Unicode: it has half of a surrogate pair"
    return None


class Answer(BaseModel):
    """Labels of the texts, in their order."""

    model: str = Field(description="Id of the run that trained the model.")
    results: list[Labelled]


class Health(BaseModel):
    """The answering model."""

    status: str
    model: str = Field(description="Id of the run that trained the model.")
    file: str
    task: str
    languages: list[str] = Field(
        description="Languages of the training; empty if the export does not name them."
    )
    labels: list[str]
    split: str = Field(
        description="How texts are split into words: at white space and at signs (signs), or at white space alone."
    )
    reads_pos: bool = Field(description="Whether requests must have parts of speech.")
    version: str = Field(description="Version of the requests and answers.")


def create_app(
    model: Labeller | str | Path | None = None,
    *,
    max_batch: int = MAX_BATCH,
    max_wait_ms: float = MAX_WAIT_MS,
) -> FastAPI:
    """Return the ASGI application of an exported model.

    Args:
        model: Folder of the export, or a model returned by `load`; None: the folder in RAYKD_MODEL.
        max_batch: Texts that are labelled together.
        max_wait_ms: Milliseconds that a text may wait for others.

    Raises:
        LabellerError: There is no such model, or it cannot be loaded.
    """
    labeller = model if isinstance(model, Labeller) else _load(model)
    monitor = Monitor()

    @asynccontextmanager
    async def labelling(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(
            labeller, max_batch=max_batch, max_wait_ms=max_wait_ms, on_batch=monitor.record_batch
        )
        task = asyncio.create_task(app.state.batcher.run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    app = FastAPI(title="raykd", version=API, lifespan=labelling)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY)
    # Added after RequestBodyLimitMiddleware, so it runs before it, whose answer has no sentence.
    app.add_middleware(_BodyLimit)
    app.add_middleware(RequestCounter, monitor=monitor)
    app.add_exception_handler(413, _too_large)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(BusyError, _busy)
    card = labeller.card

    @app.post("/predict", response_model_exclude_none=True)
    async def predict(request: Texts) -> Answer:
        """Label texts, or sentences of words."""
        try:
            labeller_texts = request.for_labeller(labeller)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        return Answer(model=card["run"], results=await app.state.batcher.label(labeller_texts))

    @app.get("/health")
    async def health() -> Health:
        """State and identity of the model."""
        return Health(
            status="ok", model=card["run"], file=labeller.file, task=card["task"],
            languages=card.get("languages") or [], labels=list(labeller.labels), split=labeller.split,
            reads_pos=labeller.needs_pos, version=app.version,
        )  # fmt: skip

    @app.get("/metrics")
    async def metrics() -> Response:
        """Requests, latencies, batch sizes and the process, in the format of Prometheus."""
        return Response(monitor.prometheus_text(), media_type=monitor.content_type)

    return app


def _load(folder: str | Path | None) -> Labeller:
    """Load the model in `folder`, or else in RAYKD_MODEL, with the settings of the other variables."""
    folder = os.environ.get(MODEL) if folder is None else folder
    if folder is None:
        raise LabellerError(f"no model: set {MODEL} to a folder that raykd export wrote")
    return load(folder, pos=os.environ.get(POS) or None, split=os.environ.get(SPLIT) or None)


class _BodyLimit:
    """ASGI middleware: refuses requests that announce too large a body before the body arrives."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        announced = Headers(scope=scope).get("content-length", "") if scope["type"] == "http" else ""
        too_large = announced.isdecimal() and int(announced) > MAX_BODY
        await (_too_large() if too_large else self.app)(scope, receive, send)


def _too_large(*_: Any) -> Response:
    detail = f"the body has more than {MAX_BODY // 2**20} MiB; send fewer texts in one request"
    return JSONResponse({"detail": detail}, 413)


def _validation_error(_: Request, error: Any) -> Response:
    faults = [_fault_message(fault) for fault in error.errors()]
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return JSONResponse({"detail": "; ".join(faults[:3]) + more}, 422)


def _fault_message(fault: dict[str, Any]) -> str:
    if fault["type"] == "json_invalid":
        return f"the body is not JSON ({fault['ctx']['error']})"
    # A key may contain half of a surrogate pair, which JSON in UTF-8 cannot.
    key = ".".join(map(str, fault["loc"][1:])).encode(errors="backslashreplace").decode()
    if not key and fault["type"] != "value_error":
        return f"{FORM} with the header Content-Type: application/json"
    if fault["type"] == "extra_forbidden":
        nearest = get_close_matches(key, Texts.model_fields, n=1)
        return f"{key}: unknown key; {f'did you mean {nearest[0]}? ' if nearest else ''}{FORM}"
    message = fault["msg"].removeprefix("Value error, ")
    message += f"; {FORM}" if fault["type"] in ("list_type", "string_type") else ""
    return f"{key}: {message}" if key else message


def _busy(_: Request, __: Any) -> Response:
    detail = "too many texts are waiting; try again later"
    return JSONResponse({"detail": detail}, 503, headers={"Retry-After": "1"})
