"""An exported model behind HTTP: `POST /predict`, `GET /health`, `GET /metrics`. `raykd serve` runs it, as does any
ASGI server:

    RAYKD_MODEL=student uvicorn --factory raykd.serving.server:create_app

A parser whose labels name parts of speech gets these with the request, or from the model in RAYKD_POS. RAYKD_SPLIT says
how texts are split into words.
What is wrong with a request is answered with a status of 4xx and {"detail": one sentence}, too large a body with 413.
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
"""The environment variable that has the folder of the model where `create_app` is given none."""
POS = "RAYKD_POS"
"""And of the model that gives a parser its parts of speech, where it needs one."""
SPLIT = "RAYKD_SPLIT"
"""And how texts are split into words, where that is not as the export says."""
API = "1"
"""The version of the requests and answers."""
MAX_TEXTS, MAX_CHARACTERS, MAX_TOGETHER, MAX_BODY = 1000, 20_000, 200_000, 4 * 2**20
"""Of one request: texts, characters of each and of all, bytes of its body."""
NEEDS_POS = (
    "the model reads parts of speech: send tokens with pos, or start the server with a model of them (--pos)"
)
FORM = 'send {"texts": ["…"]} or {"tokens": [["…"]]}'
EXAMPLE: dict[str, Any] = {"texts": ["Ada Lovelace lives in London."]}


class Texts(BaseModel):
    """What is to be labelled: texts, or sentences that are split into words already."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    texts: list[str] | None = Field(
        None, description="A sentence or a few each; of a model of pairs two texts, a tab between them."
    )
    tokens: list[list[str]] | None = Field(None, description="The words of each sentence.")
    pos: list[list[str]] | None = Field(
        None, description="For a parser: the parts of speech of each sentence's words, beside tokens."
    )

    @model_validator(mode="after")
    def _within_limits(self) -> Texts:
        if (self.texts is None) == (self.tokens is None):
            raise ValueError("give either texts or tokens")
        name, each = ("texts", self.texts) if self.tokens is None else ("tokens", self.tokens)
        if not each:
            raise ValueError(f"{name} is empty; give one at least")
        if len(each) > MAX_TEXTS:
            raise ValueError(f"{len(each):,} {name}, and one request may have {MAX_TEXTS:,}; send several")
        for number, text in enumerate(each):
            if problem := _problem(text):
                raise ValueError(f"{name}.{number} {problem}")
        together = sum(len(word) for text in each for word in text)
        if together > MAX_TOGETHER:
            problem = f"{together:,} characters, and one request may have {MAX_TOGETHER:,}"
            raise ValueError(f"{name}: {problem}; send several")
        if self.pos is not None and [*map(len, self.pos)] != [*map(len, self.tokens or ())]:
            raise ValueError("pos: give one part of speech for each word of tokens")
        return self

    def for_labeller(self, labeller: Labeller) -> Sequence[Text]:
        """What is given to `labeller`. Raises ValueError where a parser lacks parts of speech, or does not know one."""
        given: Sequence[Text] = self.texts or self.tokens or ()
        if labeller.trees is None or not labeller.trees.reads_pos:
            if self.pos is not None:
                raise ValueError("pos has no effect: the model reads words alone; leave it out")
            for text in given if labeller.pairs else ():
                check_pair(text)  # pyright: ignore[reportArgumentType]
            return given
        if self.pos is None or self.tokens is None:
            if labeller.needs_pos:
                raise ValueError(NEEDS_POS)
            return given
        for number, (words, own) in enumerate(zip(self.tokens, self.pos, strict=True)):
            try:
                labeller.trees.check_pos(words, own, tagged=False)
            except ValueError as error:
                raise ValueError(f"pos.{number}: {error}") from None
        return [list(zip(words, own, strict=True)) for words, own in zip(self.tokens, self.pos, strict=True)]


def _problem(text: str | list[str]) -> str | None:
    """What is wrong with one text, or with its words."""
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
    """What the model says of each text, in their order."""

    model: str = Field(description="The id of the run that trained it.")
    results: list[Labelled]


