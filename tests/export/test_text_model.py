"""The folders of `to_text_model`: their files and facts, and what is refused."""

from __future__ import annotations

import json
import py_compile
from pathlib import Path
from typing import Any

import pytest

from use_st5.export import text_model
from use_st5.export.text_model import check_text_model, text_model_manifest, to_text_model
from use_st5.models.static_embedding.model import StaticEmbedding
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
        *("reader.py", "reader.mjs", "tokenizer.mjs", "pieces.mjs"),
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
