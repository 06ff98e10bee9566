"""StaticEmbeddings: the mean by hand, long texts, and those of sentence-transformers."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import use_st5
from tests.fake_hub import contents, fake_hub
from tests.tokenizers.test_added_tokens import modernbert, write
from tests.tokenizers.test_framed_sentencepiece_tokenizer import whole
from tests.toy_encoders import Toy
from use_st5.convert.tokenizer_files import read_framed_model
from use_st5.encode.encoder import SentenceEncoder
from use_st5.engines import token_ids
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.tokenizers.long_texts import LONG_BYTES
from use_st5.tokenizers.sentencepiece_tokenizer import FramedSentencePieceTokenizer
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
needs_peers = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="the extra `peers` is not installed",
)

TABLE = np.array([[9, 9], [7, 7], [5, 5], [3, 0], [0, 4]], np.float32)
START, END, A, B = 1, 2, 3, 4
IDS = [[START, A, B, B, END], [START, A, END, 0, 0], [START, END, 0, 0, 0]]


@pytest.mark.parametrize("normalize", [False, True])
def test_special_tokens_and_padding_are_left_out(normalize: bool) -> None:
    model = StaticEmbedding(5, 2, normalize=normalize)
    model.build()
    model.embedding.embeddings.assign(TABLE)
    means = np.array([[1, 8 / 3], [3, 0], [0, 0]])
    lengths = np.array([[np.hypot(1, 8 / 3)], [3], [1]])
    expected = means / lengths if normalize else means
    np.testing.assert_allclose(model(keras.ops.array(IDS)), expected, atol=1e-6)
    # An empty text alone in its batch has two special ids and no token.
    np.testing.assert_array_equal(model(keras.ops.array([[START, END]])), [[0, 0]])


def test_a_long_text_is_read_to_its_end(
    toy_static_embedding: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "the cat " * (LONG_BYTES // 8) + "dog " * (LONG_BYTES // 4)
    encoder = use_st5.load(toy_static_embedding.folder)
    monkeypatch.setattr(token_ids, "_LONG", 1000)
    check_engines(encoder, [long, "a mat", ""])
    words = encoder.encode(["the", "cat", "dog", "a", "mat"])
    # "dog" is in it as often as "the" and "cat" together.
    expected = [words[:3].T @ [0.25, 0.25, 0.5], words[3:].mean(axis=0), np.zeros(8)]
    np.testing.assert_allclose(encoder.encode([long, "a mat", ""]), expected, atol=1e-5)


def test_texts_are_cut_as_ids_are(toy_static_embedding: Toy, tmp_path: Path) -> None:
    toy = toy_static_embedding
    encoder = TrainableEncoder(toy.model, toy.tokenizer, max_length=5)
    encoder.export(tmp_path / "model")
    cut = use_st5.load(tmp_path / "model")
    texts = ["the cat sat", "", "a dog on the mat", "the cat sat " + "dog " * LONG_BYTES]
    found = cut.encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(found, encoder.encode(texts), atol=1e-6)
    np.testing.assert_allclose(found[-1], found[0], atol=1e-6)
    assert cut.truncated(texts).tolist() == [2, 3]


@pytest.mark.parametrize("normalize", [True, False])
def test_dense_layers_behind_the_mean(tmp_path: Path, normalize: bool) -> None:
    """A USE-DAN over SentencePiece's pieces: vectors of strings, of ids and of the engines."""
    tokenizer = FramedSentencePieceTokenizer(read_framed_model(write(tmp_path, whole())))
    size = tokenizer.vocabulary.size
    model = StaticEmbedding(size, 8, normalize=normalize, hidden_dims=(8, 8, 12, 12))
    encoder = TrainableEncoder(model, tokenizer)
    layers = {each.path.split("/")[-2]: each.numpy() for each in model.network.weights}
    ids = tokenizer.pieces(["the cat sat."]).numpy()[0]
    x = model.embedding.embeddings.numpy()[ids].mean(axis=0)
    x = x + np.tanh(np.tanh(x @ layers["hidden_0"]) @ layers["hidden_1"])
    y = np.tanh(np.tanh(x @ layers["hidden_2"]) @ layers["hidden_3"]) + x @ layers["projection_1"]
    expected = encoder.encode(TEXTS)
    np.testing.assert_allclose(expected[0], y / np.linalg.norm(y) if normalize else y, atol=1e-5)
    assert encoder.dimension == 12
    for precision in ("float32", "int8"):
        encoder.export(tmp_path / precision, precision=precision)
        exported = use_st5.load(tmp_path / precision)
        atol = 1e-5 if precision == "float32" else 0.02
        np.testing.assert_allclose(exported.encode(TEXTS), expected, atol=atol)
        check_engines(exported, [*TEXTS, "the cat " * 20_000, "日本語 ☃ the"])
        again = TrainableEncoder.load(tmp_path / precision)
        np.testing.assert_allclose(again.encode(TEXTS), exported.encode(TEXTS), atol=1e-5)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "é", "今", "."]
