"""The server on a port of this machine, with OpenAI's client, with raw requests and bad clients."""

from __future__ import annotations

import datetime as dt
import importlib.util
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("prometheus_client", reason="the extra `serve` is not installed")

import use_st5
from tests.serve.running import running
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.hub.model_names import bundled_folder
from use_st5.search import VectorIndex
from use_st5.serve.app import ServerLimits, create_app

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
TEXTS = ["How old are you?", "What is your age?", "", "東京 🙂"]


@pytest.fixture(scope="module")
def encoder() -> use_st5.SentenceEncoder:
    """The bundled model."""
    return use_st5.load("use_dan_en")


def shared_letters(first: list[str], second: list[str]) -> np.ndarray:
    """Logits by the number of letters that two texts share."""
    return np.array([len({*a} & {*b}) for a, b in zip(first, second, strict=True)], np.float32)


@pytest.fixture(scope="module")
def address(encoder: use_st5.SentenceEncoder) -> Iterator[str]:
    """A server with both kinds of models and small limits."""
    models = {"use_dan_en": encoder, "letters": CrossEncoder(shared_letters, name="letters")}
    limits = ServerLimits(texts=50, characters=2000, body_bytes=100_000, body_seconds=1.0)
    with running(create_app(models, limits)) as url:
        yield url


@pytest.fixture
def post(address: str) -> Callable[..., Any]:
    """Sends JSON, and returns the response."""
    return lambda path, body: httpx.post(f"{address}{path}", json=body, timeout=30)


def error(response: Any, status: int) -> str:
    """The message of a refusal, which has the form of OpenAI's errors."""
    assert response.status_code == status, response.text
    assert {"message", "type", "param", "code"} == set(response.json()["error"])
    return response.json()["error"]["message"]


def test_openais_client_gets_the_vectors_of_encode(
    address: str, encoder: use_st5.SentenceEncoder
) -> None:
    openai = pytest.importorskip("openai")
    expected = encoder.encode(TEXTS)
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
        for options in ({}, {"encoding_format": "float"}):  # without it the client asks for base64
            found = client.embeddings.create(model="use_dan_en", input=TEXTS, **options)
            np.testing.assert_allclose([each.embedding for each in found.data], expected, atol=1e-5)
            assert [each.index for each in found.data] == [0, 1, 2, 3]
        assert found.usage.total_tokens == found.usage.prompt_tokens > 0
        one = client.embeddings.create(model="use_dan_en", input=TEXTS[0]).data[0].embedding
        np.testing.assert_allclose(one, expected[0], atol=1e-5)
        assert [each.id for each in client.models.list()] == ["use_dan_en", "letters"]
        with pytest.raises(openai.NotFoundError, match="expected a sentence encoder, one of use_"):
            client.embeddings.create(model="gpt", input="a")


def test_fewer_dimensions_are_scaled_to_length_1(
    post: Callable, encoder: use_st5.SentenceEncoder
) -> None:
    found = post("/v1/embeddings", {"input": TEXTS[:2], "dimensions": 64}).json()["data"]
    cut = encoder.encode(TEXTS[:2])[:, :64]
    expected = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    np.testing.assert_allclose([each["embedding"] for each in found], expected, atol=1e-5)
    refused = post("/v1/embeddings", {"input": "a", "dimensions": 513})
    assert error(refused, 400) == "dimensions: expected up to 512, received 513."


def test_similarity_is_that_of_the_encoder(
    post: Callable, encoder: use_st5.SentenceEncoder
) -> None:
    found = post("/similarity", {"a": TEXTS[:2], "b": TEXTS[1:]}).json()
    expected = encoder.similarity(TEXTS[:2], TEXTS[1:])
    np.testing.assert_allclose(found["similarities"], expected, atol=1e-5)
    among = post("/similarity", {"a": TEXTS[:2]}).json()["similarities"]
    np.testing.assert_allclose(among, encoder.similarity(TEXTS[:2]), atol=1e-5)


