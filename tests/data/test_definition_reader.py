from __future__ import annotations

from pathlib import Path

from use_st5.data.definition_reader import DefinitionReader


def test_with_and_without_an_example(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("AD\tadverb\tin the Christian era\t\n'tween\tr\tin between\nAD\tn\t\tx\n")
    reader = DefinitionReader(path, max_malformed=0.5)
    assert list(reader) == [
        {
            "word": "AD",
            "part_of_speech": "adverb",
            "definition": "in the Christian era",
            "example": "",
        },
        {"word": "'tween", "part_of_speech": "r", "definition": "in between", "example": ""},
    ]
    assert reader.report.offences == [f"{path}:3: no text in 'definition'"]


def test_real_dictionaries(data_dir: Path) -> None:
    for name, rows in (("oewn", 185_152), ("wordset", 113_368)):
        reader = DefinitionReader(data_dir / f"{name}_definitions.tsv", strict=True)
        assert sum(1 for _ in reader) == reader.report.rows == rows
