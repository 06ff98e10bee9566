"""The vectors of a corpus in a vector store: they belong to their texts, and searches find them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")

import pyarrow.parquet as pq

import use_st5
from use_st5.beam import embed_corpus, read_vectors

TEXTS = [f"Sentence number {number} of {number * 7}." for number in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of the texts, which lie in three files."""
    place = tmp_path_factory.mktemp("corpus")
    for name in range(3):
        lines = "".join(f"{text}\n" for text in TEXTS[name::3])
        (place / f"{name}.txt").write_text(lines)
    embed_corpus(str(place / "*.txt"), place / "vectors")
    return place / "vectors"


def test_rows_stay_together(folder: Path) -> None:
    ids, texts, vectors = read_vectors(folder)
    assert sorted(texts) == sorted(TEXTS)
    places = {
        f"{name}.txt:{row}": text
        for name in range(3)
        for row, text in enumerate(TEXTS[name::3], start=1)
    }
    assert dict(zip(ids, texts, strict=True)) == places
    np.testing.assert_allclose(vectors, use_st5.load("use_dan_en").encode(texts), atol=1e-6)


def test_the_columns_are_what_databases_read(folder: Path) -> None:
    path = next(iter(folder.glob("vectors-*.parquet")))
    schema = pq.read_schema(path)
    assert [str(schema.field(name).type) for name in ("id", "text")] == ["string", "string"]
    # BigQuery infers an array from a list in three levels whose inner name is "element".
    columns = pq.ParquetFile(path).schema
    assert [columns.column(number).path for number in range(len(columns))] == [
        "id",
        "text",
        "embedding.list.element",
    ]
    assert columns.column(2).physical_type == "FLOAT"


def test_a_folder_that_is_not_whole_is_refused(folder: Path, tmp_path: Path) -> None:
    (path,) = sorted(folder.glob("vectors-*.parquet"))[:1]
    (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match="found no embeddings.json"):
        read_vectors(tmp_path)
