"""`use-st5 info`: facts, signatures, card, and damage; on a real, tiny SavedModel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

CARD = """---
license: apache-2.0
---
# Letters

Counts the bytes of a text
and little else.

## Limits
Many.
"""


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose vector is half the text's length, four times."""
    import tensorflow as tf

    from use_st5.hub.model_manifest import write_folder

    root = tf.train.Checkpoint()
    root.halves = tf.Variable([0.5] * 4)

    def call(text: tf.Tensor, training: bool = False) -> tf.Tensor:
        return tf.cast(tf.strings.length(text), tf.float32)[:, None] * root.halves

    spec = tf.TensorSpec([None], tf.string, name="text")
    root.__call__ = tf.function(call)
    root.__call__.get_concrete_function(spec)
    serving = tf.function(lambda text: {"embeddings": call(text)}).get_concrete_function(spec)
    facts = {
        "name": "letters",
        "dimension": 4,
        "max_length": None,
        "precision": "float32",
        "parameters": 4000,
        "trainable_parameters": 4,
        "metadata": {"languages": ["en"]},
        "prompts": {"query": "query: "},
    }
    folder = tmp_path_factory.mktemp("models") / "letters"
    write_folder(root, {"serving_default": serving}, folder, facts=facts, card=CARD)
    return folder


def test_facts_as_json(use: Callable, letters: Path) -> None:
    result = use("info", str(letters), "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["name"] == "letters"
    assert facts["prompts"] == {"query": "query: "}
    assert facts["summary"] == "Counts the bytes of a text and little else."
    assert facts["parameters"] == 4000
    assert facts["metadata"] == {"languages": ["en"]}
    assert facts["signatures"] == {
        "serving_default": "text string (None,) → embeddings float32 (None, 4)"
    }
    files = [file for file in letters.rglob("*") if file.is_file() and file.suffix != ".json"]
    assert facts["bytes"] == sum(file.stat().st_size for file in files)


def test_table_and_card(use: Callable, letters: Path) -> None:
    lines = use("info", str(letters)).stdout.splitlines()
    assert "parameters\t4,000" in lines
    assert "max_length\ttexts are not cut" in lines
    assert 'metadata: languages\t["en"]' in lines
    assert use("info", str(letters), "--card").stdout == CARD


def test_damage_is_an_error(use: Callable, letters: Path, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(letters, tmp_path / "copy")
    data = next(copy.glob("variables/variables.data*"))
    content = bytearray(data.read_bytes())
    content[0] ^= 1
    data.write_bytes(content)
    result = use("info", str(copy))
    assert result.exit_code == 1
    assert "sha256" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_foreign_model_has_signatures_and_no_card(
    use: Callable, letters: Path, tmp_path: Path
) -> None:
    import shutil

    copy = shutil.copytree(letters, tmp_path / "copy")
    (copy / "use_st5.json").unlink()
    (copy / "README.md").unlink()
    facts = json.loads(use("info", str(copy), "--json").stdout)
    assert "serving_default" in facts["signatures"]
    assert facts["description"].startswith("none")
    assert use("info", str(copy), "--card").exit_code == 1