class Prompted(use_st5.SentenceEncoder):
    """The bundled model with prompts."""

    prompts = {"query": "a person asks: ", "document": "", "usual": "music: "}  # type: ignore[assignment] # noqa: RUF012
    default_prompt_name = "usual"  # type: ignore[assignment]


def test_a_request_names_the_prompt(encoder: use_st5.SentenceEncoder) -> None:
    models = {"mine": Prompted(bundled_folder("use_dan_en"))}
    with running(create_app(models)) as url:
        for name, prompt in (("query", "a person asks: "), ("document", ""), (None, "music: ")):
            body = {"input": TEXTS, "prompt_name": name}
            found = httpx.post(f"{url}/v1/embeddings", json=body, timeout=30).json()["data"]
            expected = encoder.encode([prompt + text for text in TEXTS])
            np.testing.assert_allclose([each["embedding"] for each in found], expected, atol=1e-5)
        cosines = httpx.post(f"{url}/similarity", json={"a": TEXTS}, timeout=30).json()
        expected = encoder.similarity([f"music: {text}" for text in TEXTS])
        np.testing.assert_allclose(cosines["similarities"], expected, atol=1e-5)
        body = {"input": "a", "prompt_name": "passage"}
        told = error(httpx.post(f"{url}/v1/embeddings", json=body), 400)
    known = "expected one of the prompts of mine, query, document, usual"
    assert told == f"prompt_name: {known}; received 'passage'."


def test_rerank_sorts_documents(post: Callable) -> None:
    body = {"query": "abc", "documents": ["xyz", "abx", "abc"], "return_documents": True}
    found = post("/rerank", body).json()
    assert [each["index"] for each in found["results"]] == [2, 1, 0]
    assert found["results"][0]["document"] == "abc"
    np.testing.assert_allclose(found["results"][0]["relevance_score"], 1 / (1 + np.exp(-3)))
    assert "expected a model, one of letters" in error(post("/rerank", body | {"model": "x"}), 404)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_rerank_in_the_form_of_cohere_and_jina(post: Callable, path: str) -> None:
    documents = ["xyz", {"text": "abx", "title": ["ignored"]}, "", "abc", "cba"]
    body = {"query": "abc", "documents": documents, "model": "letters"}
    found = post(path, body).json()
    results = found.pop("results")
    assert [each["index"] for each in results] == [3, 4, 1, 0, 2]  # equal scores: in their order
    scores = [each["relevance_score"] for each in results]
    np.testing.assert_allclose(scores, 1 / (1 + np.exp([-3, -3, -2, 0, 0])), rtol=1e-6)
    assert not any("document" in each for each in results)
    assert len(found.pop("id")) == 36
    usage = {"prompt_tokens": 10, "total_tokens": 10}
    meta = {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}}
    assert found == {"object": "list", "model": "letters", "usage": usage, "meta": meta}
    asked = post(path, body | {"return_documents": True, "raw_scores": True, "top_n": 3}).json()
    assert asked["results"] == [
        {"index": 3, "relevance_score": 3.0, "document": {"text": "abc"}},
        {"index": 4, "relevance_score": 3.0, "document": {"text": "cba"}},
        {"index": 1, "relevance_score": 2.0, "document": {"text": "abx"}},
    ]
    for top_n, count in ((1, 1), (None, 5), (99, 5)):
        assert len(post(path, body | {"top_n": top_n}).json()["results"]) == count
    assert error(post(path, body | {"top_n": 0}), 422) == "top_n: Expected int >= 1."
    assert "Use top_n." in error(post(path, body | {"top_k": 3}), 422)
    for wrong, told in (([], "documents: Expected array"), ([{"body": "a"}], "documents[0]")):
        assert told in error(post(path, body | {"documents": wrong}), 400)


