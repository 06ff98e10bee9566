"""Vectors of texts in a file, as a teacher."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toy_encoders import Toy
from tests.training.test_train import FEW, SENTENCES, write
from use_st5.encode.similarity import cosine
from use_st5.training.model_loading import VectorFile


def write_vectors(path: Path, rows: list[tuple[str, Any]]) -> Path:
    lines = [json.dumps({"text": text, "embedding": vector}) + "\n" for text, vector in rows]
    path.write_text("".join(lines))
    return path


def test_the_first_vector_of_a_text_counts_and_a_blank_line_is_no_row(tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "v.jsonl", [("a", [1, 2]), ("b", [3, 4]), ("a", [5, 6])])
    path.write_text(path.read_text().replace("\n", "\n\n"))
    file = VectorFile(path)
    assert ("a" in file, "c" in file, file.dimension) == (True, False, 2)
    np.testing.assert_array_equal(file.encode(["b", "a", "b"]), [[3, 4], [1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", [1.0]), ("b", [1.0, 2.0])], "finite vectors of one length"),
        ([("a", "x")], "finite vectors of one length"),
        ([("a", None)], "finite vectors of one length"),
        ([("a", [float("inf")])], "finite vectors of one length"),
    ],
)
def test_what_is_no_file_of_vectors(
    rows: list[tuple[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        VectorFile(write_vectors(tmp_path / "v.jsonl", rows))


def test_an_encoder_comes_nearer_to_the_vectors_of_a_file(toy_use_dan: Toy, tmp_path: Path) -> None:
    """The cosines of the file's vectors are learnt; a text without a vector is left out."""
    import use_st5
    from use_st5.training.train import train

    rng = np.random.default_rng(0)
    words = {word: rng.normal(size=6) for text in SENTENCES for word in text.split()}
    wanted = {text: sum(words[word] for word in text.split()).tolist() for text in SENTENCES[::2]}
    teacher = write_vectors(tmp_path / "v.jsonl", [*wanted.items()])
    texts = write(tmp_path / "texts.csv", [{"text": text} for text in SENTENCES[:100]])
    start = str(toy_use_dan.folders["float32"])
    rows = [
        {
            "sentence1": a,
            "sentence2": b,
            "score": cosine(*np.array([[wanted[a]], [wanted[b]]])).item(),
        }
        for a, b in zip([*wanted][:50], [*wanted][9:59], strict=True)
    ]
    dev = write(tmp_path / "dev.csv", rows)
    options = {
        **FEW,
        "steps": 80,
        "learning_rate": 0.01,
        "validation": dev,
        "teacher": str(teacher),
    }
    trained = train(start, texts, tmp_path / "tuned", **options)
    assert trained.after["spearman"] > trained.before["spearman"] + 0.1
    other = write_vectors(tmp_path / "other.jsonl", [("never there", [1.0])])
    with pytest.raises(ValueError, match="found none of 100 texts in the file"):
        train(start, texts, tmp_path / "no", **{**options, "teacher": str(other)})
    assert use_st5.load(trained.folder).dimension == toy_use_dan.model.dimension
