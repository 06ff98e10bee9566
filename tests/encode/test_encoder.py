"""`load` and `SentenceEncoder`."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import resource
import shutil
import sys
import time
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from use_st5.encode.encoder import SentenceEncoder, load
from use_st5.models.use_dan.model import USEDAN, USEDANConfig
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.trainable_encoder import TrainableEncoder

TEXTS = ["How old are you?", "", "the cat", "  \n", "what is the age of the cat", "\U0001f600"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ("how", "old", "are", "you", "the", "cat", "what", "is", "age", "of")
    vocabulary = NGramVocabulary(words, ("the cat",), unigram_buckets=5)
    model = USEDAN(USEDANConfig(vocabulary.size, embedding_dim=6, hidden_dims=(8, 10)))
    model.build()
    folder = tmp_path_factory.mktemp("models") / "toy"
    TrainableEncoder(model, NGramTokenizer(vocabulary), name="toy", card="# Toy\n").export(
        folder, precision="int8"
    )
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(folder)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A SavedModel of another origin; its graph does not say the dimension of its vectors."""
    root = tf.train.Checkpoint()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def call(text: tf.Tensor) -> tf.Tensor:
        lengths = tf.cast(tf.strings.length(text), tf.float32)
        return tf.ensure_shape(tf.tile(lengths[:, None], [1, tf.size("abc") + 2]), [None, None])

    root.__call__ = call
    tf.saved_model.save(root, str(tmp_path / "foreign"))
    return tmp_path / "foreign"


def test_encode_gives_the_graphs_vectors_in_the_given_order(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 10), np.float32)
    np.testing.assert_allclose(vectors, encoder.model(TEXTS), atol=1e-6)
    for batch_size in (1, 2, 5):
        np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=batch_size), vectors, atol=1e-6)
    backwards = encoder.encode(TEXTS[::-1], batch_size=2)
    np.testing.assert_allclose(backwards[::-1], vectors, atol=1e-6)


@pytest.mark.parametrize(
    "one", ["the cat", b"the cat", tf.constant("the cat"), np.array("the cat"), np.str_("the cat")]
)
def test_a_scalar_is_one_string(encoder: SentenceEncoder, one: Any) -> None:
    vector = encoder.encode(one)
    assert vector.shape == (10,)
    np.testing.assert_allclose(vector, encoder.encode(TEXTS)[2], atol=1e-6)


def test_other_shapes(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 10)
    assert encoder.encode([]).dtype == np.float32
    assert encoder.encode(tf.constant(["the cat"])).shape == (1, 10)
    with pytest.raises(TypeError, match="received int"):
        encoder.encode(tf.constant(5))
    with pytest.raises(TypeError, match=r"one axis of strings, received EagerTensor \[1, 1\]"):
        encoder.encode(tf.constant([["the cat"]]))


def test_batch_sizes_and_workers(encoder: SentenceEncoder) -> None:
    for wrong in (2.5, "32", None):
        with pytest.raises(TypeError, match="interpreted as an integer"):
            encoder.encode(TEXTS, batch_size=wrong)
    with pytest.raises(ValueError, match="workers must be at least 1"):
        encoder.encode(TEXTS, workers=0)
    vectors = encoder.encode(TEXTS, batch_size=np.int64(2))
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=1e-6)


