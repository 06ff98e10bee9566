"""The HTTP application: embeddings, similarity, ranking, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np

import use_st5
from use_st5._imports import require
from use_st5.encode.cross_encoder import CrossEncoder, sigmoid
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.options import DOCUMENT, QUERY, chosen_prompt, first_prompt_name
from use_st5.encode.similarity import pairwise, unit_rows
from use_st5.serve.batching import Batcher, ClosedError, QueueFullError, estimated_tokens
from use_st5.serve.middleware import BodyLimits, CountRequests, Metrics, error_body

require("fastapi", "serve")

from fastapi import FastAPI, HTTPException, Request, Response  # noqa: E402
from starlette.exceptions import HTTPException as StarletteHTTPException  # noqa: E402
from starlette.middleware.cors import CORSMiddleware  # noqa: E402

if TYPE_CHECKING:
    from use_st5.search import VectorIndex

# Seconds between two checks that the client is still connected.
_CHECK_CLIENT = 0.5
# Bytes of a number in an answer: in decimal, about, and in base64.
_DECIMAL_BYTES, _BASE64_BYTES = 20, 16 / 3
# Bytes of a hit without its text, about, and queries that are searched together.
_HIT_BYTES, _QUERIES = 40, 64
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


class Document(msgspec.Struct):
    """A document of `RerankRequest`."""

    text: str


class RerankRequest(msgspec.Struct):
    """`POST /v1/rerank`, as Cohere's and Jina's clients send it, and `POST /rerank`.

    `raw_scores` asks for the logits of a cross-encoder, or for cosines that may be negative.
    """

    query: str
    documents: Annotated[list[str | Document], msgspec.Meta(min_length=1)]
    model: str | None = None
    top_n: _Positive | None = None
    top_k: None = None
    return_documents: bool | None = None
    raw_scores: bool | None = None


class SearchRequest(msgspec.Struct):
    """`POST /search`: the texts of the index that are nearest to queries.

    `where` is an expression of the index's fields, and `hybrid` asks for a search by the words too,
    as `VectorIndex.search` takes them.
    """

    query: str | None = None
    queries: _Texts | None = None
    top_k: _Positive | None = None
    where: str | None = None
    hybrid: bool | None = None


_Body = TypeVar("_Body", bound=msgspec.Struct)


class _Service:
    """The models, with a queue each, and the index."""

    def __init__(
        self,
        models: Mapping[str, SentenceEncoder | CrossEncoder],
        limits: ServerLimits,
        index: VectorIndex | None,
    ) -> None:
        self.limits, self.index = limits, index
        model = {"object": "model", "created": int(time.time()), "owned_by": "use_st5"}
        self.described = {name: {"id": name} | model for name in models}
        self.encoders: dict[str, SentenceEncoder] = {}
        self.cross_encoders: dict[str, CrossEncoder] = {}
        self.metrics = Metrics(lambda: sum(each.waiting for each in self._batchers.values()))
        self._batchers: dict[str, Batcher] = {}
        sizes = {"batch_tokens": limits.batch_tokens, "queue_size": limits.queue_size}
        for name, loaded in models.items():
            compute: Callable[[list[Any]], np.ndarray]
            if isinstance(loaded, CrossEncoder):
                self.cross_encoders[name] = loaded
                compute = functools.partial(loaded.predict, show_progress=False, logits=True)
            else:
                self.encoders[name] = loaded
                # The texts already contain their prompts, which may differ within a batch.
                options: dict[str, Any] = {"prompt": "", "on_truncation": "ignore"}
                compute = functools.partial(loaded.encode, show_progress=False, **options)
            self._batchers[name] = Batcher(compute, **sizes)
            self._batchers[name].on_batch = self.metrics.batch_size.observe
        self.searches = ThreadPoolExecutor(1, "use_st5-search")
        if index is not None:
            own = [name for name, e in self.encoders.items() if e.identity == index.model_hash]
            if not own:
                raise ValueError(f"{index.folder}: expected its model {index.model} to be served.")
            self.index_model = own[0]

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

    def for_side(self, name: str, texts: list[str], side: tuple[str, ...]) -> list[str]:
        """Puts the prompt of queries or of documents before each text, as `encode_query` does."""
        return self.prompted(name, texts, first_prompt_name(side, self.encoders[name].prompts))

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
        return await self.finished(future, request, time.monotonic() + limits.seconds)

    async def finished(self, future: Future[Any], request: Request, deadline: float) -> Any:
        """Waits for a result until it is late or the client has gone."""
        result = asyncio.wrap_future(future)
        while not (await asyncio.wait({result}, timeout=_CHECK_CLIENT))[0]:
            is_lost = await request.is_disconnected()
            if is_lost or time.monotonic() > deadline:
                result.cancel()
                late = f"No result within {self.limits.seconds:g} seconds."
                raise HTTPException(499 if is_lost else 503, "" if is_lost else late)
        return result.result()

    def hits(self, room: int, vectors: np.ndarray, **options: Any) -> list[bytes]:
        """Searches the index: the hits of each query in JSON, refused beyond `room` bytes."""
        assert self.index is not None
        if options["where"] is not None and self.index.fields is None:
            raise HTTPException(400, "where: expected an index with fields, it has none.")
        try:
            nearest = self.index.search_vectors(vectors, **options)
        except ValueError as error:
            raise HTTPException(400, str(error)[:_ECHO]) from None
        answers = []
        for scores, rows in zip(*nearest, strict=True):
            hits = []
            for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
                if row < 0:  # A graph may find fewer.
                    break
                hit: dict[str, Any] = {"score": score, "row": row}
                if self.index.has_texts:
                    text = self.index.text(row)  # It may have half a surrogate pair.
                    hit["text"] = text.encode("utf-8", "replace").decode()
                if fields := self.index.field_values(row):
                    hit["fields"] = fields
                hits.append(msgspec.json.encode(hit))
                room -= len(hits[-1])
                if room < 0:
                    most = f"up to {self.limits.answer_bytes:,} bytes of the answer"
                    raise HTTPException(400, f"Expected {most}, received more. Lower top_k.")
            answers.append(b"[" + b",".join(hits) + b"]")
        return answers

    async def embeddings(self, request: Request) -> Response:
        """Vectors of texts, in the format of OpenAI."""
        body = await _decoded(request, EmbeddingsRequest)
        name = self.named(body.model, self.encoders, "sentence encoder")
        texts = [body.input] if isinstance(body.input, str) else body.input
        dimension = self.encoders[name].dimension
        if body.dimensions is not None and body.dimensions > dimension:
            reason = f"dimensions: expected up to {dimension}, received {body.dimensions}."
            raise HTTPException(400, reason)
        as_bytes = body.encoding_format == "base64"
        number_bytes = _BASE64_BYTES if as_bytes else _DECIMAL_BYTES
        numbers = len(texts) * (body.dimensions or dimension)
        texts = self.prompted(name, texts, body.prompt_name)
        full = await self.compute(name, texts, request, answer_bytes=numbers * number_bytes)

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

    async def similarity(self, request: Request) -> Response:
        """Cosines of texts, a row for each text of `a`."""
        body = await _decoded(request, SimilarityRequest)
        name = self.named(body.model, self.encoders, "sentence encoder")
        size = len(body.a) * len(body.b or body.a) * _DECIMAL_BYTES
        texts = self.prompted(name, [*body.a, *(body.b or [])])
        vectors = await self.compute(name, texts, request, answer_bytes=size)

        def answer() -> Response:
            first = vectors[: len(body.a)]
            second = vectors[len(body.a) :] if body.b else vectors
            return _json({"model": name, "similarities": _rows(pairwise(first, second))})

        return await asyncio.to_thread(answer)

    async def rerank(self, request: Request) -> Response:
        """Documents by their relevance to the query, 0 to 1, the best first.

        A sentence encoder gives the cosine, and 0 for a negative one.
        """
        body = await _decoded(request, RerankRequest)
        models = {**self.cross_encoders, **self.encoders}
        name = self.named(body.model, models, "model")
        documents = [each if isinstance(each, str) else each.text for each in body.documents]
        items: list[Any] = [(body.query, document) for document in documents]
        if name in self.cross_encoders:
            raw = await self.compute(name, items, request)
            scores = raw if body.raw_scores else sigmoid(raw)
        else:
            items = self.for_side(name, [body.query], QUERY)
            items += self.for_side(name, documents, DOCUMENT)
            vectors = await self.compute(name, items, request)
            raw = (await asyncio.to_thread(pairwise, vectors[:1], vectors[1:]))[0]
            scores = raw if body.raw_scores else np.maximum(raw, 0)
        results: list[dict[str, Any]] = [
            {"index": row, "relevance_score": float(scores[row])}
            for row in np.argsort(-raw, kind="stable")[: body.top_n].tolist()
        ]
        is_plain = request.scope["route"].path == "/rerank"
        for result in results if body.return_documents else ():
            text = documents[result["index"]]
            result["document"] = text if is_plain else {"text": text}
        if is_plain:
            return _json({"model": name, "results": results})
        tokens = sum(map(estimated_tokens, items))
        answer = {
            "id": str(uuid.uuid4()),
            "object": "list",
            "model": name,
            "results": results,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}},
        }
        return _json(answer)

    async def search(self, request: Request) -> Response:
        """The texts of the index that are nearest to queries."""
        body = await _decoded(request, SearchRequest)
        if self.index is None:
            raise HTTPException(404, "The server has no index. Start it with --index FOLDER.")
        queries = body.queries or [body.query or ""]
        if (body.query is None) == (body.queries is None):
            raise HTTPException(400, "Expected either query or queries.")
        if body.hybrid and not (self.index.has_texts and importlib.util.find_spec("bm25s")):
            raise HTTPException(400, "hybrid: expected an index with texts, and bm25s installed.")
        top_k = min(body.top_k or 10, len(self.index))
        vectors = await self.compute(
            self.index_model,
            self.for_side(self.index_model, queries, QUERY),
            request,
            answer_bytes=len(queries) * top_k * _HIT_BYTES,
        )
        deadline = time.monotonic() + self.limits.seconds
        room = self.limits.answer_bytes
        found: list[bytes] = []
        for start in range(0, len(vectors), _QUERIES):  # Others have their turn between two parts.
            part = slice(start, start + _QUERIES)
            words = queries[part] if body.hybrid else None
            options = {"k": top_k, "where": body.where, "words": words}
            future = self.searches.submit(self.hits, room, vectors[part], **options)
            hits = await self.finished(future, request, deadline)
            room -= sum(map(len, hits))
            found += hits
        rows = [
            {"query": query, "found": msgspec.Raw(hits)}
            for query, hits in zip(queries, found, strict=True)
        ]
        return _json({"model": self.index_model, "texts": len(self.index), "queries": rows})

    async def models(self) -> Response:
        """The models."""
        return _json({"object": "list", "data": [*self.described.values()]})

    async def model(self, name: str) -> Response:
        """A model, if the server has it."""
        return _json(self.described[self.named(name, self.described, "model")])

    def close(self) -> None:
        """Computes the waiting requests, and ends the threads."""
        self.searches.shutdown()
        for batcher in self._batchers.values():
            batcher.close()


def create_app(
    models: Mapping[str, SentenceEncoder | CrossEncoder],
    limits: ServerLimits | None = None,
    *,
    index: VectorIndex | None = None,
    cors: Collection[str] = (),
) -> FastAPI:
    """Makes the application; run it with `uvicorn` or with `use-st5 serve`.

    Args:
        models: The name of each model in requests, and the model. The first sentence encoder
            answers requests that name no model, and the first cross-encoder ranks; without a
            cross-encoder the first sentence encoder ranks by cosines.
        limits: Limits on requests; None: the defaults.
        index: The index that `/search` searches; its model must be among `models`.
        cors: Origins of web pages that may send requests, such as "https://example.org"; "*": all.
    """
    if not models:
        raise ValueError("models: expected at least one name → model, received none.")
    limits = limits or ServerLimits()
    service = _Service(models, limits, index)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(title="use_st5", version=use_st5.__version__, lifespan=lifespan)
    app.add_middleware(BodyLimits, body_bytes=limits.body_bytes, body_seconds=limits.body_seconds)
    if cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[*cors],
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(CountRequests, metrics=service.metrics)
    # Starlette's own refuse unknown paths and methods, and FastAPI's are a subclass of them.
    app.exception_handler(StarletteHTTPException)(_http_error)
    app.exception_handler(Exception)(_failure)
    posts: dict[str, tuple[Callable[..., Any], type]] = {
        "/v1/embeddings": (service.embeddings, EmbeddingsRequest),
        "/similarity": (service.similarity, SimilarityRequest),
        "/search": (service.search, SearchRequest),
        "/rerank": (service.rerank, RerankRequest),
        "/v1/rerank": (service.rerank, RerankRequest),
        "/v2/rerank": (service.rerank, RerankRequest),
    }
    bodies = [body for _, body in posts.values()]
    template = "#/components/schemas/{name}"
    _, schemas = msgspec.json.schema_components(bodies, ref_template=template)
    for path, (handler, body) in posts.items():
        content = {"application/json": {"schema": schemas[body.__name__]}}
        described = {"requestBody": {"required": True, "content": content}}
        app.post(path, response_class=Response, openapi_extra=described)(handler)
    app.get("/v1/models", response_class=Response)(service.models)
    app.get("/v1/models/{name:path}", response_class=Response)(service.model)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Answers when the server accepts requests."""
        return {"status": "ok"}

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type=service.metrics.media_type)

    app.openapi().setdefault("components", {})["schemas"] = schemas
    return app


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _rows(numbers: np.ndarray) -> list[msgspec.Raw]:
    """The rows in JSON. Between two rows the event loop can run; all at once would stop it."""
    return [msgspec.Raw(msgspec.json.encode(row.tolist())) for row in numbers]


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
        if body_type is RerankRequest and field == "top_k":
            reason += " Use top_n."
        raise HTTPException(422 if field.startswith("top_") else 400, reason) from None
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
