"""A whole corpus: each text once, with its id, from each format, even if workers are killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

import use_st5
from tests.beam.test_rows import tfrecord_bytes
from tests.beam.toy_file_system import ToyFileSystem
from use_st5.beam import CorpusReport, embed_corpus, read_vectors
from use_st5.beam import corpus as corpus_module
from use_st5.beam.corpus import REPORT


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The rows of a folder by id; no id may occur twice."""
    rows = pq.read_table(sorted(folder.glob("vectors-*.parquet"))).to_pylist()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "an id stands there twice"
    return found


def bad(folder: Path) -> list[dict[str, str]]:
    """The rows that have no vector."""
    lines = [line for path in folder.glob("bad-*") for line in path.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda row: row["id"])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with a file of each format; three rows of them are bad."""
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one\n\xff\n\nthree\n")
    (folder / "deep" / "b.jsonl").write_text('{"text": "four"}\n{"txt": 5}\n{"text": "six"}\n')
    pq.write_table(pa.table({"text": ["seven", None, "nine"]}), folder / "c.parquet")
    (folder / "d.tfrecord").write_bytes(tfrecord_bytes(tmp_path, [{"text": "ten"}]))
    return folder


def test_all_formats_become_one(corpus: Path, tmp_path: Path) -> None:
    report = embed_corpus(str(corpus / "**"), tmp_path / "vectors")
    rows = read(tmp_path / "vectors")
    texts = {
        "a.txt:1": "one",
        "a.txt:3": "",
        "a.txt:4": "three",
        "deep/b.jsonl:1": "four",
        "deep/b.jsonl:3": "six",
        "c.parquet:1": "seven",
        "c.parquet:3": "nine",
        "d.tfrecord:1": "ten",
    }
    assert {name: row["text"] for name, row in rows.items()} == texts
    encoder = use_st5.load("use_dan_en")
    found = np.array([rows[name]["embedding"] for name in texts])
    np.testing.assert_allclose(found, encoder.encode(list(texts.values())), atol=1e-6)
    expected = [("a.txt:2", "invalid utf-8"), ("c.parquet:2", "no 'text'")]
    expected += [("deep/b.jsonl:2", "no 'text'")]
    assert [(row["id"], row["reason"]) for row in bad(tmp_path / "vectors")] == expected
    characters = sum(map(len, texts.values()))
    assert report == CorpusReport(encoder.name, encoder.identity, 4, 8, 3, 0, characters)
    written = json.loads((tmp_path / "vectors" / REPORT).read_text())
    assert written.pop("run") in next((tmp_path / "vectors").glob("*.parquet")).name
    assert CorpusReport(**written) == report
    names = {path.name.partition("-")[0] for path in (tmp_path / "vectors").iterdir()}
    assert names == {"vectors", "bad", REPORT}


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory, toy_use_dan: Any) -> Path:
    """A toy with prompts."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    shutil.copytree(toy_use_dan.folders["float32"], folder)
    path = folder / "use_st5.json"
    prompts = {"prompts": {"query": "the cat ", "usual": "a "}, "default_prompt_name": "usual"}
    path.write_text(json.dumps(json.loads(path.read_text()) | prompts))
    return folder


@pytest.mark.parametrize(
    ("options", "prompt"),
    [
        ({}, "a "),
        ({"prompt_name": "query"}, "the cat "),
    ],
)
def test_the_model_reads_a_prompt_before_each_text(
    prompted: Path, tmp_path: Path, options: dict[str, str], prompt: str
) -> None:
    (tmp_path / "a.txt").write_text("sat\n\nthe\n")
    report = embed_corpus(str(tmp_path / "a.txt"), tmp_path / "v", model=prompted, **options)
    assert (report.prompt, report.rows, report.characters) == (prompt, 3, 6)
    rows = {row["text"]: row["embedding"] for row in read(tmp_path / "v").values()}
    encoder = use_st5.load(prompted)
    expected = encoder.encode([prompt + text for text in rows], prompt="")
    np.testing.assert_allclose([*rows.values()], expected, atol=1e-6)
    assert np.ptp(expected, axis=0).max() > 0.01
    schema = pq.read_schema(next((tmp_path / "v").glob("*.parquet")))
    assert schema.metadata.get(b"prompt", b"").decode() == prompt


