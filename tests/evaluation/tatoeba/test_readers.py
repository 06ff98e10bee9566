from __future__ import annotations

import re
from pathlib import Path

import pytest

from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.tatoeba.readers import GROUPS, LANGUAGES, read_tatoeba
from use_st5.evaluation.tatoeba.tasks import TATOEBA


def write(folder: Path, foreign: str, english: str) -> None:
    (folder / "tatoeba.xho-eng.xho").write_text(foreign, encoding="utf-8")
    (folder / "tatoeba.xho-eng.eng").write_text(english, encoding="utf-8")


def test_sentences_line_by_line(tmp_path: Path) -> None:
    write(tmp_path, "Molo.\nUnjani?\u2028Ndi\n", "Hello.\n How are you? \n")
    sentences = read_tatoeba(tmp_path, "xho")
    assert sentences.language == "xho"
    assert sentences.foreign == ["Molo.", "Unjani?\u2028Ndi"]
    assert sentences.english == ["Hello.", "How are you?"]


@pytest.mark.parametrize(
    ("foreign", "english", "message"),
    [
        ("a\nb\nc\n", "a\nb\n", r"xho-eng\.eng:3: .* line 3 of tatoeba.xho-eng.xho"),
        ("a\n", "a\nb\n", r"xho-eng\.xho:2: .* line 2 of tatoeba.xho-eng.eng"),
        ("a\n \nc\n", "a\nb\nc\n", r"xho-eng\.xho:2: expected a sentence, received none"),
        ("a\n", "", r"xho-eng\.eng:1: expected a sentence, received none"),
    ],
)
def test_errors(tmp_path: Path, foreign: str, english: str, message: str) -> None:
    write(tmp_path, foreign, english)
    with pytest.raises(ValueError, match=message):
        read_tatoeba(tmp_path, "xho")


def test_a_file_is_missing(tmp_path: Path) -> None:
    write(tmp_path, "a\n", "a\n")
    (tmp_path / "tatoeba.xho-eng.eng").unlink()
    with pytest.raises(FileNotFoundError, match=r"tatoeba\.xho-eng\.eng: expected a file"):
        read_tatoeba(tmp_path, "xho")


def test_the_published_files(data_dir: Path) -> None:
    folder = DataFolder(data_dir).find(TATOEBA)
    sizes = {code: len(read_tatoeba(folder, code).foreign) for code in LANGUAGES}
    assert sum(sizes.values()) == 88_877
    assert max(sizes.values()) == sizes["deu"] == 1000
    assert min(sizes, key=sizes.__getitem__) == "tzl"
    assert len([*folder.glob("tatoeba.*-eng.eng")]) == len(LANGUAGES)


def test_groups_have_their_sizes_and_lie_in_each_other() -> None:
    assert all(len(group) == len(set(group)) == size for size, group in GROUPS.items())
    assert set(GROUPS[14]) < set(GROUPS[36]) < set(GROUPS[112]) == set(LANGUAGES)


def test_names_are_unique_and_codes_have_three_letters() -> None:
    assert len(set(LANGUAGES.values())) == 112
    assert all(re.fullmatch("[a-z]{3}", code) for code in LANGUAGES)
    assert list(LANGUAGES) == sorted(LANGUAGES)


def test_xtreme_has_no_malay_and_not_the_five_languages_of_xtreme_r() -> None:
    assert not {"zsm", "aze", "lit", "pol", "ukr", "ron"} & set(GROUPS[36])
