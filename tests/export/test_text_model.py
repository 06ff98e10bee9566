"""The folders of `to_text_model`, and their readers without use_st5 and TensorFlow."""

from __future__ import annotations

import functools
import json
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.engines.fuzzed import every_code_point, fuzzed_texts
from tests.toy_encoders import USE_TRANSFORMER, Toy
from use_st5.encode.encoder import SentenceEncoder
from use_st5.encode.similarity import cosine
from use_st5.engines.int8 import sentences
from use_st5.export import text_model
from use_st5.export.reader import Encoder
from use_st5.export.text_model import check_text_model, text_model_manifest, to_text_model
from use_st5.hub.model_names import bundled_folder
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.token_tokenizer import PieceTokenizer
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer
from use_st5.trainable_encoder import TrainableEncoder


@pytest.fixture
def source(toy_use_dan: Any) -> Path:
    """An exported USE-DAN."""
    for module in ("tf2onnx", "onnxruntime"):
        pytest.importorskip(module, reason="the extra `onnx` is not installed")
    return toy_use_dan.folders["int8"]


@pytest.mark.parametrize("int8", [False, True])
def test_files_facts_and_copies(source: Path, tmp_path: Path, int8: bool) -> None:
    import onnx

    folder = tmp_path / "model"
    to_text_model(source, folder, runtime="onnx", length=24, int8=int8)
    expected = {
        *("use_st5_files.txt", "model.json", "network.onnx", "vocabulary.txt", "use_st5_tokenizer"),
        *("reader.py", "reader.mjs", "tokenizer.mjs"),
    }
    assert {each.name for each in folder.iterdir()} == expected
    facts = json.loads((folder / "model.json").read_text())
    manifest = json.loads((source / "use_st5.json").read_text())
    assert facts["model_hash"] == manifest["model_hash"]
    chosen = ("format", "name", "languages", "precision", "tokenizer", "dimension", "max_length")
    assert [facts[name] for name in chosen] == [1, "toy", ["en"], "int8", "ngrams", 16, None]
    assert (facts["runtime"], facts["length"], facts["prompt"]) == ("onnx", 24, "")
    kinds = {node.op_type for node in onnx.load(folder / "network.onnx").graph.node}
    assert ("MatMulInteger" in kinds) is int8
    check_imports(folder)


def check_imports(folder: Path) -> None:
    """No copied source imports this package."""
    for file in folder.rglob("*.py"):
        lines = file.read_text().splitlines()
        imported = [line for line in lines if line.lstrip().startswith(("import use", "from use"))]
        # This import is for writing the vocabulary, which no reader does.
        of_writing = ["        from use_st5.io.files import atomic_path"]
        allowed = of_writing if file.name == "ngram_vocabulary.py" else []
        assert [line for line in imported if "use_st5_tokenizer." not in line] == allowed


