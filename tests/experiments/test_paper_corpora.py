"""The corpora of SBERT's and DefSent's papers, read from files of their publishers' formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.corpora import CORPORA
from experiments.paper_corpora import SNLI, paper_definitions, paper_pairs
from tests.corpora_folder import write_paper_corpora

TXT_HEAD = (
    "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
    "sentence2_parse\tsentence1\tsentence2\tcaptionID\tpairID\tlabel1\tlabel2\n"
)
TXT_ROW = 'neutral\t( a )\t( b )\t(R)\t(R)\tHe says "go\tShe sings\t1.jpg#0\t1n\tneutral\t\n'


def test_pairs_of_both_corpora_without_those_that_have_no_label(tmp_path: Path) -> None:
    write_paper_corpora(tmp_path)
    read = [*paper_pairs(tmp_path)]
    assert [pair["label"] for pair in read] == [0, 1, 2] * 2
    assert read[0] == {"premise": "A man runs.", "hypothesis": "A man moves.", "label": 0}


def test_the_txt_is_read_where_there_is_no_jsonl(tmp_path: Path) -> None:
    write_paper_corpora(tmp_path)
    folder = tmp_path / "snli_1.0"
    (folder / "snli_1.0_train.txt").write_text(TXT_HEAD + TXT_ROW)
    assert len([*SNLI.examples(tmp_path)]) == 3, "of the two formats one"
    (folder / "snli_1.0_train.jsonl").unlink()
    assert [*SNLI.examples(tmp_path)] == [
        {"premise": 'He says "go', "hypothesis": "She sings", "label": 1}
    ]


def test_definitions_are_joined_as_defsent_joins_them(tmp_path: Path) -> None:
    """Words lose the number of their sense; the three parts are read, but not the example files."""
    write_paper_corpora(tmp_path)
    assert {(each["word"], each["definition"]) for each in paper_definitions(tmp_path)} == {
        ("guitar", "music that one plays (a Fine kind); music."),
        ("dog", "an animal that runs, eats, and barks"),
        ("dog", "a ’bad’ person's name"),
        ("old dog", "another person"),
    }


@pytest.mark.parametrize("name", ["snli", "multinli", "oxford"])
def test_each_is_listed_and_named_where_it_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name):
        CORPORA[name].examples(tmp_path)
