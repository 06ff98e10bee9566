"""The keywords and names of sentence-transformers on `SentenceEncoder`."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.corpora_folder import WORDS
from tests.tiny_bert import VOCABULARY, write_sentence_bert
from use_st5 import TrainableEncoder
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.encode.options import EncodeOptions, SentenceTransformersNames
from use_st5.search import VectorIndex
from use_st5.training.model_loading import copied


class Lengths(SentenceTransformersNames):
    """The vector of a text holds the text's length twice."""

    name, identity, dimension, max_length = "lengths", "0123", 2, 7

    def encode(self, sentences: list[str], **_options: Any) -> np.ndarray:
        return np.array([[len(text)] * 2 for text in sentences], np.float32)


def test_what_changes_nothing_is_accepted() -> None:
    nothing = EncodeOptions.from_keywords({})
    assert nothing == EncodeOptions()
    vectors = np.array([[3.0, 4.0]], np.float32)
    assert nothing.finish(vectors) is vectors
    without = {"show_progress_bar": None, "convert_to_numpy": True, "convert_to_tensor": False}
    without |= {"device": "cpu", "prompt": "", "output_value": "sentence_embedding"}
    without |= dict.fromkeys(("prompt_name", "truncate_dim", "pool", "chunk_size"))
    assert EncodeOptions.from_keywords({**without, "precision": "float32"}) == nothing


@pytest.mark.parametrize(
    ("keyword", "value", "error", "message"),
    [
        ("convert_to_numpy", False, ValueError, "torch.from_numpy"),
        ("convert_to_tensor", True, ValueError, "tf.constant"),
        ("device", "cuda", ValueError, "CUDA_VISIBLE_DEVICES"),
        ("output_value", "token_embeddings", ValueError, "returns only sentence vectors"),
        ("pool", {}, ValueError, "workers"),
        ("chunk_size", 10, ValueError, "batch_size"),
        ("prompt", 3, TypeError, "Expected strings, received int"),
        ("batchsize", 3, TypeError, "unexpected keyword argument 'batchsize'"),
        ("truncate_dim", 0, ValueError, "truncate_dim of at least 1"),
        ("precision", "int4", ValueError, "Unknown precision: 'int4'.*\"ubinary\""),
        ("prompt_name", "query", ValueError, r"model's prompts, \[\], received 'query'"),
    ],
)
def test_what_is_not_done_is_refused_with_what_to_write(
    keyword: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        EncodeOptions.from_keywords({keyword: value})


def test_which_prompt_is_taken() -> None:
    prompts = {"query": "q: ", "passage": "p: "}
    for keywords, default, expected in (
        ({}, None, ""),
        ({}, "passage", "p: "),
        ({"prompt_name": "query"}, "passage", "q: "),
        ({"prompt": ""}, "passage", ""),
        ({"prompt": "x: ", "prompt_name": "query"}, None, "x: "),
    ):
        assert EncodeOptions.from_keywords(keywords, prompts, default).prompt == expected


def test_what_has_an_effect() -> None:
    options = EncodeOptions("q: ", normalize=True)
    assert options.add_prompt(["a", ""]) == ["q: a", "q: "]
    unit = options.finish(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0.0, 0.0]], atol=1e-7)
    cut_first = EncodeOptions(truncate_dim=2, normalize=True)
    np.testing.assert_allclose(cut_first.finish(np.array([[3.0, 4.0, 12.0]])), [[0.6, 0.8]])
    assert (cut_first.width(3), cut_first.width(1)) == (2, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of sentence-transformers with prompts."""
    folder = write_sentence_bert(tmp_path_factory.mktemp("models") / "tiny")
    prompts = {"query": "a person: ", "passage": "music: ", "other": "one "}
    settings = {"prompts": prompts, "default_prompt_name": "other"}
    for name, value in {
        "config_sentence_transformers.json": settings,
        "sentence_bert_config.json": {"max_seq_length": 32},
    }.items():
        (folder / name).write_text(json.dumps(value))
    return folder


@pytest.mark.parametrize("precision", ["float32", "int8", "uint8", "binary", "ubinary"])
def test_it_is_sentence_transformers_line_for_line(folder: Path, precision: str) -> None:
    """Compares prompts (by name, default, text), queries, documents, cut or unit vectors, codes."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    peers = pytest.importorskip(
        "sentence_transformers", reason="the extra `peers` is not installed"
    )
    peer = peers.SentenceTransformer(str(folder), device="cpu")
    TrainableEncoder.load(folder).export(folder.with_name("exported"))
    ours = use_st5.load(folder.with_name("exported"))
    assert dict(ours.prompts) == peer.prompts
    texts = [f"a {word} is a kind of {other}" for word in VOCABULARY[5:20] for other in WORDS[:8]]
    asked: list[dict[str, Any]] = [
        {},
        {"prompt": ""},
        {"prompt_name": "passage"},
        {"prompt": "another ", "normalize_embeddings": True},
        {"truncate_dim": 5},
        {"truncate_dim": 5, "normalize_embeddings": True},
    ]
    for method in ("encode", "encode_query", "encode_document"):
        for keywords in asked:
            expected = getattr(peer, method)(texts, precision=precision, **keywords)
            found = getattr(ours, method)(texts, precision=precision, **keywords)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            if precision == "float32":
                np.testing.assert_allclose(found, expected, atol=1e-5)
            else:  # A number near a rounding boundary may round to either side.
                close = np.abs(found.astype(int) - expected) <= 1
                assert (found == expected).mean() > 0.99
                assert close.all() or "binary" in precision


