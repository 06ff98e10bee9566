"""Small files that claim to be large ones: refused before a model is built or memory is taken."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from tests.convert.t5x_writer import write_file, write_folder
from tests.models.t5 import numpy_t5
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.convert.sources import TensorFlowSource, tensorflow_prefix
from use_st5.convert.t5x_source import T5XSource
from use_st5.convert.tokenizer_files import read_sentencepiece_model
from use_st5.models.t5.checkpoint import read_sentence_t5
from use_st5.models.t5.model import T5
from use_st5.models.t5.sentence_t5 import SentenceT5

CONFIG = {
    "model_type": "t5", "vocab_size": 20, "num_layers": 1, "d_model": 8, "d_ff": 12,
    "num_heads": 2, "d_kv": 3,
}  # fmt: skip
BLOCK = "encoder.block.0.layer"
SHAPES = {
    "shared.weight": (20, 8),
    "encoder.final_layer_norm.weight": (8,),
    f"{BLOCK}.0.SelfAttention.relative_attention_bias.weight": (32, 2),
    f"{BLOCK}.0.layer_norm.weight": (8,),
    **{f"{BLOCK}.0.SelfAttention.{name}.weight": (6, 8) for name in "qkv"},
    f"{BLOCK}.0.SelfAttention.o.weight": (8, 6),
    f"{BLOCK}.1.layer_norm.weight": (8,),
    f"{BLOCK}.1.DenseReluDense.wi.weight": (12, 8),
    f"{BLOCK}.1.DenseReluDense.wo.weight": (8, 12),
}
SPARSE = 2**40  # bytes of a sparse file, which need no space on the disk


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the test fail if a model is made."""

    def made(*_: Any, **__: Any) -> None:
        raise AssertionError("a model is made")

    for kind in (T5, SentenceT5):
        monkeypatch.setattr(kind, "__init__", made)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An encoder as transformers saves it."""
    tensors = {name: np.ones(shape, np.float32) for name, shape in SHAPES.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    write_json(tmp_path / "config.json", CONFIG)
    return tmp_path


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def grow(path: Path, size: int = SPARSE) -> None:
    path.touch()
    os.truncate(path, size)


def test_the_folder_itself_is_whole(folder: Path) -> None:
    model = read_sentence_t5(open_checkpoint(folder))
    assert model.config.tied_softmax, "as transformers has it where the file does not say"
    assert model.count_params() == sum(map(np.prod, SHAPES.values()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 2}, "Missing: encoder.block.1"),
        ({"num_layers": 10**15}, "cannot make 1,000,000,000,000,000 layers"),
        ({"num_heads": 10**7}, r"q.weight: expected \[30000000, 8\], found \[6, 8\]"),
        ({"vocab_size": 10**8}, r"shared.weight: expected \[100000000, 8\], found \[20, 8\]"),
        ({"d_model": 10**9}, r"shared.weight: expected \[20, 1000000000\], found"),
        ({"d_kv": 10**30}, r"config.json: \$.d_kv: expected int <="),
        ({"num_layers": 0}, r"config.json: \$.num_layers: expected int >= 1"),
        ({"relative_attention_num_buckets": 1}, r"num_buckets: expected 4 or more"),
        ({"relative_attention_max_distance": 1}, r"less than twice .*max_distance \(1\)"),
        ({"relative_attention_num_buckets": 33}, r"bias.weight: expected \[33, 2\], found \[32, 2"),
    ],
)
def test_a_configuration_that_its_tensors_do_not_bear_out(
    folder: Path, unbuilt: None, changes: dict[str, Any], message: str
) -> None:
    write_json(folder / "config.json", CONFIG | changes)
    with pytest.raises(ValueError, match=message):
        read_sentence_t5(open_checkpoint(folder))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("config.json", open_checkpoint),
        ("model.safetensors", open_checkpoint),
        ("model.safetensors.index.json", open_checkpoint),
        ("modules.json", open_checkpoint),
        ("spiece.model", read_sentencepiece_model),
        ("tokenizer.json", read_sentencepiece_model),
        ("checkpoint", T5XSource),
        ("checkpoint", tensorflow_prefix),
    ],
)
def test_sparse_files_are_not_read(
    folder: Path, unbuilt: None, name: str, read: Callable[[Path], Any]
) -> None:
    if name.endswith("index.json"):
        (folder / "model.safetensors").unlink()
    grow(folder / name)
    with pytest.raises(
        ValueError, match=rf"{name}: .*(1,099,511,627,776|not fully covered|got `int`)"
    ):
        read(folder if read is not T5XSource else folder / name)


def test_a_header_that_claims_gigabytes(folder: Path, unbuilt: None) -> None:
    path = folder / "model.safetensors"
    for size in (2**33, 2**63, 0):
        path.write_bytes(struct.pack("<Q", size) + b"{}")
        grow(path, 2**34)
        with pytest.raises(ValueError, match=r"model.safetensors: is no safetensors file"):
            read_sentence_t5(open_checkpoint(folder))
    path.write_bytes(b"abc")
    with pytest.raises(ValueError, match="model.safetensors: is no safetensors file"):
        read_sentence_t5(open_checkpoint(folder))


def test_numbers_that_numpy_does_not_have(folder: Path, unbuilt: None) -> None:
    header = json.dumps({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0")
    with pytest.raises(ValueError, match="a has F8_E4M3"):
        read_sentence_t5(open_checkpoint(folder))


@pytest.mark.parametrize("path", ["/etc", "a/../../elsewhere", "C:\\elsewhere"])
def test_modules_lie_in_the_folder(folder: Path, unbuilt: None, path: str) -> None:
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": path},
    ]
    write_json(folder / "modules.json", modules)
    with pytest.raises(ValueError, match=r"modules.json: \$\[1\].path: expected a path inside"):
        read_sentence_t5(open_checkpoint(folder))


def sentence_transformers(folder: Path, **dense: Any) -> None:
    kinds = ("Transformer", "Pooling", "Dense")
    paths = ("", "1_Pooling", "2_Dense")
    modules = [{"type": kind, "path": path} for kind, path in zip(kinds, paths, strict=True)]
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    settings = {"bias": False, "activation_function": "torch.nn.Identity", "out_features": 4}
    write_json(folder / "2_Dense" / "config.json", settings | dense)
    kernel = {"linear.weight": np.ones((4, 8), np.float32)}
    save_file(kernel, folder / "2_Dense" / "model.safetensors")


def test_links_of_the_user_are_followed(folder: Path, tmp_path: Path) -> None:
    """Hugging Face's own cache stores a folder as such links."""
    sentence_transformers(folder)
    snapshot = tmp_path / "snapshot"
    for file in [path for path in folder.rglob("*") if path.is_file()]:
        link = snapshot / file.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file)
    assert read_sentence_t5(open_checkpoint(snapshot)).dimension == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out_features": 10**12}, r"linear.weight: expected \[1000000000000, 8\], found \[4, 8\]"),
        ({"activation_function": None}, r"\$.activation_function: expected str, received null"),
    ],
)
def test_a_dense_layer(folder: Path, unbuilt: None, changes: dict[str, Any], message: str) -> None:
    sentence_transformers(folder, **changes)
    with pytest.raises(ValueError, match=message):
        read_sentence_t5(open_checkpoint(folder))


