"""The transforms: the vectors of `embed`, once per text even if bundles fail, and bad rows."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("apache_beam", reason="the extra `beam` is not installed")

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.parquetio import WriteToParquetBatched

import use_st5
from use_st5.beam import embed_texts
from use_st5.beam import pipeline as steps
from use_st5.hub.model_names import bundled_folder

# A runner in this process that retries a failed bundle up to four times.
RETRYING = "BundleBasedDirectRunner"


def written(pairs: list[Any], folder: Path, *, runner: str = "DirectRunner") -> tuple[Any, list]:
    """Rows and bad rows of a pipeline that writes both."""
    with beam.Pipeline(runner=runner) as pipeline:
        embedded = pipeline | beam.Create(pairs, reshuffle=False) | embed_texts("use_dan_en")
        schema = steps.EncoderHandler("use_dan_en").schema
        _ = embedded.vectors | WriteToParquetBatched(str(folder / "v"), schema)
        _ = embedded.bad | beam.Map(json.dumps) | beam.io.WriteToText(str(folder / "bad"))
    lines = [line for path in folder.glob("bad*") for line in path.read_text().splitlines()]
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("v*"))]), lines


def test_vectors_are_those_of_the_encoder(tmp_path: Path) -> None:
    texts = {"a": "How old are you?", "b": "", "c": "Ein Satz 🙂", "d": "x " * 3000}
    table, bad = written(list(texts.items()), tmp_path)
    rows = {row["id"]: row for row in table.to_pylist()}
    assert {name: row["text"] for name, row in rows.items()} == texts
    assert not bad
    expected = use_st5.load("use_dan_en").encode(list(texts.values()))
    found = np.array([rows[name]["embedding"] for name in texts], np.float32)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    identity = use_st5.load("use_dan_en").identity
    metadata = {b"model": b"use_dan_en", b"model_hash": identity.encode()}
    assert table.schema.metadata == metadata


def test_what_is_no_pair_of_texts_is_set_aside(fake: Any, tmp_path: Path) -> None:
    pairs = [("a", "good"), ("b", None), ("c", b"\xff"), "alone", (1, "one")]
    table, bad = written([*pairs, (b"e", b"bytes")], tmp_path)
    assert sorted(table.column("id").to_pylist()) == ["a", "e"]
    assert len(bad) == 4


@pytest.mark.parametrize("failing", [{1, 2, 4}])
def test_a_bundle_that_fails_and_is_retried_gives_each_row_once(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: set[int]
) -> None:
    # A block has ten rows: a bundle has several blocks, and a later one fails after the first ones.
    monkeypatch.setattr(steps, "_BLOCK_CHARACTERS", 10 * (steps._ROW + 3))
    fake.failing_calls = failing
    pairs = [(f"row {number}", f"{number:03}") for number in range(95)]
    table, bad = written(pairs, tmp_path, runner=RETRYING)
    assert sum(map(len, fake.calls)) > len(pairs), "nothing was done again"
    assert Counter(table.column("id").to_pylist()) == Counter(name for name, _ in pairs)
    assert not bad
    found = dict(zip(table.column("id").to_pylist(), table.column("embedding"), strict=True))
    for name, text in pairs:
        np.testing.assert_array_equal(found[name].as_py(), fake.vector(text))


def test_threads_of_a_process_share_one_model(
    tmp_path: Path, toy_use_dan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from use_st5.encode import encoder

    folder = tmp_path / "model"
    shutil.copytree(toy_use_dan.folders["float32"], folder)
    made: list[Any] = []

    class Counted(encoder.SentenceEncoder):
        def __init__(self, place: Any, **options: Any) -> None:
            made.append(place)
            super().__init__(place, **options)

    monkeypatch.setattr(encoder, "SentenceEncoder", Counted)
    options = ["--direct_num_workers=3", "--direct_running_mode=multi_threading"]
    with beam.Pipeline(options=beam.options.pipeline_options.PipelineOptions(options)) as pipeline:
        pairs = pipeline | beam.Create([(str(row), "the cat") for row in range(300)])
        _ = pairs | beam.Reshuffle() | embed_texts(folder)
    assert made == [folder.resolve()]


def test_ids_name_files_below_the_fixed_folders(tmp_path: Path) -> None:
    for name in ("x/a.txt", "x/y/a.txt", "x/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    found = steps.matched(f"{tmp_path}/x/**.txt")
    assert [name for _, name in found] == ["a.txt", "y/a.txt"]
    (alone,) = steps.matched(f"{tmp_path}/x/y/a.txt")
    assert alone == (f"{tmp_path}/x/y/a.txt", "a.txt")
    with pytest.raises(FileNotFoundError, match=r"found none for .*/none/\*"):
        steps.matched(f"{tmp_path}/none/*")


def test_a_model_is_described_by_its_files(toy_use_dan: Any, tmp_path: Path) -> None:
    folder = tmp_path / "foreign"
    shutil.copytree(toy_use_dan.folders["float32"], folder)
    (folder / "use_st5.json").unlink()
    for model, name in (("use_dan_en", "use_dan_en"), (str(folder), "foreign")):
        handler = steps.EncoderHandler(model)
        assert (handler.name, handler.model_hash) == (name, handler.load_model().identity)
    with pytest.raises(FileNotFoundError, match="Bundled models: .*use_dan_en"):
        steps.EncoderHandler("use_dan_em")


def test_a_worker_with_another_model_is_refused(fake: Any) -> None:
    handler = steps.EncoderHandler(str(bundled_folder("use_dan_en")))
    fake.identity = "another"
    with pytest.raises(ValueError, match="found another"):
        handler.load_model()
