"""A model's folder as one file, and its network for ONNX Runtime and LiteRT."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from use_st5.export.folders import write_archive
from use_st5.export.runtimes import to_litert, to_onnx
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.trainable_encoder import TrainableEncoder


def test_names_are_sorted_and_nothing_of_the_machine_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "a").write_bytes(b"weights")
    (folder / "link").symlink_to(folder / "saved_model.pb")
    write_archive(folder, tmp_path / "one.tar.gz")
    for path in sorted(folder.rglob("*")):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    write_archive(folder, tmp_path / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        entries = archive.getmembers()
        assert [entry.name for entry in entries] == [
            "link",
            "saved_model.pb",
            "variables",
            "variables/a",
        ]
        assert archive.extractfile("link").read() == b"graph"
    assert {(each.mtime, each.uid, each.gid, each.uname) for each in entries} == {(0, 0, 0, "")}
    assert [entry.isfile() for entry in entries] == [True, True, False, True]


Embed = Callable[[np.ndarray], np.ndarray]

MODELS = (
    "use_dan float32",
    "use_dan int8",
    "use_transformer float32",
    "use_transformer int8",
    "bert float32",
    "bert int8",
    "t5_mean float32",
    "t5_mean int8",
    "t5_first float32",
    "t5_decoder float32",
)


@pytest.fixture(scope="module", params=MODELS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported folder of each family, pooling and precision."""
    family, precision = request.param.split()
    if not family.startswith("t5"):
        return request.getfixturevalue(f"toy_{family}").folders[precision]
    toy = request.getfixturevalue("toy_t5")
    model = SentenceT5.from_config({**toy.model.get_config(), "pooling": family[3:]})
    model.build()
    path = tmp_path_factory.mktemp("t5") / family
    TrainableEncoder(model, toy.tokenizer, name="t5", max_length=32).export(
        path, precision=precision
    )
    return path


def batches() -> Iterator[np.ndarray]:
    """Ids of several shapes, padded by various amounts."""
    generator = np.random.default_rng(0)
    for shape in ((1, 1), (1, 7), (3, 5), (8, 16), (2, 12)):
        ids = generator.integers(1, 18, shape).astype(np.int32)
        lengths = generator.integers(1, shape[1] + 1, (shape[0], 1))
        yield np.where(np.arange(shape[1]) < lengths, ids, 0).astype(np.int32)


def check(embed: Embed, folder: Path) -> None:
    loaded = tf.saved_model.load(str(folder))
    for ids in batches():
        np.testing.assert_allclose(embed(ids), loaded.encode_ids(ids), atol=1e-5)


def test_onnx(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("tf2onnx", reason="the extra `onnx` is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    to_onnx(folder, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    check(lambda ids: session.run(["embeddings"], {"ids": ids})[0], folder)


def test_litert(folder: Path, tmp_path: Path) -> None:
    litert: Any = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="the extra `litert` is not installed"
    )
    to_litert(folder, tmp_path / "model.tflite")
    interpreter = litert.Interpreter(str(tmp_path / "model.tflite"))
    runner = interpreter.get_signature_runner("ids")
    check(lambda ids: runner(ids=ids)["embeddings"], folder)


def test_a_model_without_ids_is_refused(tmp_path: Path) -> None:
    module = tf.Module()
    module.embed = tf.function(lambda text: text, input_signature=[tf.TensorSpec([], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "other"))
    with pytest.raises(ValueError, match="signature 'ids'"):
        to_litert(tmp_path / "other", tmp_path / "model.tflite")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