TEXTS = ["the cat sat.", "", "  ", "A CAT sats", "the " * 60, "dogs", "é 今日", "Cats. "]


def bert(folder: Path, words: list[str] = WORDS) -> Any:
    """The tokenizer of a BERT."""
    path = folder / "words.txt"
    path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    transformers: Any = importlib.import_module("transformers")
    return transformers.BertTokenizerFast(str(path)).backend_tokenizer


def saved(folder: Path, tokenizer: Any, *, normalize: bool = False) -> Any:
    """A model with random weights and prompts, written to a folder."""
    importlib.import_module("torch").manual_seed(0)
    peers: Any = importlib.import_module("sentence_transformers")
    modules = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    chain = [modules.StaticEmbedding(tokenizer, embedding_dim=6)]
    chain += [modules.Normalize()] if normalize else []
    model = peers.SentenceTransformer(modules=chain, device="cpu", prompts={"query": "the cat "})
    model.save(str(folder))
    return model


def check(peer: Any, folder: Path, texts: list[str]) -> None:
    """Checks that the encoder in the folder and its SavedModels give the peer's vectors."""
    expected = peer.encode(texts)
    encoder = TrainableEncoder.load(folder)
    assert isinstance(encoder.model, StaticEmbedding)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    for precision, atol in (("float32", 1e-5), ("int8", 0.02 * np.abs(expected).max())):
        encoder.export(folder / precision, precision=precision)
        exported = use_st5.load(folder / precision)
        found = exported.encode(texts, on_truncation="ignore")
        np.testing.assert_allclose(found, expected, atol=atol)
        assert np.ptp(found, axis=0).max() > 0.1
        check_engines(exported, texts)


def check_engines(exported: use_st5.SentenceEncoder, texts: list[str]) -> None:
    """Checks that the engines without TensorFlow give the vectors of a SavedModel."""
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    if (exported.folder / "assets" / "byte_pair.json").is_file():
        with pytest.raises(ValueError, match="are not RoBERTa"):
            SentenceEncoder(exported.folder, backend="onnx")
        return
    expected = exported.encode(texts, on_truncation="ignore")
    for backend, atol in (("onnx", 1e-5), ("onnx-int8", 0.05)):
        engine = SentenceEncoder(exported.folder, backend=backend)
        found = engine.encode(texts, on_truncation="ignore")
        np.testing.assert_allclose(found, expected, atol=atol)
        np.testing.assert_allclose(
            [engine.encode(text, on_truncation="ignore") for text in texts], expected, atol=atol
        )
        assert engine.truncated(texts).tolist() == exported.truncated(texts).tolist()


@needs_peers
@pytest.mark.parametrize("normalize", [True])
def test_vectors_from_strings(tmp_path: Path, normalize: bool) -> None:
    peer = saved(tmp_path, bert(tmp_path), normalize=normalize)
    check(peer, tmp_path, TEXTS)
    exported = use_st5.load(tmp_path / "float32")
    # The mean of no rows: sentence-transformers gives zeros, too.
    for empty in ("", " \n"):
        np.testing.assert_array_equal(exported.encode(empty), np.zeros(6))
        np.testing.assert_array_equal(peer.encode(empty), np.zeros(6))
    found, expected = (each.encode_query(TEXTS) for each in (exported, peer))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert exported.max_length is None


@needs_peers
def test_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub", reason="the extra `hub-models` is not installed")
    peer = saved(tmp_path / "model", bert(tmp_path), normalize=True)
    with fake_hub(tmp_path, monkeypatch) as hub:
        hub.add("org/static", contents(tmp_path / "model"))
        found = use_st5.load("hf://org/static").encode(TEXTS)
    np.testing.assert_allclose(found, peer.encode(TEXTS), atol=1e-5)


@needs_peers
def test_texts_are_cut_where_the_tokenizer_does(tmp_path: Path) -> None:
    tokenizer = bert(tmp_path)
    tokenizer.enable_truncation(3)
    peer = saved(tmp_path, tokenizer)
    check(peer, tmp_path, [*TEXTS, "the cat sat " + "cat " * LONG_BYTES])
    assert use_st5.load(tmp_path / "float32").truncated(TEXTS).tolist() == [0, 3, 4]


@needs_peers
def test_padding_need_not_be_the_first_word(tmp_path: Path) -> None:
    words = [*WORDS[5:8], *WORDS[:5], *WORDS[8:]]
    check(saved(tmp_path, bert(tmp_path, words)), tmp_path, TEXTS)


