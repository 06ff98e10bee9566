"""The HTTP application: embeddings, similarity, ranking, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

import use_st5
from use_st5._imports import require
from use_st5._sentence_transformers import chosen_prompt
from use_st5._vectors import pairwise, unit_rows
from use_st5.cross_encoder import CrossEncoder
from use_st5.encoder import SentenceEncoder
from use_st5.serve.batching import Batcher, ClosedError, QueueFullError, estimated_tokens
from use_st5.serve.limits import BodyLimits, error_body
from use_st5.serve.metrics import CountRequests, Metrics

require("fastapi", "serve")

from fastapi import FastAPI, HTTPException, Request, Response  # noqa: E402
from fastapi.exceptions import RequestValidationError  # noqa: E402
from pydantic import BaseModel, ConfigDict, Field  # noqa: E402
from starlette.exceptions import HTTPException as StarletteHTTPException  # noqa: E402

# Seconds between two checks that the client is still connected.
_CHECK_CLIENT = 0.5


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits on the requests that the server accepts.

    Attributes:
        batch_tokens: Maximum number of tokens that are computed together (four bytes count as one).
        queue_size: Maximum number of texts that wait; further requests get the status 429.
        texts: Maximum number of texts in a request.
        characters: Maximum number of characters in a text.
        body_bytes: Maximum size of a request.
        body_seconds: Time that a client may take to send a request.
        seconds: Time that a request may wait for its result; then it gets the status 503.
    """

    batch_tokens: int = 16_384
    queue_size: int = 8192
    texts: int = 2048
    characters: int = 1_000_000
    body_bytes: int = 16 * 2**20
    body_seconds: float = 30.0
    seconds: float = 60.0


# Only the first wrong item is reported: a list of all errors would take a hundred times the memory
# of the request.
_Texts = Annotated[list[str], Field(min_length=1, fail_fast=True)]


class _Body(BaseModel):
    """The body of a request. Unknown fields are ignored, as by OpenAI."""

    model_config = ConfigDict(extra="ignore", strict=True)


class EmbeddingsRequest(_Body):
    """`POST /v1/embeddings`, as OpenAI's clients send it, and `prompt_name`: one of the model's."""

    input: str | _Texts
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    prompt_name: str | None = None


class SimilarityRequest(_Body):
    """`POST /similarity`: every text of `a` with every text of `b`, or of `a`."""

    a: _Texts
    b: _Texts | None = None
    model: str | None = None


class RerankRequest(_Body):
    """`POST /rerank`: documents sorted by a cross-encoder."""

    query: str
    documents: _Texts
    model: str | None = None
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool = False