def test_a_sentence_encoder_ranks_by_cosines(
    post: Callable, encoder: use_st5.SentenceEncoder
) -> None:
    body = {"query": TEXTS[1], "documents": TEXTS, "model": "use_dan_en"}
    cosines = encoder.similarity(TEXTS[1], TEXTS)[0]
    for raw, expected in ((True, cosines), (None, np.maximum(cosines, 0))):
        found = post("/v1/rerank", body | {"raw_scores": raw}).json()["results"]
        assert [each["index"] for each in found] == np.argsort(-cosines, kind="stable").tolist()
        scores = [each["relevance_score"] for each in found]
        np.testing.assert_allclose(scores, expected[[each["index"] for each in found]], atol=1e-5)


def test_a_model_by_its_name(address: str) -> None:
    found = httpx.get(f"{address}/v1/models/letters").json()
    assert abs(found.pop("created") - time.time()) < 3600
    assert found == {"id": "letters", "object": "model", "owned_by": "use_st5"}
    told = error(httpx.get(f"{address}/v1/models/org/other"), 404)
    assert told.endswith("one of use_dan_en, letters, or no model; received 'org/other'.")


def test_pages_of_an_origin_may_ask_if_it_is_named(
    address: str, encoder: use_st5.SentenceEncoder
) -> None:
    def preflight(url: str, origin: str) -> Any:
        asked = {"Access-Control-Request-Method": "POST"}
        asked["Access-Control-Request-Headers"] = "content-type,x-stainless-os"
        return httpx.options(f"{url}/v1/embeddings", headers={"Origin": origin} | asked)

    page, allowed = "https://a.org", "access-control-allow-origin"
    assert preflight(address, page).status_code == 405
    app = create_app({"dan": encoder}, ServerLimits(body_bytes=100), cors=[page])
    with running(app) as url:
        answer = preflight(url, page)
        assert (answer.status_code, answer.headers[allowed]) == (200, page)
        assert "x-stainless-os" in answer.headers["access-control-allow-headers"]
        assert "POST" in answer.headers["access-control-allow-methods"]
        refused = preflight(url, "https://b.org")
        assert refused.status_code == 400
        assert allowed not in refused.headers
        for text, status in (("a", 200), ("a" * 100, 413)):
            body = {"input": text}
            answer = httpx.post(f"{url}/v1/embeddings", json=body, headers={"Origin": page})
            assert (answer.status_code, answer.headers[allowed]) == (status, page)


@pytest.fixture(scope="module")
def index(
    tmp_path_factory: pytest.TempPathFactory, encoder: use_st5.SentenceEncoder
) -> VectorIndex:
    """An index of the texts."""
    folder = tmp_path_factory.mktemp("search") / "index"
    fields = {"id": [*"abcd"], "day": [dt.date(2026, 11, day) for day in (1, 2, 3, 4)]}
    vectors = encoder.encode(TEXTS)
    return VectorIndex.build(folder, vectors, encoder=encoder, texts=TEXTS, fields=fields)


