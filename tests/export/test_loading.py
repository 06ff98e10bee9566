"""Loading SavedModels, those of other origins too; not in a forked process."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from tests.toy_encoders import Toy
from use_st5.export import loading as loading
from use_st5.export.loading import (
    check_finite_weights,
    load_saved_model,
    saved_model_graph,
    text_function,
)

TEXT = tf.TensorSpec([None], tf.string, name="text")


def save(folder: Path, call: Any) -> Path:
    """Writes a SavedModel of another origin, which computes `call` when it is called."""
    root = tf.train.Checkpoint()
    root.__call__ = tf.function(call)
    root.__call__.get_concrete_function(TEXT)
    tf.saved_model.save(root, str(folder))
    return folder


def lengths(text: tf.Tensor) -> tf.Tensor:
    length = tf.cast(tf.strings.length(tf.strings.lower(text)), tf.float32)
    return tf.stack([length, -length], axis=1)


def test_a_call_without_training(tmp_path: Path) -> None:
    loaded = load_saved_model(save(tmp_path / "model", lengths))
    for training in (False, True):
        function = text_function(loaded, training=training)
        assert function(tf.constant(["abc"])).numpy().tolist() == [[3.0, -3.0]]


def test_a_signature_where_the_model_cannot_be_called(tmp_path: Path) -> None:
    """`serving_default` comes first; otherwise a signature whose only input is strings."""
    root = tf.train.Checkpoint()
    ids = tf.TensorSpec([None, None], tf.int32, name="ids")
    signatures = {
        "a_ids": tf.function(lambda ids: tf.cast(ids, tf.float32)).get_concrete_function(ids),
        "b_text": tf.function(lambda text: -lengths(text)).get_concrete_function(TEXT),
        "serving_default": tf.function(lengths).get_concrete_function(TEXT),
    }
    for number, expected in ((3, [[3.0, -3.0]]), (2, [[-3.0, 3.0]])):
        some = dict(list(signatures.items())[:number])
        tf.saved_model.save(root, str(tmp_path / str(number)), signatures=some)
        function = text_function(load_saved_model(tmp_path / str(number)))
        assert function(tf.constant(["abc"])).numpy().tolist() == expected


@pytest.mark.parametrize(("value", "dtype"), [(math.nan, "float32"), (math.inf, "bfloat16")])
def test_weights_that_are_not_finite_are_named(value: float, dtype: str) -> None:
    codes = tf.Variable([1, 2], dtype=tf.int8)
    whole, damaged = (tf.Variable([1.0, last], name="table", dtype=dtype) for last in (2.0, value))
    check_finite_weights(SimpleNamespace(variables=[codes, whole]), "model")
    with pytest.raises(ValueError, match="variables: table:0 holds NaN"):
        check_finite_weights(SimpleNamespace(variables=[codes, whole, damaged]), "model")


def test_a_model_with_nan_is_refused_wherever_it_is_loaded(
    toy_use_dan: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a model would give NaN for every text."""
    from use_st5.encode.encoder import SentenceEncoder
    from use_st5.trainable_encoder import TrainableEncoder

    folder = toy_use_dan.folders["float32"]
    damaged = load_saved_model(folder)
    damaged.variables[0].assign(tf.fill(damaged.variables[0].shape, float("nan")))
    monkeypatch.setattr(loading, "load_saved_model", lambda folder: damaged)
    for load in (SentenceEncoder, TrainableEncoder.load):
        with pytest.raises(ValueError, match="expected finite weights"):
            load(folder)