@needs_peers
@pytest.mark.parametrize("content", [whole, modernbert])
def test_other_tokenizers(tmp_path: Path, content: Any) -> None:
    """Those of an XLM-RoBERTa and a ModernBERT; a long text is read in blocks."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(content()), encoding="utf-8")
    transformers: Any = importlib.import_module("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json")
    )
    peer = saved(tmp_path, tokenizer)
    check(peer, tmp_path, [*TEXTS, "The cat  sat, café ½", "a" * 150])
    texts = [TEXTS[0], "the cat " * (LONG_BYTES // 4)]
    found = use_st5.load(tmp_path / "float32").encode(texts)
    table = peer[0].embedding.weight.detach().numpy().astype(np.float64)
    rows = [each.ids for each in peer[0].tokenizer.encode_batch(texts, add_special_tokens=False)]
    np.testing.assert_allclose(found, [table[ids].mean(axis=0) for ids in rows], atol=1e-5)
    # sentence-transformers adds up this many rows in float32.
    np.testing.assert_allclose(found, peer.encode(texts), atol=1e-3)


@needs_peers
def test_names_of_model2vec_and_other_tensors(tmp_path: Path) -> None:
    peer = saved(tmp_path, bert(tmp_path))
    (path,) = tmp_path.rglob("model.safetensors")
    (table,) = load_file(path).values()
    save_file({"embeddings": table}, path)
    found = TrainableEncoder.load(tmp_path).encode(TEXTS)
    np.testing.assert_allclose(found, peer.encode(TEXTS), atol=1e-5)
    peers = pytest.importorskip("sentence_transformers")
    others = {"mapping": np.arange(12)[::-1] % 7, "weights": np.linspace(0, 2, 12)}
    for stored in ({}, {"mapping": others["mapping"]}, {"weights": others["weights"]}, others):
        save_file({"embeddings": table, **stored}, path)
        found = TrainableEncoder.load(tmp_path).encode(TEXTS)
        again = peers.SentenceTransformer(str(tmp_path), device="cpu")
        np.testing.assert_allclose(found, again.encode(TEXTS), atol=1e-5)
    save_file({"embeddings": table, "mapping": np.arange(12) + 1}, path)
    with pytest.raises(ValueError, match="mapping: expected rows of the 12"):
        TrainableEncoder.load(tmp_path)
    save_file({"embeddings": table, "weights": np.ones(11)}, path)
    with pytest.raises(ValueError, match="expected a weight for each"):
        TrainableEncoder.load(tmp_path)
    save_file({"embeddings": table, "more": table}, path)
    with pytest.raises(ValueError, match="expected one table embedding.weight or embeddings"):
        TrainableEncoder.load(tmp_path)
    save_file({"embedding.weight": table[:-1]}, path)
    with pytest.raises(ValueError, match="12 pieces, but the table has 11 rows"):
        TrainableEncoder.load(tmp_path)
    with pytest.raises(ValueError, match="sets the pooling"):
        TrainableEncoder.load(tmp_path, pooling="mean")


@pytest.mark.parametrize("framed", [True, False])
def test_a_folder_of_model2vec(tmp_path: Path, framed: bool) -> None:
    """Its mean leaves out unknown words; newer folders have modules, and no words around a text."""
    if not framed:
        kinds = {"": "StaticEmbedding", "1_Normalize": "Normalize"}
        modules = [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(kinds.items())
        ]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
    words = WORDS if framed else [WORDS[1], WORDS[0], *WORDS[5:]]
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    if framed:
        ends = [(word, vocabulary[word]) for word in ("[SEP]", "[CLS]")]
        tokenizer.post_processor = tokenizers.processors.BertProcessing(*ends)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    settings = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True}
    (tmp_path / "config.json").write_text(json.dumps(settings | {"hidden_dim": 6}))
    random = np.random.default_rng(0)
    table, factors = random.normal(size=(7, 6)).astype(np.float32), random.random(len(words))
    mapping = np.arange(len(words)) % 7
    tensors = {"embeddings": table, "mapping": mapping, "weights": factors}
    save_file(tensors, tmp_path / "model.safetensors")
    texts = [*TEXTS, "the dog sat", "dog"]
    rows = [each.ids for each in tokenizer.encode_batch(texts, add_special_tokens=False)]
    kept = [[id for id in row if id != vocabulary["[UNK]"]] for row in rows]
    means = [(table[mapping[row]] * factors[row, None]).sum(axis=0) for row in kept]
    expected = np.array([mean / (np.linalg.norm(mean) or 1) for mean in means])
    encoder = TrainableEncoder.load(tmp_path)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    encoder.export(tmp_path / "exported")
    np.testing.assert_allclose(use_st5.load(tmp_path).encode(texts), expected, atol=1e-5)
    again = TrainableEncoder.load(tmp_path / "exported")
    np.testing.assert_allclose(again.encode(texts), expected, atol=1e-5)
    if importlib.util.find_spec("model2vec") is not None:
        peer = importlib.import_module("model2vec").StaticModel.from_pretrained(str(tmp_path))
        np.testing.assert_allclose(peer.encode(texts), expected, atol=1e-5)