def test_fields_and_formats_are_named(fake: Any, tmp_path: Path) -> None:
    fake.too_long = 3
    (tmp_path / "rows.log").write_text('{"body": "long", "key": 7}\n{"body": "x", "key": "b"}\n')
    options = {"text_field": "body", "id_field": "key", "file_format": "jsonl"}
    report = embed_corpus(str(tmp_path / "rows.log"), tmp_path / "vectors", **options)
    assert {name: row["text"] for name, row in read(tmp_path / "vectors").items()} == {
        "7": "long",
        "b": "x",
    }
    assert (report.rows, report.truncated, report.bad_rows) == (2, 1, 0)


def everything(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_older_vectors_stay_where_a_run_fails(fake: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    folder = tmp_path / "vectors"
    embed_corpus(str(tmp_path / "a.txt"), folder)
    (folder / "vectors-of-mine.parquet").write_text("years")
    (folder / "bad-days-of-2020.jsonl").write_text("years")
    before = everything(folder)
    (tmp_path / "a.txt").write_text("three\n")
    fake.failing_calls = {*range(100)}
    with pytest.raises(RuntimeError):
        embed_corpus(str(tmp_path / "a.txt"), folder, overwrite=True)
    assert before.items() <= everything(folder).items()
    fake.failing_calls = set()
    embed_corpus(str(tmp_path / "a.txt"), folder, overwrite=True)
    assert read_vectors(folder)[1] == ["three"]
    assert before.keys() & everything(folder).keys() == {
        "vectors-of-mine.parquet", "bad-days-of-2020.jsonl", REPORT,
    }  # fmt: skip
    assert len(everything(folder)) == 4


@pytest.mark.parametrize("place", ["here", "toy"])
def test_a_run_that_is_killed_leaves_the_old_vectors(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(ToyFileSystem, "root", tmp_path)
    local = tmp_path / "vectors"
    folder = "toy://vectors" if place == "toy" else str(local)
    (tmp_path / "a.txt").write_text("one\n")
    embed_corpus(str(tmp_path / "*.txt"), folder)
    (tmp_path / "a.txt").write_text("three\n")

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # The files of the new run are there, but not its report.
        patch.setattr(corpus_module, "_matching", killed)
        with pytest.raises(KeyboardInterrupt):
            embed_corpus(str(tmp_path / "*.txt"), folder, overwrite=True)
    assert read_vectors(local)[1] == ["one"]
    with pytest.raises(FileExistsError, match="give --overwrite"):
        embed_corpus(str(tmp_path / "*.txt"), folder)
    embed_corpus(str(tmp_path / "*.txt"), folder, overwrite=True)
    assert read_vectors(local)[1] == ["three"]
    assert len(everything(local)) == 2


def test_a_report_that_names_other_places_is_refused(fake: Any, tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    (tmp_path / "a.txt").write_text("one\n")
    embed_corpus(str(tmp_path / "a.txt"), folder)
    (folder / REPORT).write_text(json.dumps({"run": "../x"}))
    with pytest.raises(ValueError, match=r"expected the name of a run, found '../x'"):
        read_vectors(folder)


def test_other_file_systems_serve_corpus_and_vectors(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyFileSystem, "root", tmp_path)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "corpus" / "b.tfrecord").write_bytes(tfrecord_bytes(tmp_path, [{"text": "three"}]))
    report = embed_corpus("toy://corpus/*", "toy://vectors/of/them")
    assert set(read(tmp_path / "vectors" / "of" / "them")) == {"a.txt:1", "a.txt:2", "b.tfrecord:1"}
    written = (tmp_path / "vectors" / "of" / "them" / REPORT).read_text()
    assert json.loads(written)["rows"] == report.rows == 3
    with pytest.raises(FileExistsError):
        embed_corpus("toy://corpus/*", "toy://vectors/of/them")
