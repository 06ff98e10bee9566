from __future__ import annotations

import zipfile
from pathlib import Path

from use_st5.evaluation.preparation.downloads import Downloads
from use_st5.evaluation.preparation.senteval import senteval_sets


def prepared(folder: Path) -> dict[str, dict[str, bytes]]:
    return {each.place: each.files for each in senteval_sets(Downloads(folder))}


def test_sentences_are_tokenised_line_by_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "datasmall_NB_ACL12.zip", "w") as archive:
        for place, names in {
            "rt10662": ("rt-polarity.pos", "rt-polarity.neg"),
            "customerr": ("custrev.pos", "custrev.neg"),
            "mpqa": ("mpqa.pos", "mpqa.neg"),
            "subj": ("subj.subjective", "subj.objective"),
        }.items():
            for name in names:
                text = f"it's {name} .\n\nclich\xe9! \n"
                archive.writestr(f"data/{place}/{name}", text.encode("latin-1"))
    sets = prepared(tmp_path)
    assert sorted(sets) == ["CR", "MPQA", "MR", "SUBJ"]
    assert sorted(sets["CR"]) == ["custrev.neg", "custrev.pos"]
    assert sets["MR"]["rt-polarity.pos"] == b"it 's rt-polarity.pos . \n\nclichM-i ! \n"


def test_questions_lose_quotes_alone(tmp_path: Path) -> None:
    (tmp_path / "train_5500.label").write_bytes(b"DESC:def What 's `` it '' \xf0 ?\n")
    assert prepared(tmp_path) == {}, "half of a set is none"
    (tmp_path / "TREC_10.label").write_bytes(b'NUM:dist "How far" ?\n')
    assert prepared(tmp_path) == {
        "TREC": {
            "train_5500.label": b"DESC:def What s  it  \xf0 ?\n",
            "TREC_10.label": b'NUM:dist "How far" ?\n',
        }
    }


def test_sentiment_gets_sentevals_names(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"stsa.fine.{split}").write_text(f"4 fine {split}", encoding="utf-8")
        (tmp_path / f"sentiment-{split}").write_text(f"binary {split}\t1", encoding="utf-8")
    sets = prepared(tmp_path)
    assert sorted(sets) == ["SST/binary", "SST/fine"]
    assert sets["SST/fine"]["sentiment-dev"] == b"4 fine dev"
    assert sets["SST/binary"]["sentiment-dev"] == b"binary dev\t1"


def test_what_is_prepared_already_comes_through_as_it_is(data_dir: Path) -> None:
    """Tokens of tokens are the same for TREC, which is only rid of quotes that it has no more."""
    trec = data_dir / "senteval" / "downstream" / "TREC"
    sets = prepared(trec)
    for name, content in sets["TREC"].items():
        assert content == (trec / name).read_bytes()
