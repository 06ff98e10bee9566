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
    {"premise": b"\xff\xfe", "hypothesis": "broken", "label": 1},
    {"premise": "Last.", "hypothesis": "One.", "label": 2},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set "toy_nli" with a train split, built as TFDS builds any."""

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
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
            for i, each in enumerate(ROWS):
                meta = {"id": i, "weight": i / 2}
                yield i, each | {"meta": meta, "words": ["a", "\u00e9"], "vector": [i, 0.5]}

    path = tmp_path_factory.mktemp("tfds")
    ToyNli(data_dir=path, file_format="tfrecord").download_and_prepare()
    return path


def by_id(examples: Any) -> list[dict[str, Any]]:
    return sorted(examples, key=lambda example: example["id"])


def test_columns_are_mapped_and_converted(folder: Path) -> None:
    columns = {"id": "meta/id", "w": "meta/weight", "a": "premise", "words": "words", "v": "vector"}
    reader = TFDSReader(
        "toy_nli", split="train", columns=columns, data_dir=folder, max_malformed=0.5
    )
    first, second, last = by_id(reader)
    assert (first["id"], type(first["id"])) == (0, int)
    assert (last["w"], type(last["w"])) == (1.5, float)
    assert second["a"] == "Ein Mann schl\u00e4ft."
    assert second["words"] == ["a", "\u00e9"]
    np.testing.assert_array_equal(last["v"], np.array([3, 0.5], dtype=np.float32))
    assert list(last) == list(columns)


def test_broken_text_and_skipped_labels_are_counted(folder: Path) -> None:
    reader = TFDSReader("toy_nli", split="train", data_dir=folder, skip_label=-1, max_malformed=0.5)
    assert sorted(example["label"] for example in reader) == [0, 2]
    assert reader.report.skipped == {"label -1": 1}
    assert reader.report.malformed == {"invalid utf-8": 1}
    assert reader.report.offences[0].startswith("toy_nli[train]:")
    with pytest.raises(ValueError, match=r"toy_nli\[train\]: .* found 25\.00%"):
        list(TFDSReader("toy_nli", split="train", data_dir=folder))


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


def test_no_example_left_is_an_error(folder: Path) -> None:
    columns = {"label": "label"}
    first = next(iter(TFDSReader("toy_nli", split="train", columns=columns, data_dir=folder)))
    reader = TFDSReader(
        "toy_nli",
        split="train[:1]",
        columns=columns,
        data_dir=folder,
        skip_label=first["label"],
    )
    with pytest.raises(ValueError, match=r"expected examples in split 'train\[:1\]'"):
        list(reader)


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r'pip install .*\[data\]"'):
        TFDSReader("toy_nli", split="train")
