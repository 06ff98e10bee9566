"""`use-st5 serve`: serves models over HTTP."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5._imports import require
from use_st5.cli.models import (
    Backend,
    BackendChoice,
    ModelChoice,
    find_model,
    load_cross_encoder,
    load_encoder,
)
from use_st5.cli.output import manual, say
from use_st5.hub.model_names import short_name
from use_st5.io.progress import progress_lines

if TYPE_CHECKING:
    from use_st5.encode.cross_encoder import CrossEncoder
    from use_st5.encode.encoder import SentenceEncoder

# Connections that get answers; most shells allow a process 1,024 open files.
_CONNECTIONS = 400

HELP = manual(
    r"""Serve models over HTTP, with the embeddings API of OpenAI's clients.

    POST /v1/embeddings returns vectors, POST /similarity cosines, and POST /v1/rerank sorts
    documents in the format of Cohere and Jina, with a cross-encoder or by cosine. With --index,
    POST /search finds the texts of an index that are nearest to a query. /docs describes all
    requests, /healthz answers when the server is ready, and /metrics has counters for Prometheus.
    Requests of several clients are computed together. If too many texts are waiting, a request
    gets the status 429.

    If a model has prompts (see use-st5 info), a request for vectors names one in its field
    prompt_name. Without it, the model's default prompt is used, if it has one.

    MODEL is a sentence encoder or a cross-encoder. Requests name it by its folder's name. After
    Ctrl-C or SIGTERM the server answers the accepted requests and stops. It has no encryption and
    no passwords: put it behind a proxy before you open it to others.

    Needs the extra `serve`.""",
    "use-st5 serve use_dan_en",
    "use-st5 serve use_dan_en --index sentences.index --cors https://example.org",
    "use-st5 serve use_transformer_en models/cross_encoder --host 0.0.0.0 --port 8080",
    """curl localhost:8000/v1/embeddings -d '{"input": ["How old are you?"]}' """
    "-H 'Content-Type: application/json'",
)


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Names of bundled models, or folders.")
    ],
    host: Annotated[str, typer.Option(help="Address; 0.0.0.0: all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any.")] = 8000,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens that are computed together.")
    ] = 16_384,
    queue_size: Annotated[int, typer.Option(min=1, help="Texts that may wait.")] = 8192,
    index: Annotated[
        Path | None, typer.Option(help="An index of a MODEL, for requests to /search.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Origin of web pages that may ask, as https://a.org; *: all; repeatable.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Seconds to wait for a result.")
    ] = 60.0,
    backend: BackendChoice = "tensorflow",
) -> None:
    """Serves models."""
    uvicorn = require("uvicorn", "serve")
    require("fastapi", "serve")
    require("prometheus_client", "serve")
    from use_st5.search import VectorIndex
    from use_st5.serve.app import ServerLimits, create_app
    from use_st5.serve.connections import TimedConnection

    origins = [origin.strip().rstrip("/") for text in cors or [] for origin in text.split(",")]
    if not all(origin == "*" or "://" in origin for origin in origins):
        raise typer.BadParameter("--cors expects origins such as https://example.org, or *.")
    opened = VectorIndex(index) if index else None
    limits = ServerLimits(batch_tokens=batch_tokens, queue_size=queue_size, seconds=timeout)
    with _listen(host, port) as listening:
        loaded = _load(models, backend)
        config = uvicorn.Config(
            create_app(loaded, limits, index=opened, cors=origins),
            http=TimedConnection,
            limit_concurrency=_CONNECTIONS,
            log_level="warning",
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=int(timeout) + 1,
        )
        port = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        say(f"serving {', '.join(loaded)} on http://{shown}:{port} (Ctrl-C stops it)")
        with progress_lines(lambda: ""):  # A server that runs need not say so.
            uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """Returns a bound socket; it is opened before any model is loaded."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, reuse_port=False, backlog=2048)
    except OSError as error:
        place = f"--host {host} --port {port}"
        raise OSError(f"{place}: expected an address that is free: {error.strerror}") from error


def _load(models: list[str], backend: Backend) -> dict[str, SentenceEncoder | CrossEncoder]:
    """Name → model. Each model is called once here, so that the first client need not wait."""
    from use_st5.hub.model_manifest import ModelManifest

    loaded: dict[str, SentenceEncoder | CrossEncoder] = {}
    for model in models:
        manifest = ModelManifest.read(find_model(model))
        loaded_model: SentenceEncoder | CrossEncoder
        if manifest is not None and manifest.texts == 2:
            ModelChoice(model, backend).check_tensorflow(f"for {model}, which is a cross-encoder")
            loaded_model = load_cross_encoder(model)
            loaded_model.predict([("a", "b")])
        else:
            loaded_model = load_encoder(ModelChoice(model, backend))
            loaded_model.encode(["a"])
        name = short_name(model)
        if name in loaded:
            raise ValueError(f"expected models with different names, received two called {name}")
        loaded[name] = loaded_model
    return loaded
