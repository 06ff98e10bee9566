from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from use_st5.evaluation.preparation.downloads import Downloads
from use_st5.evaluation.preparation.senteval import penn_tokens, read_senteval


def prepared(folder: Path) -> dict[str, dict[str, bytes]]:
    return read_senteval(Downloads(folder))


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


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        # The first line of MR as it is published, and as SentEval has it.
        (
            "the rock is destined to be the 21st century's new \" conan \" and that he's going "
            "to make a splash even greater than arnold schwarzenegger , jean-claud van damme or "
            "steven segal . ",
            "the rock is destined to be the 21st century 's new `` conan `` and that he 's going "
            "to make a splash even greater than arnold schwarzenegger , jean-claud van damme or "
            "steven segal . ",
        ),
        ('"Yes," he said...', "`` Yes , '' he said ... "),
        ("Mr. Smith (of J.P. Ltd.)", "Mr. Smith ( of J.P. Ltd . ) "),
        ('He left ("now.")', "He left ( `` now . '' ) "),
        ("He said (so.)", "He said ( so . ) "),
        ("Why?! It costs $1,000--or 5%.", "Why ? ! It costs $ 1 , 000 -- or 5 % . "),
        ("they're we'll I'd won't THEY'LL DON'T", "they 're we 'll I 'd wo n't THEY 'LL DO N'T "),
        ("the dogs' bowls 'quoted'", "the dogs ' bowls 'quoted ' "),
        ("Cannot gonna gimme 'tis", "Can not gon na gim me 't is "),
        ("d'ye want more'n that? wanna", "d' ye want more 'n that ? wan na "),
        ("  a \t b  ", "a \t b "),
        ("", ""),
    ],
)
def test_tokens_worked_out_by_hand(line: str, tokens: str) -> None:
    assert penn_tokens(line.encode()) == tokens.encode()


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("clichés".encode("latin-1"), b"clichM-is "),  # as SentEval's MR has it
        ("clichés".encode(), b"clichM-CM- ) s "),  # the byte A9 becomes "M-)"
        (b"a\x01b\x7fc\x89d\xff\r", b"a^Ab^ ? cM-^IdM-^ ? ^M "),
    ],
)
def test_bytes_beyond_ascii_are_shown_and_then_split(line: bytes, tokens: bytes) -> None:
    assert penn_tokens(line) == tokens


@pytest.mark.skipif(shutil.which("cat") is None, reason="needs cat -v")
def test_every_byte_is_shown_as_cat_does() -> None:
    letters = [bytes([byte]) for byte in range(256) if byte != 10]
    lines = b"\n".join(b"x" + letter + b"x" for letter in letters) + b"\n"
    shown = subprocess.run(["cat", "-v"], input=lines, capture_output=True, check=True).stdout
    if b"M-" not in shown:
        pytest.skip("this cat knows no -v")
    for letter, want in zip(letters, shown.splitlines(), strict=True):
        assert penn_tokens(b"x" + letter + b"x") == penn_tokens(want)


def test_real_sentences_become_sentevals(data_dir: Path) -> None:
    """SNLI's sentences raw (in a set made of them) and as SentEval's script left them."""
    raw = data_dir / "nli" / "cad_snli" / "NLI" / "original" / "test.tsv"
    tokenised = data_dir / "senteval" / "downstream" / "SNLI"
    if not raw.is_file() or not tokenised.is_dir():
        pytest.skip("needs real data: nli/cad_snli and SentEval's SNLI")
    known = {
        line
        for name in ("s1.test", "s2.test", "s1.dev", "s2.dev")
        for line in (tokenised / name).read_bytes().split(b"\n")
    }
    letters = {line.translate(None, b" \"'`") for line in known}
    lines = raw.read_bytes().split(b"\n")[1:]
    sentences = {field for line in lines for field in line.split(b"\t")[:2]}
    # The set quotes what holds quotes, as CSV does.
    shared = {
        sentence
        for sentence in sentences
        if b'""' not in sentence and sentence.translate(None, b" \"'`") in letters
    }
    assert len(shared) > 500
    assert not {sentence for sentence in shared if penn_tokens(sentence) not in known}