def test_search_returns_the_rows_of_the_index(
    encoder: use_st5.SentenceEncoder, index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("use_st5.serve.app._QUERIES", 1)
    queries = ["What age do you have?", "東京"]
    scores, rows = index.search(encoder, queries, k=3)
    limits = ServerLimits(answer_bytes=1000, texts=3)
    with running(create_app({"dan": encoder}, limits, index=index)) as url:

        def post(**body: Any) -> Any:
            return httpx.post(f"{url}/search", json=body, timeout=30)

        found = post(queries=queries, top_k=3).json()
        assert (found["model"], found["texts"]) == ("dan", 4)
        for number, answer in enumerate(found["queries"]):
            assert answer["query"] == queries[number]
            hits = answer["found"]
            assert [hit["row"] for hit in hits] == rows[number].tolist()
            assert [hit["text"] for hit in hits] == [TEXTS[row] for row in rows[number]]
            fields = [{"id": "abcd"[row], "day": f"2026-11-0{row + 1}"} for row in rows[number]]
            assert [hit["fields"] for hit in hits] == fields
            np.testing.assert_allclose([hit["score"] for hit in hits], scores[number], atol=1e-5)
        assert len(post(query="a").json()["queries"][0]["found"]) == 4  # all, if there are fewer
        assert error(post(), 400) == "Expected either query or queries."
        assert error(post(query="a", queries=["b"]), 400) == "Expected either query or queries."
        assert error(post(query="a", top_k=0), 422) == "top_k: Expected int >= 1."
        assert "up to 3 texts" in error(post(queries=["a"] * 4), 400)
        among = post(query="a", where='id in ["b", "d"] and day > "2026-11-02"').json()
        assert [hit["row"] for hit in among["queries"][0]["found"]] == [3]
        assert "where: expected one of ['id', 'day']" in error(post(query="a", where="x == 1"), 400)
        if importlib.util.find_spec("bm25s"):
            scores, rows = index.search(encoder, queries, k=3, where="id != 'a'", hybrid=True)
            joined = post(queries=queries, top_k=3, where="id != 'a'", hybrid=True).json()
            for number, answer in enumerate(joined["queries"]):  # One query a part, with its words.
                assert [hit["row"] for hit in answer["found"]] == rows[number].tolist()
                found_scores = [hit["score"] for hit in answer["found"]]
                np.testing.assert_allclose(found_scores, scores[number], rtol=1e-6)
        with monkeypatch.context() as without:
            without.setattr(VectorIndex, "has_texts", False)
            assert "hybrid: expected an index" in error(post(query="a", hybrid=True), 400)
        monkeypatch.setattr(index, "text", lambda row: "half \ud83d")
        assert post(query="a").json()["queries"][0]["found"][0]["text"] == "half ?"
    small = ServerLimits(answer_bytes=4 * 40)
    with running(create_app({"dan": encoder}, small, index=index)) as url:
        assert "received 320" in error(post(queries=["a", "b"]), 400)  # before it is computed
        assert "Lower top_k" in error(post(query="a"), 400)


def test_search_needs_an_index_of_a_model_of_the_server(post: Callable, index: VectorIndex) -> None:
    assert "The server has no index" in error(post("/search", {"query": "a"}), 404)
    letters = CrossEncoder(shared_letters, name="letters")
    with pytest.raises(ValueError, match="expected its model use_dan_en to be served"):
        create_app({"letters": letters}, index=index)


def test_a_slow_search_is_late_and_others_wait(
    encoder: use_st5.SentenceEncoder, index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(*_: Any, **__: Any) -> Any:
        assert go.wait(20)
        return np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int64)

    monkeypatch.setattr(index, "search_vectors", slow)
    with running(create_app({"dan": encoder}, ServerLimits(seconds=1.0), index=index)) as url:
        late = httpx.post(f"{url}/search", json={"query": "a"}, timeout=20)
        assert error(late, 503) == "No result within 1 seconds."
        go.set()
        assert httpx.post(f"{url}/search", json={"query": "a"}, timeout=20).status_code == 200


def test_langchains_client_gets_the_vectors_of_encode(
    address: str, encoder: use_st5.SentenceEncoder
) -> None:
    langchain_openai = pytest.importorskip("langchain_openai")
    options = {"model": "use_dan_en", "api_key": "none", "check_embedding_ctx_length": False}
    client = langchain_openai.OpenAIEmbeddings(base_url=f"{address}/v1", **options)
    np.testing.assert_allclose(client.embed_documents(TEXTS), encoder.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(client.embed_query("a"), encoder.encode(["a"])[0], atol=1e-5)


@pytest.mark.parametrize("version", ["Client", "ClientV2"])
def test_coheres_client_ranks(address: str, version: str) -> None:
    cohere = pytest.importorskip("cohere", reason="Cohere's client is not installed")
    client = getattr(cohere, version)("none", base_url=address)
    found = client.rerank(model="letters", query="abc", documents=["xyz", "abx", "abc"], top_n=2)
    assert [each.index for each in found.results] == [2, 1]
    assert found.meta.billed_units.search_units == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "missing required field input."),
        ([], "body: Expected object, received array."),
        ({"input": [1, 2]}, "input[0]: Expected str, received int. Token ids are not accepted"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format: Invalid enum value 'hex'"),
        ({"input": "a", "dimensions": 0}, "dimensions: Expected int >= 1."),
        ({"input": ["a"] * 51}, "Expected up to 50 texts, received 51."),
        ({"input": "a" * 2001}, "up to 2,000 characters of a text, received 2,001."),
    ],
)
def test_a_bad_request_is_told_what_is_expected(post: Callable, body: dict, told: str) -> None:
    assert told in error(post("/v1/embeddings", body), 400)