def test_a_model_for_dot_products_ranks_by_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    folder = write_sentence_bert(tmp_path / "tiny")
    settings = folder / "config_sentence_transformers.json"
    settings.write_text('{"similarity_fn_name": "dot"}')
    trainable = copied(TrainableEncoder.load(folder))
    trainable.export(tmp_path / "model")
    use_st5.load(tmp_path / "model").save(tmp_path / "saved")
    encoder = use_st5.load(tmp_path / "saved")
    assert encoder.similarity_fn_name == TrainableEncoder.load(encoder.folder).similarity_fn_name
    assert encoder.similarity_fn_name == "dot"  # mteb's wrapper ranks by this name
    texts = [f"a {word} is a kind of {other}" for word in VOCABULARY[5:12] for other in WORDS[:6]]
    vectors = encoder.encode(texts)
    dots = vectors @ vectors.T
    for similarity in (encoder.similarity, trainable.similarity):
        np.testing.assert_allclose(similarity(texts), dots, rtol=1e-4, atol=1e-5)
    assert (np.argsort(-encoder.similarity(texts, metric="cosine")) != np.argsort(-dots)).any()
    by_cosine = VectorIndex.build(tmp_path / "index", vectors, encoder=encoder, metric="cosine")
    np.testing.assert_allclose(by_cosine.search(encoder, texts, k=1)[0], 1, atol=1e-6)
    VectorIndex.build(tmp_path / "index", vectors, encoder=encoder, texts=texts)
    index = VectorIndex(tmp_path / "index")
    index.verify()
    scores, rows = index.search(encoder, texts, k=5)
    np.testing.assert_allclose(scores, -np.sort(-dots)[:, :5], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(dots, rows, axis=1), scores, rtol=1e-5)


def test_a_model_for_another_similarity_is_told(tmp_path: Path) -> None:
    folder = write_sentence_bert(tmp_path / "tiny")
    settings = folder / "config_sentence_transformers.json"
    settings.write_text('{"similarity_fn_name": "euclidean"}')
    with pytest.warns(UserWarning, match="'euclidean' is not supported.* cosine"):
        assert open_checkpoint(folder).similarity_fn_name == "cosine"


