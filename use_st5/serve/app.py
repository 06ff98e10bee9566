"""The HTTP application: embeddings, similarity, ranking, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np

import use_st5
from use_st5._imports import require
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.options import chosen_prompt
from use_st5.encode.similarity import pairwise, unit_rows
from use_st5.serve.batching import Batcher, ClosedError, QueueFullError, estimated_tokens
from use_st5.serve.middleware import BodyLimits, CountRequests, Metrics, error_body

require("fastapi", "serve")

from fastapi import FastAPI, HTTPException, Request, Response  # noqa: E402
from starlette.exceptions import HTTPException as StarletteHTTPException  # noqa: E402

# Seconds between two checks that the client is still connected.
_CHECK_CLIENT = 0.5
# Bytes of a number in an answer: in decimal, about, and in base64.
_DECIMAL_BYTES, _BASE64_BYTES = 20, 16 / 3
# Characters of a client's name or message that an answer repeats.
_ECHO = 200


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
        answer_bytes: Maximum size of an answer with vectors or cosines, estimated before they are
            computed.
        seconds: Time that a request may wait for its result; then it gets the status 503.
    """

    batch_tokens: int = 16_384
    queue_size: int = 8192
    texts: int = 2048
    characters: int = 1_000_000
    body_bytes: int = 4 * 2**20
    body_seconds: float = 30.0
    answer_bytes: int = 32 * 2**20
    seconds: float = 60.0


_Texts = Annotated[list[str], msgspec.Meta(min_length=1)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]


# msgspec stops at the first wrong value and skips unknown fields, as OpenAI does, without building
# them: no body takes much more time or memory than its size.
class EmbeddingsRequest(msgspec.Struct):
    """`POST /v1/embeddings`, as OpenAI's clients send it, and `prompt_name`: one of the model's."""

    input: str | _Texts
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: _Positive | None = None
    prompt_name: str | None = None


class SimilarityRequest(msgspec.Struct):
    """`POST /similarity`: every text of `a` with every text of `b`, or of `a`."""

    a: _Texts
    b: _Texts | None = None
    model: str | None = None


class RerankRequest(msgspec.Struct):
    """`POST /rerank`: documents sorted by a cross-encoder."""

    query: str
    documents: _Texts
    model: str | None = None
    top_n: _Positive | None = None
    return_documents: bool | None = None


_Body = TypeVar("_Body", bound=msgspec.Struct)


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
        # The texts already contain their prompts, which may differ within a batch.
        options: dict[str, Any] = {"prompt": "", "show_progress": False, "on_truncation": "ignore"}
        computes: dict[str, Callable[[list[Any]], np.ndarray]] = {
            name: functools.partial(encoder.encode, **options) for name, encoder in encoders.items()
        }
        for name, scorer in cross_encoders.items():
            computes[name] = functools.partial(scorer.predict, show_progress=False)
        for name, compute in computes.items():
            batcher = Batcher(
                compute, batch_tokens=limits.batch_tokens, queue_size=limits.queue_size
            )
            batcher.on_batch = self.metrics.batch_size.observe
            self._batchers[name] = batcher

    def named(self, name: str | None, models: Mapping[str, Any], what: str) -> str:
        """Returns the name of a request's model: the first model if the request names none."""
        if not models:
            raise HTTPException(404, f"The server has no {what}. Start it with one.")
        if name is not None and name not in models:
            expected = f"expected a {what}, one of {', '.join(models)}, or no model"
            raise HTTPException(404, f"model: {expected}; received {name[:_ECHO]!r}.")
        return name or next(iter(models))

    def prompted(self, name: str, texts: list[str], prompt_name: str | None = None) -> list[str]:
        """Puts a prompt of the model before each text: its default prompt if none is named."""
        encoder = self.encoders[name]
        try:
            prompt = chosen_prompt(None, prompt_name, encoder.prompts, encoder.default_prompt_name)
        except ValueError:
            known = f"expected one of the prompts of {name}, {', '.join(encoder.prompts)}"
            received = str(prompt_name)[:_ECHO]
            raise HTTPException(400, f"prompt_name: {known}; received {received!r}.") from None
        return [prompt + text for text in texts] if prompt else texts

    async def compute(
        self, name: str, items: Sequence[Any], request: Request, *, answer_bytes: float = 0
    ) -> np.ndarray:
        """Waits until a batch with these items is computed, and returns the model's rows."""
        lengths = [len(item) if isinstance(item, str) else sum(map(len, item)) for item in items]
        limits = self.limits
        for size, most, what in (
            (len(items), min(limits.texts, limits.queue_size), "texts"),
            (answer_bytes, limits.answer_bytes, "bytes of the answer"),
            (max(lengths), limits.characters, "characters of a text"),
            (sum(lengths), limits.body_bytes, "characters together"),  # A query is in each pair.
        ):
            if size > most:
                raise HTTPException(400, f"Expected up to {most:,} {what}, received {size:,.0f}.")
        try:
            future = self._batchers[name].submit(items)
        except (QueueFullError, ClosedError) as error:
            status = 429 if isinstance(error, QueueFullError) else 503
            raise HTTPException(status, str(error), headers={"Retry-After": "1"}) from error
        self.metrics.texts.inc(len(items))
        result = asyncio.wrap_future(future)
        deadline = time.monotonic() + self.limits.seconds
        while not (await asyncio.wait({result}, timeout=_CHECK_CLIENT))[0]:
            is_lost = await request.is_disconnected()
            if is_lost or time.monotonic() > deadline:
                result.cancel()
                late = f"No result within {self.limits.seconds:g} seconds."
                raise HTTPException(499 if is_lost else 503, "" if is_lost else late)
        return result.result()

    def close(self) -> None:
        """Computes the waiting requests, and ends the threads."""
        for batcher in self._batchers.values():
            batcher.close()