class _Service:
    """The models, with a queue each."""

    def __init__(
        self,
        encoders: Mapping[str, SentenceEncoder],
        cross_encoders: Mapping[str, CrossEncoder],
        limits: ServerLimits,
    ) -> None:
        self.limits = limits
        self.encoders, self.cross_encoders = dict(encoders), dict(cross_encoders)
        self.metrics = Metrics(lambda: sum(each.waiting for each in self._batchers.values()))
        self._batchers: dict[str, Batcher] = {}
        computes: dict[str, Callable[[list[Any]], np.ndarray]]
        computes = {name: _encode(each) for name, each in encoders.items()}
        computes |= {name: _score(each) for name, each in cross_encoders.items()}
        for name, compute in computes.items():
            batcher = Batcher(
                compute, batch_tokens=limits.batch_tokens, queue_size=limits.queue_size
            )
            batcher.on_batch = self.metrics.batch_size.observe
            self._batchers[name] = batcher

    def named(self, name: str | None, models: Mapping[str, Any], what: str) -> str:
        """Returns the name of a request's model: the first model if the request names none."""
        if name is None and models:
            return next(iter(models))
        if name in models:
            return str(name)
        names = ", ".join(models) or "none"
        raise HTTPException(404, f"model: expected {what}, one of {names}; received {name}.")

    def prompted(self, name: str, texts: list[str], prompt_name: str | None = None) -> list[str]:
        """Puts a prompt of the model before each text: its default prompt if none is named."""
        encoder = self.encoders[name]
        try:
            prompt = chosen_prompt(None, prompt_name, encoder.prompts, encoder.default_prompt_name)
        except ValueError:
            hint = f"expected one of the prompts of {name}, {', '.join(encoder.prompts)}"
            raise HTTPException(400, f"prompt_name: {hint}; received {prompt_name}.") from None
        return [prompt + text for text in texts] if prompt else texts

    async def compute(self, name: str, items: Sequence[Any], request: Request) -> np.ndarray:
        """Waits until a batch with these items is computed, and returns the model's rows."""
        self._check(items)
        try:
            future = self._batchers[name].submit(items)
        except QueueFullError as error:
            raise HTTPException(429, str(error), headers={"Retry-After": "1"}) from error
        except ClosedError as error:
            raise HTTPException(503, str(error)) from error
        self.metrics.texts.inc(len(items))
        result = asyncio.wrap_future(future)
        deadline = asyncio.get_running_loop().time() + self.limits.seconds
        while not result.done():
            await asyncio.wait({result}, timeout=_CHECK_CLIENT)
            if result.done():
                break
            if await request.is_disconnected():
                result.cancel()
                raise HTTPException(499, "The client closed the connection.")
            if asyncio.get_running_loop().time() > deadline:
                result.cancel()
                raise HTTPException(503, f"No result within {self.limits.seconds:g} seconds.")
        return result.result()

    def close(self) -> None:
        """Computes the waiting requests, and ends the threads."""
        for batcher in self._batchers.values():
            batcher.close()

    def _check(self, items: Sequence[Any]) -> None:
        """Refuses too many or too long texts before they wait."""
        most = min(self.limits.texts, self.limits.queue_size)
        if len(items) > most:
            raise HTTPException(400, f"Expected up to {most:,} texts, received {len(items):,}.")
        lengths = [len(item) if isinstance(item, str) else sum(map(len, item)) for item in items]
        longest, total = max(lengths), sum(lengths)
        if longest > self.limits.characters:
            raise HTTPException(
                400,
                f"Expected texts of up to {self.limits.characters:,} characters, received one of "
                f"{longest:,}.",
            )
        # Each pair has the whole query.
        if total > self.limits.body_bytes:
            raise HTTPException(
                400,
                f"Expected texts or pairs of up to {self.limits.body_bytes:,} characters together, "
                f"received {total:,}.",
            )