def test_refuses_what_gives_no_vectors(tmp_path: Path) -> None:
    dictionary = save(tmp_path / "dictionary", lambda text: {"default": lengths(text)})
    with pytest.raises(ValueError, match="returns floats"):
        text_function(load_saved_model(dictionary))
    scalar = save(tmp_path / "scalar", lambda text: lengths(text)[:, 0])
    with pytest.raises(ValueError, match="returns floats"):
        text_function(load_saved_model(scalar))
    ids = save(tmp_path / "ids", lambda text: tf.strings.length(text)[:, None])
    with pytest.raises(ValueError, match="floats .*int32"):
        text_function(load_saved_model(ids))
    root = tf.train.Checkpoint()
    tf.saved_model.save(root, str(tmp_path / "mute"))
    with pytest.raises(ValueError, match="takes strings.*: none"):
        text_function(load_saved_model(tmp_path / "mute"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with variables and an asset."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "words.txt").write_text("a\n")
    places = tf.lookup.TextFileIndex
    initializer = tf.lookup.TextFileInitializer(
        str(folder / "words.txt"), tf.string, places.WHOLE_LINE, tf.int64, places.LINE_NUMBER
    )
    root = tf.train.Checkpoint(
        table=tf.Variable(tf.ones([50, 4])), words=tf.lookup.StaticHashTable(initializer, -1)
    )
    tf.saved_model.save(root, str(folder / "model"))
    return folder / "model"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("saved_model.pb", 0, "saved_model.pb: is no graph"),
        ("saved_model.pb", 300, "cannot be read by TensorFlow"),
        ("saved_model.pb", 2**33, "saved_model.pb: is no graph"),
        ("variables/variables.index", None, "cannot be read by TensorFlow"),
        ("variables/variables.data-00000-of-00001", 100, "cannot be read by TensorFlow"),
        ("assets/words.txt", None, "cannot be read by TensorFlow"),
    ],
)
def test_damage_is_refused(
    whole: Path, tmp_path: Path, name: str, size: int | None, message: str
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    load_saved_model(folder)
    if size is None:
        (folder / name).unlink()
    else:
        os.truncate(folder / name, size)
    with pytest.raises(ValueError, match=message):
        load_saved_model(folder)


def test_garbage_is_no_graph(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    assert len(saved_model_graph(folder).meta_graphs) == 1
    for garbage in (b"not a protocol buffer", b"\x08\x01\x12\xff\xff\xff\x07ab"):
        (folder / "saved_model.pb").write_bytes(garbage)
        for read in (load_saved_model, saved_model_graph):
            with pytest.raises(ValueError, match="is no graph|cannot be read"):
                read(folder)


# The newer ops of tensorflow-text have names of the second kind (`TFText>…`).
@pytest.fixture(params=["StringLowex", "TFText>Last"])
def unknown_op(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A SavedModel with an op that no installed package has, and the op's name."""
    folder = save(tmp_path / "model", lengths)
    graph = (folder / "saved_model.pb").read_bytes()
    assert b"StringLower" in graph
    (folder / "saved_model.pb").write_bytes(graph.replace(b"StringLower", request.param.encode()))
    return folder, request.param


def test_names_the_package_of_a_missing_op(
    unknown_op: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, op = unknown_op
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    minor = ".".join(tf.__version__.split(".")[:2])
    expected = rf"'{op}'.*pip install \"tensorflow-text=={minor}\.\*\""
    with pytest.raises(ImportError, match=expected) as caught:
        load_saved_model(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.end_to_end
@pytest.mark.process
def test_loading_and_encoding_write_no_line(repository: Path, tmp_path: Path) -> None:
    """Runs a user's process, in which TensorFlow is silenced as the README says."""
    code = (
        "import os\n"
        "heard = os.dup(2)\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"  # No setting silences 2.21's import.
        "import tensorflow as tf\n"
        "os.dup2(heard, 2)\n"
        "tf.config.optimizer.set_experimental_options({'loop_optimization': False})\n"
        "import use_st5\n"
        "for name in ('use_dan_en', 'use_transformer_en'):\n"
        "    encoder = use_st5.load(name)\n"
        "    encoder.encode(['a', 'b'])\n"
        "    encoder.similarity(['a', 'b'])\n"
        "encoder.save('saved')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(repository), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-Wdefault::Warning:use_st5", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_of_a_process_that_had_loaded_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_started_in", None)
    loading.refuse_after_fork()
    loading.refuse_after_fork()
    monkeypatch.setattr(loading, "_started_in", os.getppid())
    with pytest.raises(RuntimeError, match=r'multiprocessing.get_context\("spawn"\)'):
        loading.refuse_after_fork()


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not fork after threads started")
def test_a_real_fork(fresh_python: Callable[..., str]) -> None:
    code = """
import multiprocessing
import pickle
import tensorflow as tf
import use_st5
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.sklearn import SentenceVectors

encoder = use_st5.load("use_dan_en")
encoder.encode("a")
layer = SavedModelLayer("use_dan_en")
text = tf.constant(["a"])
layer(text)

def attempt(name):
    attempts = {
        "encode": lambda: encoder.encode("a"),
        "truncated": lambda: encoder.truncated("a"),
        "load another": lambda: use_st5.load("use_transformer_en"),
        "layer": lambda: layer(text),
        "new layer": lambda: SavedModelLayer("use_dan_en"),
        "unpickle": lambda: pickle.loads(pickle.dumps(encoder)).encode("a"),
    }
    try:
        attempts[name]()
    except RuntimeError as error:
        return "spawn" in str(error)

names = ["encode", "truncated", "load another", "layer", "new layer", "unpickle"]
with multiprocessing.get_context("fork").Pool(1) as pool:
    for name in names:
        print(name, pool.apply_async(attempt, (name,)).get(timeout=60))
    for function in (encoder.encode, SentenceVectors(encoder).transform):
        try:
            pool.map_async(function, [["a"]]).get(timeout=60)
        except RuntimeError as error:
            print("map", "spawn" in str(error))
encoder.encode("a")
"""
    said = fresh_python("-W", "ignore", "-c", code, timeout=300).splitlines()
    assert len(said) == 8
    assert all(line.endswith("True") for line in said), said