def create_app(
    models: Mapping[str, SentenceEncoder | CrossEncoder], limits: ServerLimits | None = None
) -> FastAPI:
    """Makes the application; run it with `uvicorn` or with `use-st5 serve`.

    Args:
        models: The name of each model in requests, and the model. The first sentence encoder
            answers requests that name no model, and the first cross-encoder ranks.
        limits: Limits on requests; None: the defaults.
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
    app.exception_handler(Exception)(_failure)
    _add_vector_routes(app, service)
    _add_other_routes(app, service)
    return app


def _add_vector_routes(app: FastAPI, service: _Service) -> None:
    @app.post("/v1/embeddings", **_described(EmbeddingsRequest))
    async def embeddings(request: Request) -> Response:
        """Vectors of texts, in the format of OpenAI."""
        body = await _decoded(request, EmbeddingsRequest)
        name = service.named(body.model, service.encoders, "sentence encoder")
        texts = [body.input] if isinstance(body.input, str) else body.input
        dimension = service.encoders[name].dimension
        if body.dimensions is not None and body.dimensions > dimension:
            reason = f"dimensions: expected up to {dimension}, received {body.dimensions}."
            raise HTTPException(400, reason)
        as_bytes = body.encoding_format == "base64"
        number_bytes = _BASE64_BYTES if as_bytes else _DECIMAL_BYTES
        numbers = len(texts) * (body.dimensions or dimension)
        texts = service.prompted(name, texts, body.prompt_name)
        full = await service.compute(name, texts, request, answer_bytes=numbers * number_bytes)

        def answer() -> Response:
            is_cut = body.dimensions is not None
            vectors = unit_rows(full[:, : body.dimensions]).astype(np.float32) if is_cut else full
            # msgspec writes bytes in base64.
            rows = [row.tobytes() for row in vectors.astype("<f4")] if as_bytes else _rows(vectors)
            data = [
                {"object": "embedding", "index": index, "embedding": row}
                for index, row in enumerate(rows)
            ]
            tokens = sum(map(estimated_tokens, texts))
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            return _json({"object": "list", "data": data, "model": name, "usage": usage})

        return await asyncio.to_thread(answer)

    @app.post("/similarity", **_described(SimilarityRequest))
    async def similarity(request: Request) -> Response:
        """Cosines of texts, a row for each text of `a`."""
        body = await _decoded(request, SimilarityRequest)
        name = service.named(body.model, service.encoders, "sentence encoder")
        size = len(body.a) * len(body.b or body.a) * _DECIMAL_BYTES
        texts = service.prompted(name, [*body.a, *(body.b or [])])
        vectors = await service.compute(name, texts, request, answer_bytes=size)

        def answer() -> Response:
            first = vectors[: len(body.a)]
            second = vectors[len(body.a) :] if body.b else vectors
            return _json({"model": name, "similarities": _rows(pairwise(first, second))})

        return await asyncio.to_thread(answer)


def _add_other_routes(app: FastAPI, service: _Service) -> None:
    @app.post("/rerank", **_described(RerankRequest))
    async def rerank(request: Request) -> Response:
        """Documents by their scores with the query, the best first."""
        body = await _decoded(request, RerankRequest)
        name = service.named(body.model, service.cross_encoders, "cross-encoder")
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


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _rows(numbers: np.ndarray) -> list[msgspec.Raw]:
    """The rows in JSON. Between two rows the event loop can run; all at once would stop it."""
    return [msgspec.Raw(msgspec.json.encode(row.tolist())) for row in numbers]


def _described(body: type) -> dict[str, Any]:
    """Options of a route whose body has this type, for the description of the requests."""
    (_,), components = msgspec.json.schema_components([body])
    content = {"application/json": {"schema": components[body.__name__]}}
    request = {"requestBody": {"required": True, "content": content}}
    return {"response_class": Response, "openapi_extra": request}


async def _decoded(request: Request, body_type: type[_Body]) -> _Body:
    """Reads the body of a request, or refuses it with what is wrong."""
    media_type = request.headers.get("content-type", "none")
    # A page in a browser can send other types to a local server without asking it.
    if not media_type.split(";")[0].strip().lower().endswith("json"):
        reason = f"Content-Type: expected application/json, received {media_type[:_ECHO]}."
        raise HTTPException(415, reason)
    try:
        return msgspec.json.decode(await request.body(), type=body_type)
    except msgspec.ValidationError as error:
        # The field first: "Expected `str`, got `int` - at `$.input[0]`".
        message, _, field = str(error).replace("`", "").partition(" - at $.")
        reason = f"{field or 'body'}: {message[:_ECHO].replace(', got ', ', received ')}."
        if field.startswith("input["):
            reason += " Token ids are not accepted (LangChain: check_embedding_ctx_length=False)."
        raise HTTPException(400, reason) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = f"body: expected JSON in UTF-8, received other text: {str(error)[:_ECHO]}."
        raise HTTPException(400, reason) from None


async def _http_error(_: Request, error: Any) -> Response:
    kind = "invalid_request_error" if error.status_code < 429 else "server_error"
    body = error_body(str(error.detail), kind)
    return Response(body, error.status_code, error.headers, media_type="application/json")


async def _failure(_: Request, error: Exception) -> Response:
    # The error's own message may contain paths and texts; uvicorn logs it.
    message = f"The server failed ({type(error).__name__}). Its log has the details."
    return Response(error_body(message, "server_error"), 500, media_type="application/json")
