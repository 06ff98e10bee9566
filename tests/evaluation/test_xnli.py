"""XNLI: English pairs are learnt, those of each language are judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.data.data_folder import DataFolder
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.task import TaskContext
from use_st5.evaluation.xnli import _LANGUAGES, TASKS, read_xnli

CLASSES = ("contradiction", "entailment", "neutral")


def write(folder: Path) -> None:
    """60 premises with three pairs; the hypothesis names its class, in Thai another one."""
    rows = [(premise, label) for premise in range(60) for label in (1, 2, 0)]
    header = "sentence1\tsentence2\tgold_label\n"
    files = {
        "KorNLI/xnli.test.ko.tsv": header + "".join(f"a\tb\t{CLASSES[x]}\n" for _, x in rows),
        "xnli/dev-en.tsv": "".join(f"{n}\t{n} class {x}\t{CLASSES[x]}\n" for n, x in rows),
    }
    for language in _LANGUAGES:
        moved = language == "th"
        lines = [f"{n}\t{n} class {(x + moved) % 3}\n" for n, x in rows]
        files[f"xnli/test-{language}.tsv"] = "".join(lines)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def encode(texts: list[str]) -> np.ndarray:
    return np.array([[1.0, *(f"class {x}" in text for x in range(3))] for text in texts])


def test_accuracy_by_language_and_the_mean_without_english(tmp_path: Path) -> None:
    write(tmp_path)
    (task,) = TASKS
    data = DataFolder(tmp_path)
    assert read_xnli(data)["th"].columns[0][::3] == [str(n) for n in range(0, 60, 5)]
    result = task.run(TaskContext(VectorCache(encode), data))
    languages = result.details["languages"]
    assert languages["de"] == languages["en"] == {"pairs": 36, "accuracy": 1.0}
    assert languages["th"] == {"pairs": 36, "accuracy": 0.0}
    assert result.scores == {"accuracy_14": pytest.approx(13 / 14), "accuracy_en": 1.0}
    assert result.counts == {"train": 144, "dev": 36, "test": 36}
    path = tmp_path / "xnli" / "test-vi.tsv"
    path.write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"test-vi\.tsv: expected 180 pairs, received 1"):
        read_xnli(data)


def test_the_published_files(data_dir: Path) -> None:
    parts = read_xnli(DataFolder(data_dir))
    assert {len(texts) for name, texts in parts.items() if name != "train"} == {1002}
    assert np.bincount(parts["th"].labels).tolist() == [334, 334, 334]
