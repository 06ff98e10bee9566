from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.bucc.readers import read_bucc
from use_st5.evaluation.bucc.tasks import BUCCTask

FILES = {
    "zh": "zh-1\t一\nzh-2\t二 \n",
    "en": "en-1\tone\nen-2\ttwo\nen-3\tone\n",
    "gold": "zh-2\ten-2\n\n",
}


def write(folder: Path, **changed: str) -> None:
    for side, text in {**FILES, **changed}.items():
        (folder / f"zh-en.dev.{side}").write_text(text, encoding="utf-8")


def test_texts_and_gold(tmp_path: Path) -> None:
    write(tmp_path)
    data = read_bucc(tmp_path, "zh", "dev")
    assert data.foreign == {"zh-1": "一", "zh-2": "二"}
    assert data.english == {"en-1": "one", "en-2": "two", "en-3": "one"}
    assert data.gold == {("zh-2", "en-2")}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"zh": "zh-1\t一\nzh-1\t二\n"}, r"dev\.zh:2: expected a new id, received 'zh-1' again"),
        ({"en": "en-1\tone\ten-2\n"}, r"dev\.en:1: expected two tab-separated fields .* 'en-1"),
        ({"en": "en-1\n"}, r"dev\.en:1: expected two tab-separated fields"),
        ({"en": "en-1\t \n"}, r"dev\.en:1: expected two tab-separated fields that are not empty"),
        ({"en": ""}, r"dev\.en: expected sentences, received none"),
        ({"gold": "zh-2\n"}, r"dev\.gold:1: expected two tab-separated fields"),
        ({"gold": "\nzh-3\ten-2\n"}, r"gold:2: expected an id of zh-en\.dev\.zh, received 'zh-3'"),
        ({"gold": "en-2\tzh-2\n"}, r"gold:1: expected an id of zh-en\.dev\.zh, received 'en-2'"),
        ({"gold": "\n"}, r"dev\.gold: expected pairs of ids, received none"),
    ],
)
def test_errors(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    write(tmp_path, **changed)
    with pytest.raises(ValueError, match=message):
        read_bucc(tmp_path, "zh", "dev")


def test_a_file_is_missing(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"zh-en\.sample\.zh: expected a file"):
        read_bucc(tmp_path, "zh", "sample")


def test_the_published_sample(data_dir: Path) -> None:
    folder = DataFolder(data_dir).find(BUCCTask("zh").sources[0])
    data = read_bucc(folder, "zh", "dev")
    assert (len(data.foreign), len(data.english), len(data.gold)) == (8624, 13589, 257)