def create_app(
    models: Mapping[str, SentenceEncoder | CrossEncoder], limits: ServerLimits | None = None
) -> FastAPI:
    """Makes the application; run it with `uvicorn` or with `use-st5 serve`.

    Args:
        models: The name of each model in requests, and the model. The first sentence encoder
            answers requests that name no model, and the first cross-encoder ranks.
        limits: Limits on requests; None: the defaults.

    Raises:
        ValueError: There is no model.
    """
    if not models:
        raise ValueError("models: expected at least one name → model, received none.")
    limits = limits or ServerLimits()
    service = _Service(
        {name: each for name, each in models.items() if not isinstance(each, CrossEncoder)},
        {name: each for name, each in models.items() if isinstance(each, CrossEncoder)},
        limits,
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(title="use_st5", version=use_st5.__version__, lifespan=lifespan)
    app.add_middleware(BodyLimits, body_bytes=limits.body_bytes, body_seconds=limits.body_seconds)
    app.add_middleware(CountRequests, metrics=service.metrics)
    # Starlette's own refuse unknown paths and methods, and FastAPI's are a subclass of them.
    app.exception_handler(StarletteHTTPException)(_http_error)
    app.exception_handler(RequestValidationError)(_invalid_request)
    app.exception_handler(Exception)(_failure)
    _add_vector_routes(app, service)
    _add_other_routes(app, service)
    return app


def _add_vector_routes(app: FastAPI, service: _Service) -> None:
    @app.post("/v1/embeddings", response_class=Response)
    async def embeddings(body: EmbeddingsRequest, request: Request) -> Response:
        """Vectors of texts, in the format of OpenAI."""
        name = service.named(body.model, service.encoders, "a sentence encoder")
        texts = [body.input] if isinstance(body.input, str) else body.input
        dimension = service.encoders[name].dimension
        if body.dimensions is not None and body.dimensions > dimension:
            raise HTTPException(
                400, f"dimensions: expected up to {dimension}, received {body.dimensions}."
            )
        texts = service.prompted(name, texts, body.prompt_name)
        vectors = await service.compute(name, texts, request)
        if body.dimensions is not None:
            vectors = unit_rows(vectors[:, : body.dimensions]).astype(np.float32)
        # msgspec writes bytes in base64.
        as_bytes = body.encoding_format == "base64"
        rows = [row.tobytes() for row in vectors.astype("<f4")] if as_bytes else vectors.tolist()
        data = [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ]
        tokens = sum(map(estimated_tokens, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return _json({"object": "list", "data": data, "model": name, "usage": usage})

    @app.post("/similarity", response_class=Response)
    async def similarity(body: SimilarityRequest, request: Request) -> Response:
        """Cosines of texts, a row for each text of `a`."""
        name = service.named(body.model, service.encoders, "a sentence encoder")
        texts = service.prompted(name, [*body.a, *(body.b or [])])
        vectors = await service.compute(name, texts, request)
        first, second = vectors[: len(body.a)], vectors[len(body.a) :] if body.b else vectors
        return _json({"model": name, "similarities": pairwise(first, second).tolist()})


def _add_other_routes(app: FastAPI, service: _Service) -> None:
    @app.post("/rerank", response_class=Response)
    async def rerank(body: RerankRequest, request: Request) -> Response:
        """Documents by their scores with the query, the best first."""
        name = service.named(body.model, service.cross_encoders, "a cross-encoder")
        pairs = [(body.query, document) for document in body.documents]
        scores = await service.compute(name, pairs, request)
        results = [
            {"index": int(index), "relevance_score": float(scores[index])}
            | ({"document": body.documents[index]} if body.return_documents else {})
            for index in np.argsort(-scores, kind="stable")[: body.top_n]
        ]
        return _json({"model": name, "results": results})

    @app.get("/v1/models", response_class=Response)
    async def models() -> Response:
        """The names of the models."""
        names = [*service.encoders, *service.cross_encoders]
        data = [{"id": name, "object": "model", "owned_by": "use_st5"} for name in names]
        return _json({"object": "list", "data": data})

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Answers when the server accepts requests."""
        return {"status": "ok"}

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type=service.metrics.media_type)


def _encode(encoder: SentenceEncoder) -> Callable[[list[str]], np.ndarray]:
    # The texts already contain their prompts, which may differ within a batch.
    options: dict[str, Any] = {"prompt": "", "show_progress": False, "on_truncation": "ignore"}
    return lambda texts: encoder.encode(texts, **options)


def _score(model: CrossEncoder) -> Callable[[list[tuple[str, str]]], np.ndarray]:
    return lambda pairs: model.predict(pairs, show_progress=False)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _http_error(_: Request, error: Any) -> Response:
    kind = "invalid_request_error" if error.status_code < 429 else "server_error"
    body = error_body(str(error.detail), kind)
    return Response(body, error.status_code, error.headers, media_type="application/json")


async def _invalid_request(_: Request, error: Any) -> Response:
    """Answers a request that is not JSON, or has fields of another type."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    return Response(error_body(f"{field}: {first['msg']}."), 400, media_type="application/json")


async def _failure(_: Request, error: Exception) -> Response:
    body = error_body(f"{type(error).__name__}: {error}", "server_error")
    return Response(body, 500, media_type="application/json")
