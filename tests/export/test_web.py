"""The page for browsers: its ids and vectors by Node, and the whole page in Chromium."""

from __future__ import annotations

import functools
import json
import random
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import use_st5
from tests.engines.fuzzed import check_same_ids, every_code_point, fuzzed_texts, ngram_vocabulary
from tests.tokenizers.real_sentences import real_sentences
from tests.toy_encoders import Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.sentences import one_or_many
from use_st5.engines.dan import DANEngine
from use_st5.engines.weights import Table, TableRows
from use_st5.engines.word_ids import Flat
from use_st5.export.web import codes_by_frequency, dan_manifest, to_web
from use_st5.hub.model_names import bundled_folder
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node 18 or newer (Debian: nodejs)")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: chromium)")

TEXTS = ["How old are you?", "", " ", "the cat", "The cat sat on the mat. " * 300, "ﷺ naïve “q”"]

DRIVER = Path(__file__).with_name("page_driver.cjs")

Node = Callable[[Path, list[str], str], list[Any]]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Calls a function of the driver on texts, with the scripts of a folder."""

    def call(folder: Path, texts: list[str], name: str) -> list[Any]:
        given, answer = tmp_path / "given.json", tmp_path / "answer.json"
        given.write_text(json.dumps(texts), encoding="utf-8")  # a lone surrogate is escaped
        command = [NODE, DRIVER, folder, given, answer, name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(answer.read_text(encoding="utf-8"))

    return call


@pytest.fixture(scope="module")
def page_folder(repository: Path) -> Path:
    """The code that all pages share."""
    return repository / "use_st5" / "export" / "page"


@pytest.fixture(scope="module")
def bundled_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the bundled model."""
    path = tmp_path_factory.mktemp("pages") / "bundled"
    to_web("use_dan_en", path)
    return path


@pytest.fixture(scope="module", params=["words", "pieces", "buckets"])
def graph(request: pytest.FixtureRequest) -> tuple[NGramVocabulary, Any]:
    """A vocabulary with buckets or pieces, and its graph."""
    import tensorflow as tf

    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer

    vocabulary = ngram_vocabulary(request.param)
    text = tf.TensorSpec([None], tf.string)
    return vocabulary, tf.function(NGramTokenizer(vocabulary).flat, input_signature=[text])


def check_ids(
    graph: tuple[NGramVocabulary, Any], node: Node, folder: Path, texts: list[str]
) -> None:
    """Compares the ids of JavaScript with those of the graph."""
    vocabulary, flat = graph
    content = _text(vocabulary)

    def ours(given: list[str]) -> Flat:
        found = node(folder, [content, *given], "ids")
        starts = np.cumsum([0, *map(len, found)])
        return np.array([each for ids in found for each in ids]), starts

    check_same_ids(ours, flat, texts, [text.encode() for text in one_or_many(texts)[0]])


def _text(vocabulary: NGramVocabulary) -> str:
    """The content of the vocabulary's file."""
    with tempfile.TemporaryDirectory() as scratch:
        vocabulary.save(Path(scratch, "vocabulary.txt"))
        return Path(scratch, "vocabulary.txt").read_text(encoding="utf-8")


def odd_texts() -> list[str]:
    """Texts with halves of surrogate pairs, emoji, many marks, words of each length, long texts."""
    draw = random.Random(0)
    units = [chr(each) for each in range(0xD800, 0xE000)]
    letters = [*"abc '.,é中한\u0301\u20e3\u200d\ufe0f", "👍🏽", "👩\u200d👧", "𝔘", "🇫🇷"]
    halves = ["".join(draw.choices([*units, *letters * 100], k=12)) for _ in range(1500)]
    # FarmHash's rules change at 4, 8, 17, 33 and 65 bytes.
    words = [chr(0x61 + size % 26) * size + ending for size in range(200) for ending in ("é", "0")]
    long = ["How old are you? " * 5000, "x" * 100_000, "don't . " * 5000 + '"', ". " * 20_000]
    return [*halves, *words, *long]


@needs_node
@pytest.mark.process
def test_ids_are_those_of_the_graph(graph: Any, node: Node, page_folder: Path) -> None:
    texts = ["", " ", *fuzzed_texts(8100), *odd_texts()]
    assert len(texts) > 10_000
    check_ids(graph, node, page_folder, texts)


@needs_node
@pytest.mark.process
def test_ids_of_real_sentences(graph: Any, node: Node, page_folder: Path, data_dir: Path) -> None:
    check_ids(graph, node, page_folder, real_sentences(data_dir, 10_000))


@needs_node
@pytest.mark.process
@pytest.mark.end_to_end
@pytest.mark.parametrize("pattern", ["{}", "a{}'s", "aΣ{}a"])
def test_ids_of_every_code_point(graph: Any, node: Node, page_folder: Path, pattern: str) -> None:
    check_ids(graph, node, page_folder, every_code_point(pattern))


@needs_node
@pytest.mark.process
def test_vectors_are_those_of_the_int8_model(toy_use_dan: Toy, node: Node, tmp_path: Path) -> None:
    expected = SentenceEncoder(toy_use_dan.folders["int8"], backend="onnx").encode(TEXTS)
    for precision, folder in toy_use_dan.folders.items():  # float32 is rounded to the same codes
        to_web(folder, tmp_path / precision, precision="int8")
        found = node(tmp_path / precision, TEXTS, "vectors")
        np.testing.assert_allclose(found, expected, atol=1e-3)