class Health(BaseModel):
    """The model that answers."""

    status: str
    model: str = Field(description="The id of the run that trained it.")
    file: str
    task: str
    languages: list[str] = Field(description="Of its training; empty where the export does not say.")
    labels: list[str]
    split: str = Field(
        description="How texts are split into words: at white space and signs, or at white space."
    )
    reads_pos: bool = Field(description="Whether requests must have parts of speech.")
    version: str = Field(description="Of raykd.")


def create_app(
    model: Labeller | str | Path | None = None,
    *,
    max_batch: int = MAX_BATCH,
    max_wait_ms: float = MAX_WAIT_MS,
) -> FastAPI:
    """The ASGI application of an exported model.

    Args:
        model: the folder of the export, or what `load` made of it; None: the folder in RAYKD_MODEL.
        max_batch: texts that are labelled together.
        max_wait_ms: milliseconds that a text may wait for others.

    Raises:
        LabellerError: there is no such model.
    """
    folder = os.environ.get(MODEL) if model is None else model
    if folder is None:
        raise LabellerError(f"no model: set {MODEL} to a folder that raykd export wrote")
    labeller = folder
    if not isinstance(labeller, Labeller):
        labeller = load(labeller, pos=os.environ.get(POS) or None, split=os.environ.get(SPLIT) or None)
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
    app.add_middleware(_Limited)  # outside of the former, whose own answer has no sentence
    app.add_middleware(RequestCounter, monitor=monitor)
    app.add_exception_handler(413, _too_large)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_exception_handler(BusyError, _busy)
    card = labeller.card

    @app.post("/predict", response_model_exclude_none=True)
    async def predict(asked: Texts) -> Answer:
        """Label texts, or sentences of words."""
        try:
            given = asked.for_labeller(labeller)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        return Answer(model=card["run"], results=await app.state.batcher.label(given))

    @app.get("/health")
    async def health() -> Health:
        """Whether the model answers, and which it is."""
        return Health(
            status="ok", model=card["run"], file=labeller.file, task=card["task"],
            languages=card.get("languages") or [], labels=list(labeller.labels), split=labeller.split,
            reads_pos=labeller.needs_pos, version=app.version,
        )  # fmt: skip

    @app.get("/metrics")
    async def metrics() -> Response:
        """Requests, latencies, sizes of batches and the process, as Prometheus reads them."""
        return Response(monitor.prometheus_text(), media_type=monitor.content_type)

    return app


class _Limited:
    """ASGI middleware that answers requests which announce too large a body before it is sent."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        announced = Headers(scope=scope).get("content-length", "") if scope["type"] == "http" else ""
        too_large = announced.isdecimal() and int(announced) > MAX_BODY
        await (_too_large() if too_large else self.app)(scope, receive, send)


def _too_large(*_: Any) -> Response:
    detail = f"the body has more than {MAX_BODY // 2**20} MiB; send fewer texts in one request"
    return JSONResponse({"detail": detail}, 413)


def _refused(_: Request, error: Any) -> Response:
    faults = [_sentence(each) for each in error.errors()]
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return JSONResponse({"detail": "; ".join(faults[:3]) + more}, 422)


def _sentence(fault: dict[str, Any]) -> str:
    if fault["type"] == "json_invalid":
        return f"the body is not JSON ({fault['ctx']['error']})"
    # A key may have half of a surrogate pair, which an answer cannot have.
    where = ".".join(map(str, fault["loc"][1:])).encode(errors="backslashreplace").decode()
    if not where and fault["type"] != "value_error":
        return f"{FORM} with the header Content-Type: application/json"
    if fault["type"] == "extra_forbidden":
        near = get_close_matches(where, Texts.model_fields, n=1)
        return f"{where}: unknown key; {f'did you mean {near[0]}? ' if near else ''}{FORM}"
    message = fault["msg"].removeprefix("Value error, ")
    message += f"; {FORM}" if fault["type"] in ("list_type", "string_type") else ""
    return f"{where}: {message}" if where else message


def _busy(_: Request, __: Any) -> Response:
    detail = "too many texts are waiting; try again later"
    return JSONResponse({"detail": detail}, 503, headers={"Retry-After": "1"})
