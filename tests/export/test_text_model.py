"""The folders of `to_text_model`: their files and facts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from use_st5.export import text_model
from use_st5.export.text_model import check_text_model, text_model_manifest, to_text_model


@pytest.fixture
def source(toy_use_dan: Any) -> Path:
    """An exported USE-DAN."""
    for module in ("tf2onnx", "onnxruntime"):
        pytest.importorskip(module, reason="the extra `onnx` is not installed")
    return toy_use_dan.folders["int8"]


def test_files_and_facts(source: Path, tmp_path: Path) -> None:
    to_text_model(source, tmp_path / "model", runtime="onnx", length=24)
    expected = {
        *("model.json", "network.onnx", "vocabulary.txt", "use_st5_tokenizer"),
        *("reader.py", "reader.mjs", "tokenizer.mjs"),
    }
    assert {each.name for each in (tmp_path / "model").iterdir()} - {"__pycache__"} == expected
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    manifest = json.loads((source / "use_st5.json").read_text())
    assert facts["model_hash"] == manifest["model_hash"]
    chosen = ("format", "name", "languages", "precision", "tokenizer", "dimension", "max_length")
    assert [facts[name] for name in chosen] == [1, "toy", ["en"], "int8", "ngrams", 16, None]
    assert (facts["runtime"], facts["length"], facts["prompt"]) == ("onnx", 24, "")


def test_the_copies_import_nothing_of_this_package(source: Path, tmp_path: Path) -> None:
    to_text_model(source, tmp_path / "model", runtime="onnx")
    for file in (tmp_path / "model").rglob("*.py"):
        lines = file.read_text().splitlines()
        imported = [line for line in lines if line.lstrip().startswith(("import use", "from use"))]
        # The vocabulary is written with it, which no reader does.
        of_writing = ["        from use_st5._files import atomic_path"]
        allowed = of_writing if file.name == "ngram_vocabulary.py" else []
        ours = [line for line in imported if "use_st5_tokenizer." not in line]
        assert ours == allowed


def test_int8_computes_in_int8(source: Path, tmp_path: Path) -> None:
    import onnx

    kinds = {}
    for int8 in (False, True):
        to_text_model(source, tmp_path / "model", runtime="onnx", int8=int8)
        graph = onnx.load(tmp_path / "model" / "network.onnx").graph
        kinds[int8] = {node.op_type for node in graph.node}
    assert "MatMulInteger" in kinds[True] - kinds[False]


def test_an_older_folder_is_replaced_and_no_other(source: Path, tmp_path: Path) -> None:
    for _ in range(2):
        to_text_model(source, tmp_path / "model", runtime="onnx")
        (tmp_path / "model" / "__pycache__").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"Found notes\.txt"):
        to_text_model(source, tmp_path / "model", runtime="onnx")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "reader.py").touch()
    with pytest.raises(FileExistsError, match=r"Found reader\.py"):
        check_text_model(tmp_path / "other")


@pytest.mark.parametrize("int8", [False, True])
def test_other_vectors_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, int8: bool
) -> None:
    monkeypatch.setattr(text_model, "_LEAST_COSINE_INT8" if int8 else "_LEAST_COSINE", 1.1)
    with pytest.raises(ValueError, match=r"expected a cosine of 1\.1 or more .* found \d"):
        to_text_model(source, tmp_path / "model", runtime="onnx", int8=int8)
    assert not [*tmp_path.iterdir()]


def test_other_models_and_lengths_are_refused(
    toy_use_transformer: Any, toy_t5: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="family t5 with the tokenizer 'sentencepieces'. Serve"):
        text_model_manifest(toy_t5.folder)
    with pytest.raises(ValueError, match="received another SavedModel"):
        text_model_manifest(tmp_path)
    folder = toy_use_transformer.folders["float32"]
    text_model_manifest(folder, 16)
    for length in (15, 17):
        with pytest.raises(ValueError, match=f"of 16 to 16, .* received {length}"):
            text_model_manifest(folder, length)
