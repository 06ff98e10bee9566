from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from use_st5.data.tfds_reader import TFDSReader

tfds = pytest.importorskip("tensorflow_datasets")

ROWS = [
    {"premise": "A man sleeps.", "hypothesis": "He rests.", "label": 0},
    {"premise": "Ein Mann schl\u00e4ft.", "hypothesis": "\u4ed6", "label": -1},
    {"premise": "More.", "hypothesis": "Less.", "label": 1},
    {"premise": "Last.", "hypothesis": "One.", "label": 2},
]
BROKEN = [*ROWS[:3], {"premise": b"\xff\xfe", "hypothesis": "broken", "label": 1}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set "toy_nli" of two splits, built like any data set of TFDS."""

    class ToyNli(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            text = tfds.features.Text
            features = {
                "premise": text(),
                "hypothesis": text(),
                "label": tfds.features.ClassLabel(names=["e", "n", "c"]),
                "meta": {"id": np.int64, "weight": np.float32},
                "words": tfds.features.Sequence(text()),
                "vector": tfds.features.Tensor(shape=(2,), dtype=np.float32),
            }
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features)
            )

        def _split_generators(self, _: Any) -> Any:
            splits = {"train": ROWS, "broken": BROKEN}
            return {name: self._generate_examples(rows) for name, rows in splits.items()}

        def _generate_examples(self, rows: Any) -> Iterator[tuple[int, dict[str, Any]]]:
            for i, each in enumerate(rows):
                meta = {"id": i, "weight": i / 2}
                yield i, each | {"meta": meta, "words": ["a", "\u00e9"], "vector": [i, 0.5]}

    path = tmp_path_factory.mktemp("tfds")
    ToyNli(data_dir=path, file_format="tfrecord").download_and_prepare()
    return path


def by_id(examples: Any) -> list[dict[str, Any]]:
    return sorted(examples, key=lambda example: example["id"])


def test_columns_are_mapped_and_converted(folder: Path) -> None:
    columns = {"id": "meta/id", "w": "meta/weight", "a": "premise", "words": "words", "v": "vector"}
    first, second, _, last = by_id(
        TFDSReader("toy_nli", split="train", columns=columns, data_dir=folder)
    )
    assert (first["id"], type(first["id"])) == (0, int)
    assert (last["w"], type(last["w"])) == (1.5, float)
    assert second["a"] == "Ein Mann schl\u00e4ft."
    assert second["words"] == ["a", "\u00e9"]
    np.testing.assert_array_equal(last["v"], np.array([3, 0.5], dtype=np.float32))
    assert list(last) == list(columns)


def test_broken_text_is_counted_and_more_than_a_hundredth_is_refused(folder: Path) -> None:
    reader = TFDSReader("toy_nli", split="broken", data_dir=folder)
    with pytest.raises(ValueError, match=r"toy_nli\[broken\]: .* found 25\.00%"):
        list(reader)
    assert (reader.report.rows, reader.report.malformed) == (3, {"invalid utf-8": 1})
    assert reader.report.offences[0].startswith("toy_nli[broken]:")


def test_slices_and_versions(folder: Path) -> None:
    columns = {"id": "meta/id"}
    halves = [
        [
            example["id"]
            for example in TFDSReader(
                "toy_nli:1.0.0", split=split, columns=columns, data_dir=folder
            )
        ]
        for split in ("train[:50%]", "train[50%:]", "train")
    ]
    assert halves[0] + halves[1] == halves[2]
    assert sorted(halves[2]) == [0, 1, 2, 3]


def test_what_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match="received 'no_such_set': Dataset no_such_set not found"):
        TFDSReader("no_such_set", split="train", data_dir=folder)
    with pytest.raises(ValueError, match=r"has the splits \[.*'train'.*\], received 'dev'"):
        TFDSReader("toy_nli", split="dev", data_dir=folder)
    with pytest.raises(ValueError, match=r"no column 'text'\. Its columns: \['premise',"):
        TFDSReader("toy_nli", split="train", columns={"a": "text"}, data_dir=folder)
    with pytest.raises(ValueError, match="no column 'meta/name'"):
        TFDSReader("toy_nli", split="train", columns={"a": "meta/name"}, data_dir=folder)
    with pytest.raises(ValueError, match="glue/mnli is not prepared in .*download=True"):
        TFDSReader("glue/mnli", split="train", data_dir=folder)


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r'pip install .*\[data\]"'):
        TFDSReader("toy_nli", split="train")