@pytest.mark.parametrize(
    "begin",
    [
        b"\xdd\xff\xff\xff\xff",  # an array of four thousand million
        b"\xdf\xff\xff\xff\xff",  # a map
        b"\xc6\xff\xff\xff\xff",  # bytes
        b"\xdb\xff\xff\xff\xff",  # a text
        b"\x81\xa1a\xdd\x07\xff\xff\xff",
        b"\x81\xa1a\x91\xdd\x07\xff\xff\xff",  # an array in an array
    ],
)
def test_sparse_message_packs(tmp_path: Path, begin: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(begin)
    grow(path, 2**33)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint written by Flax"):
        T5XSource(path)


@pytest.mark.parametrize("stored", ["..", "a/..", "", "a\\..\\b", None])
def test_arrays_lie_beside_their_index(tmp_path: Path, stored: Any) -> None:
    path = tmp_path / "checkpoint"
    write_file(path, {"a": {"driver": "zarr", "kvstore": {"path": stored}}})
    with pytest.raises(ValueError, match="expected the weights of T5X"):
        T5XSource(path)


def test_arrays_that_claim_more_than_their_chunks_have(tmp_path: Path, unbuilt: None) -> None:
    write_folder(tmp_path / "folder", numpy_t5.arrays(), chunk=100)
    path = tmp_path / "folder" / "target.token_embedder.embedding" / ".zarray"
    metadata = json.loads(path.read_text(encoding="utf-8"))
    claimed = {"shape": [10**9, 8], "chunks": [10**9, 8]}
    path.write_text(json.dumps(metadata | claimed), encoding="utf-8")
    with pytest.raises(ValueError, match="1 of 1 chunks, .* of 31,007,751 bytes"):
        read_sentence_t5(open_checkpoint(tmp_path / "folder"))


def test_data_of_tensorflow_that_is_cut(tmp_path: Path) -> None:
    tf.train.Checkpoint(a=tf.Variable(np.ones((50, 20), np.float32))).write(str(tmp_path / "c"))
    TensorFlowSource(tmp_path / "c")
    os.truncate(tmp_path / "c.data-00000-of-00001", 1000)
    with pytest.raises(ValueError, match="c: expected 4,000 bytes of data, found 1,000"):
        TensorFlowSource(tmp_path / "c")


def test_the_newest_checkpoint_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    tf.train.Checkpoint(a=tf.Variable(1.0)).write(str(tmp_path / "c"))
    for path in ("../c", str(tmp_path / "c")):
        (tmp_path / "a" / "checkpoint").write_text(f'model_checkpoint_path: "{path}"\n')
        with pytest.raises(ValueError, match="expected checkpoints in this folder, not"):
            TensorFlowSource(tmp_path / "a")