def test_an_unknown_path_or_method_has_the_same_form(address: str) -> None:
    assert error(httpx.get(f"{address}/v1/embedding"), 404) == "Not Found"
    refused = httpx.get(f"{address}/v1/embeddings")
    assert error(refused, 405) == "Method Not Allowed"
    assert refused.headers["allow"] == "POST"


def test_a_query_counts_for_each_document() -> None:
    models = {"letters": CrossEncoder(shared_letters, name="letters")}
    with running(create_app(models, ServerLimits(body_bytes=1000))) as url:
        body = {"query": "a" * 99, "documents": ["b"] * 10}
        assert httpx.post(f"{url}/rerank", json=body).status_code == 200
        told = error(httpx.post(f"{url}/rerank", json=body | {"query": "a" * 100}), 400)
    assert "up to 1,000 characters together, received 1,010" in told


def test_null_is_the_default_of_every_optional_field(post: Callable, address: str) -> None:
    """LiteLLM and other clients send null for what their user did not choose."""
    assert httpx.get(f"{address}/docs").status_code == 200
    described = httpx.get(f"{address}/openapi.json").json()["paths"]
    bodies = {
        "/v1/embeddings": {"input": TEXTS},
        "/similarity": {"a": TEXTS},
        "/rerank": {"query": "abc", "documents": ["xyz", "abx"]},
    }
    for path, body in bodies.items():
        content = described[path]["post"]["requestBody"]["content"]
        schema = content["application/json"]["schema"]
        assert set(schema["required"]) == set(body)
        nulls = dict.fromkeys(schema["properties"]) | body
        assert len(nulls) > len(body)
        assert post(path, nulls).json() == post(path, body).json()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"input": "\xff"}',
        b'{"input": "a", "other": ' + b"[" * 50_000,
        b'{"input": "\\ud800"}',
        b'{"query": "a", "documents": ["\\ud800"]}',
    ],
)
def test_a_body_that_is_no_json_does_not_stop_the_server(address: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    path = "rerank" if b"documents" in body else "v1/embeddings"
    refused = httpx.post(f"{address}/{path}", content=body, headers=headers)
    assert error(refused, 400).startswith("body: expected JSON in UTF-8, received other text: ")
    assert httpx.get(f"{address}/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("media_type", [None, "text/plain"])
def test_a_body_is_sent_as_json(address: str, media_type: str | None) -> None:
    """A page in a browser could send other types to a local server."""
    headers = {} if media_type is None else {"content-type": media_type}
    refused = httpx.post(f"{address}/similarity", content=b'{"a": ["b"]}', headers=headers)
    told = f"Content-Type: expected application/json, received {media_type or 'none'}."
    assert error(refused, 415) == told


@pytest.mark.parametrize("field", ["model", "prompt_name", "encoding_format"])
def test_a_long_name_is_not_repeated(post: Callable, field: str) -> None:
    refused = post("/v1/embeddings", {"input": "a", field: "n" * 90_000})
    assert refused.status_code in (400, 404)
    assert len(refused.content) < 500


def test_the_error_of_a_model_stays_in_the_log() -> None:
    def fail(first: list[str], second: list[str]) -> np.ndarray:
        raise OSError("/home/somebody/model is broken")

    with running(
        create_app({"broken": CrossEncoder(fail, name="broken")}), log_level="critical"
    ) as url:
        failed = httpx.post(f"{url}/rerank", json={"query": "a", "documents": ["b"]})
    assert error(failed, 500) == "The server failed (OSError). Its log has the details."


def test_a_missing_kind_of_model_is_told() -> None:
    with running(create_app({"letters": CrossEncoder(shared_letters, name="letters")})) as url:
        refused = httpx.post(f"{url}/v1/embeddings", json={"input": "a"})
    assert "The server has no sentence encoder" in error(refused, 404)


@pytest.mark.parametrize(
    ("path", "body", "most"),
    [
        ("/similarity", {"a": ["a", "b", "c"]}, 180),
        ("/v1/embeddings", {"input": ["a", "b"], "dimensions": 4}, 160),
        ("/v1/embeddings", {"input": "a", "encoding_format": "base64"}, 512 * 16 // 3 + 1),
    ],
)
def test_a_large_answer_is_refused_before_it_is_computed(
    encoder: use_st5.SentenceEncoder, path: str, body: dict, most: int
) -> None:
    for limit, status in ((most, 200), (most - 1, 400)):
        with running(create_app({"dan": encoder}, ServerLimits(answer_bytes=limit))) as url:
            answer = httpx.post(f"{url}{path}", json=body)
        assert answer.status_code == status, answer.text
    assert f"up to {limit:,} bytes of the answer, received {most:,}" in error(answer, 400)


def test_a_large_body_is_refused_before_it_is_read(address: str) -> None:
    refused = httpx.post(f"{address}/v1/embeddings", content=b"x" * 100_001)
    assert error(refused, 413) == "The body has more than 100,000 bytes."
    # A body of unknown length is refused when it has grown too large.
    chunks = (b"x" * 1000 for _ in range(200))
    assert httpx.post(f"{address}/v1/embeddings", content=chunks).status_code == 413


def test_a_slow_body_is_refused(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        start = time.monotonic()
        assert client.recv(100).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - start < 5


class Slow:
    """An encoder that waits for an event."""

    dimension = 2
    prompts: Mapping[str, str] = MappingProxyType({})
    default_prompt_name = None

    def __init__(self) -> None:
        self.go, self.started = threading.Event(), threading.Event()
        self.texts: list[str] = []

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        self.started.set()
        assert self.go.wait(20)
        self.texts += texts
        return np.ones((len(texts), 2), np.float32)


def test_a_full_queue_a_late_result_and_a_lost_client() -> None:
    slow = Slow()
    app = create_app({"slow": slow}, ServerLimits(queue_size=2, seconds=1.0))  # type: ignore[dict-item]
    with running(app) as url:
        url += "/v1/embeddings"
        late: list[Any] = []
        first = threading.Thread(
            target=lambda: late.append(httpx.post(url, json={"input": "first"}, timeout=20))
        )
        first.start()
        assert slow.started.wait(10)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url, json={"input": ["lost", "too"]}, timeout=0.2)
        full = httpx.post(url, json={"input": ["a"]}, timeout=20)
        assert "do not fit into the queue of 2" in error(full, 429)
        assert full.headers["retry-after"] == "1"
        # More texts than the queue holds would never fit.
        large = httpx.post(url, json={"input": ["a", "b", "c"]}, timeout=20)
        assert error(large, 400) == "Expected up to 2 texts, received 3."
        first.join()
        assert error(late[0], 503) == "No result within 1 seconds."
        slow.go.set()
        assert httpx.post(url, json={"input": "next"}, timeout=20).status_code == 200
    assert slow.texts == ["first", "next"]  # the lost request was not computed


def test_metrics_count_requests_texts_and_batches(address: str, post: Callable) -> None:
    def value(name: str) -> float:
        lines = httpx.get(f"{address}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    before = value("use_st5_texts_total"), value("use_st5_batch_size_count")
    post("/v1/embeddings", {"input": TEXTS})
    assert value("use_st5_texts_total") == before[0] + 4
    assert value("use_st5_batch_size_count") == before[1] + 1
    assert value('use_st5_requests_total{path="/v1/embeddings",status="200"}') >= 1
    assert value("use_st5_waiting_texts") == 0