def test_keywords_of_sentence_transformers(
    encoder: SentenceEncoder, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"show_progress_bar": False, "convert_to_numpy": True, "device": "cpu"}
    vectors = encoder.encode(TEXTS, **options, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert vectors.dtype == np.float32
    prompted = encoder.encode(TEXTS, prompt="the ", on_empty="zero")
    assert not prompted[[1, 3]].any()  # a text is empty if it was before the prompt
    np.testing.assert_allclose(prompted[2], encoder.encode("the " + TEXTS[2]), atol=1e-6)
    assert encoder("the cat", prompt="the ").shape == (10,)
    capfd.readouterr()
    encoder.encode(TEXTS, show_progress_bar=True)
    assert "6/6" in capfd.readouterr().err


def test_bytes_and_lone_surrogates(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode([b"the cat", "the cat", b"the \xff cat", "the \ud800 cat"])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    np.testing.assert_allclose(vectors[2], vectors[3], atol=1e-6)
    assert encoder.encode(b"the cat").shape == (10,)


def test_empty_texts(encoder: SentenceEncoder) -> None:
    encoded = encoder.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(encoded, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(encoded[1], encoded[3])
    zero = encoder.encode(TEXTS, on_empty="zero")
    assert not zero[[1, 3]].any()
    np.testing.assert_allclose(zero[[0, 2, 4, 5]], encoded[[0, 2, 4, 5]], atol=1e-6)
    with pytest.raises(ValueError, match="found 2 empty texts, the first at index 1"):
        encoder.encode(TEXTS, on_empty="raise")
    with pytest.raises(ValueError, match="Unknown on_empty: 'drop'"):
        encoder.encode(TEXTS, on_empty="drop")


def test_errors_come_before_any_work(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_texts: list[str]) -> None:
        raise AssertionError("worked before checking")

    monkeypatch.setattr(encoder, "_run", run)
    with pytest.raises(TypeError, match="received NoneType at index 999"):
        encoder.encode(["a"] * 999 + [None])
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        encoder.encode(["a"], batch_size=0)


def test_a_hundred_thousand_sentences_in_bounded_memory(encoder: SentenceEncoder) -> None:
    random = np.random.default_rng(0)
    words = np.array(["how", "old", "are", "you", "the", "cat", "zzz", "?"])
    picked = words[random.integers(0, len(words), 600_000)]
    ends = np.sort(random.integers(0, len(picked), 99_999))
    texts = [" ".join(part) for part in np.split(picked, ends)]
    encoder.encode(texts[:5000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    vectors = encoder.encode(texts)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert vectors.shape == (100_000, 10)
    some = random.integers(0, 100_000, 50)
    np.testing.assert_allclose(vectors[some], encoder.model([texts[i] for i in some]), atol=1e-5)
    kilobytes = 1 if sys.platform != "darwin" else 1024
    assert grown < 150_000 * kilobytes


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_no_trace_and_no_memory_per_call(encoder: SentenceEncoder) -> None:
    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    random = np.random.default_rng(1)
    traces, early = encoder.model.__call__.experimental_get_tracing_count(), 0
    for turn in range(800):
        count = int(random.integers(1, 40))
        encoder.encode(["the cat " * int(n) for n in random.integers(0, 30, count)])
        early = early if turn != 200 else resident()
    assert encoder.model.__call__.experimental_get_tracing_count() == traces
    assert resident() - early < 20e6


def test_progress(encoder: SentenceEncoder, capfd: pytest.CaptureFixture[str]) -> None:
    encoder.encode(["a"] * 30_000)
    assert not capfd.readouterr().err  # no terminal here
    encoder.encode(["a"] * 10, show_progress=True)
    shown = capfd.readouterr()
    assert "10/10" in shown.err
    assert not shown.out


def test_similarity(encoder: SentenceEncoder) -> None:
    a, b = TEXTS[:3], TEXTS[1:]
    u, v = encoder.encode(a).astype(np.float64), encoder.encode(b).astype(np.float64)
    np.testing.assert_allclose(encoder.similarity(a, b), u @ v.T, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity(u, v, metric="dot"), u @ v.T, atol=1e-6)
    expected = 1 - np.arccos(np.clip(u @ v.T, -1, 1)) / np.pi
    np.testing.assert_allclose(encoder.similarity(a, b, metric="angular"), expected, atol=5e-4)
    assert encoder.similarity("the cat", TEXTS).shape == (1, len(TEXTS))
    np.testing.assert_allclose(np.diag(encoder.similarity(TEXTS)), 1.0, atol=1e-6)
    assert encoder.similarity([], TEXTS).shape == (0, len(TEXTS))
    with pytest.raises(ValueError, match="Unknown metric"):
        encoder.similarity(a, b, metric="euclidean")
    with pytest.raises(ValueError, match=r"expected vectors \[n, 10\]"):
        encoder.similarity(np.zeros((2, 9)))


def test_similarity_pairwise(encoder: SentenceEncoder) -> None:
    a, b = TEXTS[:3], TEXTS[1:4]
    for metric in ("cosine", "angular", "dot"):
        matrix = encoder.similarity(a, b, metric=metric)
        pairwise = encoder.similarity_pairwise(a, encoder.encode(b), metric=metric)
        assert (pairwise.dtype, pairwise.shape) == (np.float32, (3,))
        np.testing.assert_allclose(pairwise, np.diag(matrix), atol=5e-4)
    assert encoder.similarity_pairwise("the cat", "the cat").tolist() == [1.0]
    assert encoder.similarity_pairwise([], []).shape == (0,)
    with pytest.raises(ValueError, match="as many a as b, received 3 and 2"):
        encoder.similarity_pairwise(a, b[:2])


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_similarity_of_vectors_of_any_real_type(encoder: SentenceEncoder, dtype: Any) -> None:
    vectors = np.array([[3] + [0] * 9, [4] + [0] * 8 + [4]], dtype)
    for given in (vectors, tf.constant(vectors)):
        similarity = encoder.similarity(vectors[0], given)
        np.testing.assert_allclose(similarity, [[1.0, 0.5**0.5]], atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_similarity_refuses_what_has_no_order(encoder: SentenceEncoder, value: float) -> None:
    vectors = np.ones((4, 10))
    vectors[[2, 3], 5] = value
    with pytest.raises(ValueError, match="b: not finite in 2 rows, first 2"):
        encoder.similarity("the cat", vectors)
    with pytest.raises(TypeError, match="a: expected sentences or vectors"):
        encoder.similarity(np.zeros((2, 10), complex))


def test_similarity_takes_objects_for_sentences(encoder: SentenceEncoder) -> None:
    texts = np.array(["the cat", "how old"], object)
    np.testing.assert_allclose(np.diag(encoder.similarity(texts)), 1.0, atol=1e-6)
    with pytest.raises(TypeError, match=r"one axis of strings, received ndarray \[2, 10\]"):
        encoder.similarity(np.ones((2, 10)).astype(object))


def test_save_writes_the_model_as_it_is_now(folder: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder(folder)
    encoder.save(tmp_path / "copy")
    copy = SentenceEncoder(tmp_path / "copy")
    np.testing.assert_allclose(copy.encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)
    for each in (copy, encoder):
        assert (each.card, each.name, each.dimension) == ("# Toy\n", "toy", 10)
        assert each.max_length is None
    assert copy.manifest.parameters == encoder.manifest.parameters
    before = encoder.encode(TEXTS)
    scales = encoder.model.trainable_variables[0]
    scales.assign(scales * tf.range(1.0, scales.shape[0] + 1.0))
    encoder.save(tmp_path / "copy")
    tuned = SentenceEncoder(tmp_path / "copy").encode(TEXTS)
    np.testing.assert_allclose(tuned, encoder.encode(TEXTS), atol=1e-6)
    assert np.abs(tuned - before).max() > 1e-3


def test_save_replaces_a_model_and_nothing_else(encoder: SentenceEncoder, tmp_path: Path) -> None:
    documents = tmp_path / "mydocs"
    documents.mkdir()
    encoder.save(documents)  # into an empty folder
    encoder.save(documents)  # over a model
    (documents / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match=r"Found thesis.txt\. Move this away"):
        encoder.save(documents)
    (documents / "saved_model.pb").unlink()
    with pytest.raises(FileExistsError, match=r"Found .*use_st5.json"):
        encoder.save(documents)
    assert (documents / "thesis.txt").read_text() == "years"


def test_load_keeps_one_object_for_each_model(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    first = load(copy)
    assert load(str(copy)) is first
    assert use_st5.load(tmp_path / "." / "copy") is first
    time.sleep(0.01)
    first.save(copy)
    assert load(copy) is not first


def test_memory_holds_what_is_in_use_and_the_last_models(folder: Path, tmp_path: Path) -> None:
    copies = [shutil.copytree(folder, tmp_path / str(number)) for number in range(6)]
    held = load(copies[0])
    loaded = [weakref.ref(load(copy)) for copy in copies]
    gc.collect()
    assert [found() is not None for found in loaded] == [True, False, True, True, True, True]
    assert load(copies[0]) is held


def test_a_bundled_name(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, tmp_path / "toy_en")
    monkeypatch.setattr("use_st5.hub.model_names._root", lambda: tmp_path)
    assert load("toy_en").encode("the cat").shape == (10,)
    with pytest.raises(FileNotFoundError, match="Bundled models: .*toy_en"):
        load("toy_em")


def test_pickles_and_copies_name_the_folder(folder: Path, tmp_path: Path) -> None:
    path = shutil.copytree(folder, tmp_path / "copy")
    encoder = load(path)
    pickled = pickle.dumps(encoder)
    assert len(pickled) < 500  # no weights
    assert pickle.loads(pickled) is copy.deepcopy(encoder) is copy.copy(encoder) is encoder
    own = SentenceEncoder(path)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(own)).encode(TEXTS), own.encode(TEXTS))
    moved = path.rename(tmp_path / "moved")
    with pytest.raises(FileNotFoundError, match="copy"):
        pickle.loads(pickled).encode("the cat")
    moved.rename(path)
    weights = encoder.model.trainable_variables[0]
    weights.assign(weights * tf.range(1.0, weights.shape[0] + 1.0))
    encoder.save(path)
    with pytest.raises(ValueError, match="the model was replaced"):
        pickle.loads(pickled).encode("the cat")


def test_a_pickle_in_a_fork_raises_when_it_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while it is unpickled, where multiprocessing.Pool would wait without end."""
    pickled = pickle.dumps(load(folder).encode)
    monkeypatch.setattr("use_st5.export.loading._started_in", os.getppid())
    encoder = pickle.loads(pickled).__self__
    assert isinstance(encoder, SentenceEncoder)
    with pytest.raises(RuntimeError, match='"spawn"'):
        encoder.encode("the cat")


def test_a_bundled_encoder_is_pickled_by_its_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there"):
        shutil.copytree(folder, tmp_path / place / "toy_en")
    monkeypatch.setattr("use_st5.hub.model_names._root", lambda: tmp_path / "here")
    pickled = pickle.dumps(load("toy_en"))
    monkeypatch.setattr("use_st5.hub.model_names._root", lambda: tmp_path / "there")
    assert pickle.loads(pickled).folder == tmp_path / "there" / "toy_en"


@pytest.mark.parametrize("text", [["the cat"], tf.constant(["the cat"])])
def test_inside_of_a_graph(folder: Path, text: Any) -> None:
    for encode in (load(folder).encode, TrainableEncoder.load(folder).encode):
        with pytest.raises(RuntimeError, match="NumPy array.*SavedModelLayer"):
            tf.function(encode)(text)


def test_another_language_is_told_once(folder: Path, tmp_path: Path) -> None:
    german = ["Wie spät ist es? Ich weiß es leider nicht."] * 60
    trainable = TrainableEncoder.load(folder)
    for languages in (["en"], ["en", "de"]):
        trainable.metadata = {"languages": languages}
        trainable.export(tmp_path / "model")
        encoder = SentenceEncoder(tmp_path / "model")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            encoder.encode(["Where is the key that I gave to you?"] * 60)
            encoder.encode(german[:40])
            encoder.encode(german)
            encoder.encode(german)
        messages = [str(each.message) for each in told]
        assert len(messages) == (languages == ["en"])
        assert all("not English, but toy knows only English" in each for each in messages)
        assert all(each.filename == __file__ for each in told)


def test_a_model_without_a_limit_refuses_no_length(encoder: SentenceEncoder) -> None:
    long = "the cat " * 2000
    np.testing.assert_array_equal(encoder.encode(long, on_truncation="error"), encoder.encode(long))
    assert not len(encoder.truncated(long))


def test_somebody_elses_model(foreign: Path, tmp_path: Path) -> None:
    encoder = load(foreign)
    assert (encoder.name, encoder.dimension, encoder.max_length) == ("foreign", 3, None)
    assert (encoder.manifest, encoder.card) == (None, "")
    assert encoder.encode(["ab", "abcd"]).tolist() == [[2.0] * 3, [4.0] * 3]
    with pytest.raises(ValueError, match="cannot count its tokens"):
        encoder.encode("ab", on_truncation="error")
    encoder.save(tmp_path / "copy")
    assert load(tmp_path / "copy").encode("abc").tolist() == [3.0] * 3


def test_damaged_folders(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "assets" / "vocabulary.txt").write_text("cut")
    with pytest.raises(ValueError, match=r"bytes in .*vocabulary.txt, found 3 bytes"):
        load(copy)
    with pytest.raises(FileNotFoundError, match="found .*copy"):
        load(tmp_path)