@needs_node
@pytest.mark.process
def test_vectors_of_the_bundled_model(node: Node, tmp_path: Path) -> None:
    to_web("use_dan_en", tmp_path / "page", precision="int8")
    texts = [*TEXTS, *fuzzed_texts(100)]
    expected = use_st5.load("use_dan_en", backend="onnx").encode(texts)
    found = node(tmp_path / "page", texts, "vectors")
    np.testing.assert_allclose(found, expected, atol=1e-3)


@needs_node
@pytest.mark.process
def test_small_vectors_are_those_of_the_rounded_table(bundled_page: Path, node: Node) -> None:
    folder = bundled_folder("use_dan_en")
    engine = DANEngine(folder, dan_manifest(folder))
    original = engine.run(TEXTS)
    table = engine.rows.table
    # 65,000 words, 25,000 pairs of words and 200 buckets follow the padding and the empty text.
    ranks = np.concatenate([[0, 0], np.arange(65_000), np.arange(25_000), np.full(200, 65_000)])
    codes, steps = codes_by_frequency(table.codes * table.scales[:, None], ranks)
    engine.rows = TableRows(Table(codes, steps[:, 0]), 2048)
    found = node(bundled_page, TEXTS, "vectors")
    np.testing.assert_allclose(found, engine.run(TEXTS), atol=1e-3)
    assert np.einsum("td,td->t", found, original).min() > 0.97


def test_the_page_of_the_bundled_model_is_small(bundled_page: Path) -> None:
    assert sum(path.stat().st_size for path in bundled_page.iterdir()) < 16e6


class OtherCharset(SimpleHTTPRequestHandler):
    """A static server that, like many, declares all scripts as UTF-8; the model's are not."""

    extensions_map: ClassVar = {".js": "text/javascript; charset=utf-8", ".html": "text/html"}

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(params=["disk", "server"])
def address(request: pytest.FixtureRequest, bundled_page: Path) -> Iterator[str]:
    """The address of the page, in a file or on a server."""
    if request.param == "disk":
        yield (bundled_page / "index.html").as_uri()
        return
    handler = functools.partial(OtherCharset, directory=bundled_page)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


@needs_chromium
@pytest.mark.process
def test_a_browser_shows_the_similarities(address: str) -> None:
    dom, errors = opened(address)
    assert errors == []
    lines = re.search(r"<textarea[^>]*>(.*?)</textarea>", dom, re.DOTALL)[1].strip().split("\n")
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", dom, re.DOTALL)
    shown = [[float(each) for each in re.findall(r">(-?\d\.\d\d)</td>", row)] for row in rows]
    vectors = use_st5.load("use_dan_en", backend="onnx").encode(lines)
    np.testing.assert_allclose(shown, vectors @ vectors.T, atol=0.06)  # the small table
    found = re.findall(r'class="score">(-?[\d.]+)</span><span>(.*?)</span>', dom)
    assert [float(score) for score, _ in found] == sorted(
        (float(s) for s, _ in found), reverse=True
    )
    assert found[0][1] == "Will it snow tomorrow?"
    assert re.search(r'role="status">Encoded 8 sentences in \d+ ms', dom)


@needs_chromium
@pytest.mark.process
def test_a_page_that_lacks_a_file_says_so(bundled_page: Path, tmp_path: Path) -> None:
    shutil.copytree(bundled_page, tmp_path / "page")
    (tmp_path / "page" / "model-1.js").unlink()
    dom, errors = opened((tmp_path / "page" / "index.html").as_uri())
    assert "The model was not loaded: model-1.js is missing. Copy the whole folder." in dom
    assert errors


def opened(address: str, *more: str) -> tuple[str, list[str]]:
    """The page's content in Chromium, and the lines of its console."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *more]
    command = [CHROMIUM, *options, "--virtual-time-budget=60000", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_a_page_names_no_other_host(bundled_page: Path) -> None:
    for path in bundled_page.iterdir():
        if not path.name.startswith("model"):
            assert not re.search(r"(https?:)?//\w", re.sub(r"// ", "", path.read_text())), path.name


def test_what_is_no_page_is_not_replaced(toy_use_dan: Toy, tmp_path: Path) -> None:
    write = functools.partial(to_web, toy_use_dan.folders["int8"])
    write(tmp_path / "page")
    write(tmp_path / "page", precision="int8")
    assert '"int8"' in (tmp_path / "page" / "model.js").read_text()
    (tmp_path / "page" / "model-notes.js").write_text("years")
    (tmp_path / "page" / "linked").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "site").mkdir()
    for name in ("index.html", "model.js"):
        (tmp_path / "site" / name).write_text("mine")
    (tmp_path / "file").write_text("mine")
    found = {
        "page": r"linked, model-notes\.js",
        "site": r"index\.html, model\.js",
        "file": "a file",
    }
    for name, names in found.items():
        with pytest.raises(FileExistsError, match=f"holds more than.*: {names}"):
            write(tmp_path / name)
    assert (tmp_path / "page" / "model-notes.js").read_text() == "years"


def test_other_models_and_precisions_are_refused(
    toy_use_transformer: Toy, toy_use_dan: Toy, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="a USE-DAN.*use-st5 serve"):
        to_web(toy_use_transformer.folders["int8"], tmp_path / "page")
    folder = shutil.copytree(toy_use_dan.folders["int8"], tmp_path / "foreign")
    (folder / "use_st5.json").unlink()
    with pytest.raises(ValueError, match="runs no other model"):
        to_web(folder, tmp_path / "page")
    with pytest.raises(ValueError, match="'small' or 'int8', received 'float32'"):
        to_web(toy_use_dan.folders["int8"], tmp_path / "page", precision="float32")  # type: ignore[arg-type]
    assert not (tmp_path / "page").exists()