def test_an_older_folder_is_replaced_and_no_other(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    to_text_model(source, folder, runtime="onnx", length=24)
    for place, name in ((folder, "reader"), (folder / "use_st5_tokenizer", "word_ids")):
        py_compile.compile(str(place / f"{name}.py"))  # as its first use does
    to_text_model(source, folder, runtime="onnx")
    assert json.loads((folder / "model.json").read_text())["length"] is None
    for name in ("notes.txt", "__pycache__/keep.txt", "__pycache__/mine.cpython-311.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
        with pytest.raises(FileExistsError, match=f": {name.partition('/')[0]}"):
            to_text_model(source, folder, runtime="onnx")
        (folder / name).unlink()
    (folder / "use_st5_files.txt").unlink()
    with pytest.raises(FileExistsError, match=r": model\.json"):
        check_text_model(folder)


def test_other_vectors_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_model, "sentences", lambda: ["The cat sat.", "What is the mat?"])
    run = text_model.Encoder.encode
    monkeypatch.setattr(text_model.Encoder, "encode", lambda *given: run(*given)[::-1])
    with pytest.raises(ValueError, match="a cosine to the model's vectors is"):
        to_text_model(source, tmp_path / "model", runtime="onnx")
    assert not [*tmp_path.iterdir()]


def test_other_models_and_lengths_are_refused(
    toy_use_transformer: Any, toy_t5: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="only encoders with a tokenizer"):
        text_model_manifest(toy_t5.folder)
    with pytest.raises(ValueError, match="only encoders with a tokenizer"):
        text_model_manifest(tmp_path)
    folder = toy_use_transformer.folders["float32"]
    text_model_manifest(folder, 16)
    for length in (15, 17):
        with pytest.raises(ValueError, match=f"of 16 to 16, received {length}"):
            text_model_manifest(folder, length)


def test_a_static_embedding_is_written(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    static = StaticEmbedding(7, 8)
    static.build()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat"]
    TrainableEncoder(static, WordPieceTokenizer(words)).export(tmp_path / "static")
    to_text_model(tmp_path / "static", tmp_path / "static.onnx", runtime="onnx")
    assert [*(tmp_path / "static.onnx").iterdir()]


pytestmark = pytest.mark.process

NODE = shutil.which("node")
RUNTIMES = {"onnx": "onnxruntime", "litert": "ai_edge_litert.interpreter"}
ODD = [
    *(
        "",
        " ",
        "\t\n",
        "😀 the cat 👍🏽",
        "👩\u200d👧",
        "İ ẞ ﷺ “how old”",
        "a\u0301",
        "\ud83d a dog",
    ),
    *(b"the caf\xe9", b"\xff\xfe", b"how \xf0\x9f\x98 old", b"\xed\xa0\x80 cat", b"a\0cat"),
    *("the cat sat on the mat. " * 400, "x" * 5000, "Don't. 'tis \"so\" (how) cannot wanna 't"),
]
# Words that a USE Transformer cuts: at punctuation, into known pieces, and where no piece fits. The
# letters of some are newer than TensorFlow's tables.
UNKNOWN = [
    *("antidisestablishmentarianism-like 26,000", "qzthe unqzcat's", "q" * 40 + " zz#@! ##ing"),
    *("qzédouard qzà", "gastrointestinalxq neurofibromatosisxq neurofibromatosis"),
    *("1st 22nd ½ Ⅻ", "漢字 かな 한국어", "हिन्दी में ไทย", "Привет, мир! ΟΔΟΣ", "مرحبا شالوم שלום"),
    *("a\U0002ebf0b q\u1c89z", "un\u0301fu\u20e3nny 𝔘𝔫𝔦code", "<empty> ## [UNK]"),
    "pre-👍🏽fix👩\u200d👧es",
]
# Encodes the texts in a file (bytes as hexadecimal) with the folder alone, without our package.
DRIVER = """
import json, sys
for name in ("use_st5", "tensorflow", "keras", "msgspec", "filelock", "onnx", "tf2onnx"):
    sys.modules[name] = None
folder, given, answer = sys.argv[1:]
sys.path.insert(0, folder)
from reader import Encoder
texts = [bytes.fromhex(each["hex"]) if isinstance(each, dict) else each
         for each in json.load(open(given, encoding="utf-8"))]
import numpy as np
np.save(answer, Encoder().encode(texts))
"""
# Encodes with the module onnxruntime-node, or with stand-ins that return the ids.
JAVASCRIPT = """
const [folder, given, answer, runtime] = process.argv.slice(1);
const fs = require("fs"), url = require("url"), path = require("path");
const check = (data, shape) => {
  if (!(data instanceof Int32Array) || shape[0] !== 1 || shape[1] !== data.length)
    throw new Error(`${data.constructor.name} ${shape}`);
};
class OrtTensor {
  constructor(type, data, dims) { check(data, dims); Object.assign(this, { type, data }); }
}
const run = async ({ ids }) => ({ embeddings: { data: ids.type === "int32" && ids.data } });
class LiteRtTensor {
  constructor(data, shape) { check(data, shape); this.kept = data; }
  async data() { return this.kept.slice(); }
  delete() { this.kept = null; }
}
const modules = {
  onnx: { Tensor: OrtTensor, InferenceSession: { create: async () => ({ run }) } },
  litert: { Tensor: LiteRtTensor, loadAndCompile: async () => ({
    run: async (ids) => [new LiteRtTensor(ids.kept.slice(), [1, ids.kept.length])] }) },
};
const loaded = modules[runtime] ?? require(runtime);
const reader = url.pathToFileURL(path.join(folder, "reader.mjs"));
import(reader).then(async ({ loadEncoder }) => {
  const encoder = await loadEncoder(loaded);
  const vectors = await encoder.encode(JSON.parse(fs.readFileSync(given, "utf8")));
  fs.writeFileSync(answer, JSON.stringify(vectors.map((vector) => [...vector])));
});
"""


def texts_for(family: str) -> list[str | bytes]:
    fuzzed = fuzzed_texts(300)
    if family == "bert":  # Its graph has other tables of Unicode (tests/engines/test_token_ids.py).
        fuzzed = [text for text in fuzzed if max(text, default="a") < "\u3000"]
    return [*sentences()[::3], *ODD, *fuzzed]


def needs(runtime: str) -> None:
    """Skips the test if a runtime, or the converter to it, is not installed."""
    modules = ("tf2onnx", "onnxruntime") if runtime == "onnx" else (RUNTIMES[runtime],)
    for module in modules:
        pytest.importorskip(module, reason=f"the extra `{runtime}` is not installed")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes the folder of a model, once for all tests."""

    @functools.cache
    def write(source: Path, runtime: str, **how: Any) -> Path:
        needs(runtime)
        folder = tmp_path_factory.mktemp("exported") / "model"
        to_text_model(source, folder, runtime=runtime, **how)
        return folder

    return write


def run(command: list[Any], **options: Any) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_reader(folder: Path, texts: list[str | bytes], tmp_path: Path) -> np.ndarray:
    """The vectors of the reader in a fresh process."""
    given = [{"hex": text.hex()} if isinstance(text, bytes) else text for text in texts]
    (tmp_path / "given.json").write_text(json.dumps(given), encoding="utf-8")
    driver = [sys.executable, "-c", DRIVER]
    run([*driver, folder, tmp_path / "given.json", tmp_path / "answer.npy"], cwd=tmp_path)
    return np.load(tmp_path / "answer.npy")


def by_encode(folder: Path, texts: list[str | bytes]) -> np.ndarray:
    return SentenceEncoder(folder).encode(texts, on_truncation="ignore")


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ["use_dan", "use_transformer", "bert"])
def test_the_vectors_are_those_of_encode(
    exported: Any, name: str, runtime: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if name == "bert":
        pytest.importorskip("tokenizers", reason="the extra `onnx` is not installed")
    source = request.getfixturevalue(f"toy_{name}").folders["float32"]
    texts = texts_for(name)
    found = by_reader(exported(source, runtime), texts, tmp_path)
    np.testing.assert_allclose(found, by_encode(source, texts), atol=2e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_int8(exported: Any, toy_use_transformer: Any, runtime: str, tmp_path: Path) -> None:
    source = toy_use_transformer.folders["int8"]
    texts = texts_for("use_transformer")
    found = by_reader(exported(source, runtime, int8=True), texts, tmp_path)
    assert cosine(found, by_encode(source, texts)).min() > 0.99


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_fixed_length_cuts_and_pads(
    exported: Any, toy_use_dan: Any, runtime: str, tmp_path: Path
) -> None:
    source = toy_use_dan.folders["float32"]
    folder = exported(source, runtime, length=16)
    texts = ["the cat", "", "how old are you? " * 9]
    loaded = tf.saved_model.load(str(source))
    ids = loaded.preprocess(tf.constant(texts))
    assert ids.shape[1] > 16
    found = by_reader(folder, [*texts], tmp_path)
    np.testing.assert_allclose(found, loaded.encode_ids(ids[:, :16]), atol=2e-5)
    network = folder / ("network.onnx" if runtime == "onnx" else "network.tflite")
    assert input_shape(runtime, network) == [1, 16]


def input_shape(runtime: str, network: Path) -> list[int]:
    """The shape that a network declares for its ids."""
    if runtime == "onnx":
        import onnxruntime

        return onnxruntime.InferenceSession(network).get_inputs()[0].shape
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(str(network)).get_input_details()[0]["shape_signature"].tolist()


@pytest.fixture
def dan_folder(exported: Any, toy_use_dan: Any) -> Path:
    """A USE-DAN for ONNX Runtime."""
    return exported(toy_use_dan.folders["float32"], "onnx")


def test_in_this_process(dan_folder: Path) -> None:
    encoder = Encoder(dan_folder)
    assert encoder.encode([]).shape == (0, 16)
    many = [*map(str, sentences()), "the cat " * 3000]
    each = np.concatenate([encoder.encode([text]) for text in many[-30:]])
    np.testing.assert_allclose(encoder.encode(many)[-30:], each, atol=2e-6)
    with pytest.raises(TypeError, match="a list of texts"):
        encoder.encode("the cat")


def test_as_a_script(dan_folder: Path, toy_use_dan: Any, tmp_path: Path) -> None:
    printed = run([sys.executable, dan_folder / "reader.py", "the cat", "é"], cwd=tmp_path)
    found = np.array([json.loads(line) for line in printed.splitlines()])
    expected = by_encode(toy_use_dan.folders["float32"], ["the cat", "é"])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def by_node(folder: Path, texts: list[str], runtime: str, tmp_path: Path) -> list[list[float]]:
    given, answer = tmp_path / "texts.json", tmp_path / "vectors.json"
    given.write_text(json.dumps(texts), encoding="utf-8")
    run([NODE, "-e", JAVASCRIPT, folder, given, answer, runtime])
    return json.loads(answer.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def toy_pieces(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A USE Transformer with the vocabulary of the bundled one, which has pieces of words."""
    vocabulary = bundled_folder("use_transformer_en") / "assets" / "vocabulary.txt"
    tokenizer = PieceTokenizer(NGramVocabulary.load(vocabulary))
    config = USETransformerConfig(num_embeddings=tokenizer.vocabulary.size, **USE_TRANSFORMER)
    model = USETransformer(config)
    model.build()
    folder = tmp_path_factory.mktemp("pieces") / "float32"
    TrainableEncoder(model, tokenizer, name="toy").export(folder, precision="float32")
    return Toy(model, tokenizer, config.max_length, {"float32": folder})


def source_of(name: str, request: pytest.FixtureRequest) -> Path:
    """A bundled model, or a toy."""
    if name == "use_transformer_en":
        return bundled_folder(name)
    return request.getfixturevalue(f"toy_{name}").folders["float32"]


def strings_for(name: str) -> list[str]:
    return [text for text in [*texts_for(name), *UNKNOWN] if isinstance(text, str)]


@pytest.mark.skipif(NODE is None, reason="needs Node 18 or newer (Debian: nodejs)")
@pytest.mark.parametrize(
    ("name", "runtime", "length"),
    [
        *(("use_dan", "onnx", None), ("use_dan", "onnx", 16), ("use_dan", "litert", 16)),
        *(("use_transformer", "onnx", None), ("use_transformer", "litert", 16)),
        *(("pieces", "onnx", None), ("pieces", "litert", 16)),
    ],
)
def test_javascript_gives_the_ids_of_python(
    exported: Any,
    name: str,
    runtime: str,
    length: int | None,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    fixed = {} if length is None else {"length": length}
    folder = exported(source_of(name, request), runtime, **fixed)
    texts = [*strings_for(name), *every_code_point("qz{}xq")[::97]]
    rows = [[*row] for row in Encoder(folder).ids(texts)]
    padded = [row + [0] * ((length or 0) - len(row)) for row in rows]
    assert by_node(folder, texts, runtime, tmp_path) == padded


@pytest.mark.skipif(NODE is None, reason="needs Node 18 or newer (Debian: nodejs)")
@pytest.mark.parametrize(
    "name",
    [
        *("use_dan", "use_transformer", "pieces"),
        pytest.param("use_transformer_en", marks=pytest.mark.end_to_end),
    ],
)
def test_javascript_gives_the_vectors_of_python(
    exported: Any, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    module = subprocess.run([NODE, "-e", 'require("onnxruntime-node")'], capture_output=True)
    if module.returncode:
        pytest.skip("needs onnxruntime-node (npm), found by NODE_PATH")
    folder, texts = exported(source_of(name, request), "onnx"), strings_for(name)
    found = np.array(by_node(folder, texts, "onnxruntime-node", tmp_path))
    np.testing.assert_allclose(found, Encoder(folder).encode(texts), atol=1e-5)
    np.testing.assert_allclose(found, by_encode(source_of(name, request), [*texts]), atol=2e-5)