def test_a_trainable_encoder_takes_the_same_keywords(folder: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    trainable = TrainableEncoder.load(folder)
    trainable.export(folder.with_name("same"))
    encoder = use_st5.load(folder.with_name("same"))
    texts = ["one dog", " ", "another cat is a kind of music " * 20]
    with pytest.warns(UserWarning, match="1 of 3 texts is longer than 32 tokens"):
        trainable.encode(texts, on_truncation="warn")
    for keywords in (
        {"prompt": ""},
        {"prompt_name": "passage", "normalize_embeddings": True, "on_empty": "zero"},
        {"prompt": "another ", "truncate_dim": 5, "precision": "int8", "show_progress": False},
    ):
        expected = encoder.encode(texts, on_truncation="ignore", **keywords)
        found = trainable.encode(texts, **keywords)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1 if "precision" in keywords else 1e-5)
    np.testing.assert_allclose(
        trainable.similarity(texts[0], texts, metric="angular"),
        encoder.similarity(
            encoder.encode(texts[0], prompt=""), trainable.encode(texts), metric="angular"
        ),
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="1 empty"):
        trainable.encode(texts, on_empty="raise")
    with pytest.raises(ValueError, match="workers: expected 1"):
        trainable.encode(texts, workers=2)
    with pytest.raises(TypeError, match="'nonsense'"):
        trainable.encode(texts, nonsense=True)


@pytest.mark.parametrize("backend", ["tensorflow", "onnx"])
def test_a_shorter_limit(folder: Path, tmp_path: Path, backend: Any) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    if backend == "onnx":
        pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    trainable = TrainableEncoder.load(folder)
    trainable.export(tmp_path / "model")
    texts = ["one dog", "another cat is a kind of music " * 20]
    encoder = use_st5.load(tmp_path / "model", backend=backend)
    whole, identity = encoder.encode(texts, prompt="", on_truncation="ignore"), encoder.identity
    trainable.max_seq_length = encoder.max_seq_length = 9
    for one in (encoder, copy.copy(encoder)):
        found = one.encode(texts, prompt="", on_truncation="ignore")
        np.testing.assert_allclose(found, trainable.encode(texts), atol=1e-5)
        assert (one.max_length, one.truncated(texts).tolist()) == (9, [1])
    assert np.abs(found - whole)[1].max() > 1e-3
    end = encoder.encode(texts, prompt="one ", on_truncation="keep_end")
    last = "cat is a kind of music"  # Six words have room beside the prompt.
    short = encoder.encode([texts[0], last], prompt="one ", on_truncation="error")
    for one in (trainable.encode(texts, prompt="one ", on_truncation="keep_end"), end):
        np.testing.assert_allclose(one, short, atol=1e-5)
    assert encoder.identity != identity
    again = use_st5.load(tmp_path / "model", backend=backend)
    assert (again.max_length, again.identity) == (32, identity)
    assert encoder.tokenizer.token_counts(texts).numpy().tolist()[0] == 4
    for limit in (33, 0):
        with pytest.raises(ValueError, match="max_length: expected 1 to 32"):
            encoder.max_seq_length = limit
    with pytest.raises(ValueError, match="expected 1 to 128 tokens"):
        trainable.max_seq_length = 129


def test_signatures_of_queries_and_documents(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    encoder = TrainableEncoder.load(folder)
    assert (encoder.prompts["query"], encoder.default_prompt_name) == ("a person: ", "other")
    encoder.prompts["document"] = "music: "
    encoder.export(tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    texts = tf.constant(["one dog", "", "another cat"])
    for name in ("query", "document"):
        found = loaded.signatures[name](text=texts)["embeddings"]
        prompted = [encoder.prompts[name] + each.decode() for each in texts.numpy()]
        np.testing.assert_allclose(found, encoder.encode(prompted), atol=1e-5)
    again = TrainableEncoder.load(tmp_path / "model")
    assert (again.prompts, again.default_prompt_name) == (encoder.prompts, "other")
    use_st5.load(tmp_path / "model").save(tmp_path / "saved")
    saved = use_st5.load(tmp_path / "saved")
    assert saved.prompts == encoder.prompts
    assert {"query", "document"} <= {*saved.model.signatures}


def test_names() -> None:
    encoder = Lengths()
    for ask in (encoder, encoder.encode_query, encoder.encode_document):
        assert ask(["abc"], batch_size=2).tolist() == [[3.0, 3.0]]
    assert encoder.get_embedding_dimension() == encoder.get_sentence_embedding_dimension() == 2
    assert (encoder.max_seq_length, encoder.similarity_fn_name) == (7, "cosine")
    assert encoder.model_card_data.model_name == "use_st5/lengths"
