from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation.probing.readers import read_probing

GOOD = (
    "tr\tPRES\tShe sings .\nva\tPAST\tHe sang .\ntr\tPAST\tThey ran .\nte\tPRES\tWe run .\r\n"
    "te\tPAST\tmain verb\tI saw\u2028it .\n"
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "past_present.txt"
    path.write_bytes(text.encode())
    return path


def test_parts_and_classes(tmp_path: Path) -> None:
    data = read_probing(write(tmp_path, GOOD))
    assert data.classes == ("PAST", "PRES")
    assert data.sentences == {
        "train": ["She sings .", "They ran ."],
        "dev": ["He sang ."],
        "test": ["We run .", "I saw\u2028it ."],
    }
    labels = {part: numbers.tolist() for part, numbers in data.labels.items()}
    assert labels == {"train": [1, 0], "dev": [0], "test": [1, 0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "te\tPAST\n", r"present\.txt:6: expected at least 3 .* received 2: 'te\\tPAST'"),
        (GOOD + "dev\tPAST\tHe ran .\n", r"txt:6: expected tr, va or te first, received 'dev'"),
        (GOOD + "te\tFUT\tHe will .\n", r"txt:6: expected a class of the training part .* 'FUT'"),
        ("tr\tA\ta\ntr\tB\tb\nte\tA\tc\n", r"txt: expected lines of tr, va and te, .*\['va'\]"),
        ("", r"found none of \['tr', 'va', 'te'\]"),
        ("tr\tA\ta\nva\tA\tb\nte\tA\tc\n", r"two classes or more to train on, found \['A'\]"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_probing(write(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.txt: expected a file"):
        read_probing(tmp_path / "none.txt")
