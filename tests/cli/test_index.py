"""`use-st5 index`: texts to a folder, from their vectors or from a model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.cli import embed
from use_st5.search import VectorIndex

TEXTS = ["alpha", "beta", "", "gamma, née", "delta"]


@pytest.fixture(autouse=True)
def texts(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")


@pytest.mark.parametrize("source", ["texts.txt", "-"])
def test_an_index_has_the_texts_and_names_the_model(
    source: str, use: Callable, fake: Any, tmp_path: Path
) -> None:
    given = (tmp_path / "texts.txt").read_bytes() if source == "-" else None
    result = use("index", source, "--to", "texts.index", input=given)
    assert result.exit_code == 0, result.stderr
    said = "texts.index: 5 texts, vectors of 8 by fake (exact)\n"
    assert result.stderr.endswith(said)
    index = VectorIndex(tmp_path / "texts.index")
    assert (index.model, index.model_hash, index.kind) == ("fake", "0", "exact")
    assert [index.text(row) for row in range(5)] == TEXTS
    assert index.search(fake, TEXTS, k=1)[1].ravel().tolist() == [*range(5)]
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "texts.index"}


def test_an_interrupted_call_goes_on(
    use: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "_CHUNK_ROWS", 2)
    fake.fails_after = 2
    first = use("index", "texts.txt", "--to", "texts.index")
    assert first.exit_code == 130
    assert "2 of 5 rows" in first.stderr
    assert not (tmp_path / "texts.index").exists()
    fake.fails_after, fake.encoded = None, []
    second = use("index", "texts.txt", "--to", "texts.index")
    assert second.exit_code == 0, second.stderr
    assert fake.encoded[:3] == TEXTS[2:]  # then the texts that are compared with their vectors
    assert len(VectorIndex(tmp_path / "texts.index")) == 5
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "texts.index"}


def test_a_file_of_the_user_beside_the_index_is_neither_read_nor_replaced(
    use: Callable, fake: Any, tmp_path: Path
) -> None:
    (tmp_path / "idx.vectors.npy").write_text("years")
    for more in ((), ("--overwrite",)):
        result = use("index", "texts.txt", "--to", "idx", *more)
        assert result.exit_code == 0, result.stderr
        assert len(VectorIndex(tmp_path / "idx")) == 5
        assert (tmp_path / "idx.vectors.npy").read_text() == "years"
    assert not (tmp_path / "idx.vectors.npy.partial").exists()


def test_an_index_that_cannot_be_built_keeps_its_vectors(
    use: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = VectorIndex.build
    monkeypatch.setattr(VectorIndex, "build", lambda *a, **k: (_ for _ in ()).throw(OSError("no")))
    assert use("index", "texts.txt", "--to", "idx").exit_code == 1
    monkeypatch.setattr(VectorIndex, "build", build)
    fake.encoded = []
    assert use("index", "texts.txt", "--to", "idx").exit_code == 0
    assert fake.encoded == TEXTS, "each text once, to hold it against its vector"
    assert not (tmp_path / "idx.vectors.npy.partial").exists()


def test_vectors_of_embed_spare_the_embedding(use: Callable, fake: Any, tmp_path: Path) -> None:
    assert use("embed", "texts.txt", "-o", "v.npy").exit_code == 0
    fake.encoded = []
    made = use("index", "texts.txt", "--vectors", "v.npy", "--to", "texts.index")
    assert made.exit_code == 0, made.stderr
    assert fake.encoded == TEXTS  # all five are compared with their vectors
    assert (tmp_path / "v.npy").exists()
    np.save(tmp_path / "v.npy", np.load(tmp_path / "v.npy")[::-1])
    again = use("index", "texts.txt", "--vectors", "v.npy", "--to", "texts.index", "--overwrite")
    assert (again.exit_code, again.stderr.count("\n")) == (1, 1)
    assert "expected the vectors of fake for these texts" in again.stderr
    assert len(VectorIndex(tmp_path / "texts.index")) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("absent.txt", "--to", "i"), 1, "found none"),
        (("empty.txt", "--to", "i"), 1, "expected texts, one a line, received none"),
        (("texts.txt", "--to", "no/i"), 1, "expected a folder to write to"),
        (("texts.txt", "--to", ".", "--overwrite"), 1, "another folder than the current one"),
        (("texts.txt", "--to", "texts.txt"), 1, "to contain only an index of use_st5"),
        (("texts.txt", "--to", "old"), 1, "old exists; give --overwrite"),
        (("texts.txt", "--to", "i", "--kind", "tree"), 2, "--kind"),
        (("texts.txt", "--to", "i", "--kind", "hnsw"), 1, "[search]"),
        (("texts.txt", "--to", "i", "--vectors", "none.npy"), 1, "No such file"),
        (("texts.txt", "--to", "i", "--vectors", "texts.txt"), 1, "expected a .npy file"),
        (("texts.txt", "--to", "i", "--model", "absent"), 1, "found none"),
    ],
)
def test_errors_are_one_line(
    arguments: tuple[str, ...],
    code: int,
    message: str,
    use: Callable,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    (tmp_path / "empty.txt").touch()
    VectorIndex.build(tmp_path / "old", fake.encode(TEXTS), encoder=fake)
    result = use("index", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
    assert message in result.stderr
    assert not (tmp_path / "i").exists()
