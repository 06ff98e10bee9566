from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.tokenizers import ngram_vocabulary
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

VOCABULARY = NGramVocabulary(
    unigrams=("the", "cat", "é", "a\u200db"),
    bigrams=("the cat", "cat é"),
    unigram_buckets=3,
    bigram_buckets=5,
)


def test_ids_follow_each_other() -> None:
    # Ids: 0 padding, 1 empty, 2-5 unigrams, 6-7 bi-grams, 8-10 and 11-15 buckets.
    assert VOCABULARY.unigram_bucket_id == 8
    assert VOCABULARY.bigram_bucket_id == 11
    assert VOCABULARY.size == 16
    assert NGramVocabulary(unigrams=()).size == 3


def test_file_round_trip_is_one_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.txt"
    VOCABULARY.save(path)
    assert NGramVocabulary.load(path) == VOCABULARY
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0] == (
        "<use_st5 n-gram vocabulary 1> unigrams=4 bigrams=2 unigram_buckets=3 bigram_buckets=5"
    )
    assert lines[1:4] == ["<empty>", "the", "cat"]
    assert lines.index("cat é") == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocabulary.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unigrams": ["a", "b", "a"]}, "once, received 'a'"),
        ({"unigrams": ["a b"]}, "'a b'"),
        ({"unigrams": [""]}, "one token"),
        ({"unigrams": ["a\nb"]}, "one token"),
        ({"unigrams": ["<empty>"]}, "<empty>"),
        ({"unigrams": ["a"], "bigrams": ["a"]}, "two tokens"),
        ({"unigrams": ["a"], "bigrams": ["a  a"]}, "one space"),
        ({"unigrams": ["a"], "bigrams": ["a a", "a a"]}, "once, received 'a a'"),
        ({"unigrams": ["a"], "unigram_buckets": 0}, "received 0 and 0"),
        ({"unigrams": ["a"], "bigram_buckets": -1}, "received 1 and -1"),
    ],
)
def test_malformed_vocabularies_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NGramVocabulary(**arguments)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing.txt"):
        NGramVocabulary.load(tmp_path / "missing.txt")
    path = tmp_path / "words.txt"
    for content in (b"", b"the\ncat\n", b"\xff\xfe\x00", b"x <use_st5 n-gram vocabulary 1>"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="'<use_st5 n-gram vocabulary 1>' at the begin"):
            NGramVocabulary.load(path)


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vocabulary.txt"
    VOCABULARY.save(path)
    monkeypatch.setattr(ngram_vocabulary, "_LARGEST_FILE", 99)
    with pytest.raises(ValueError, match=r"vocabulary.txt: expected up to 99 bytes, received 1"):
        NGramVocabulary.load(path)


def test_cut_and_altered_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.txt"
    VOCABULARY.save(path)
    content = path.read_bytes()
    for altered in (content[:-3], content[:-1], content + b"more\n", content.replace(b"t", b"e")):
        path.write_bytes(altered)
        with pytest.raises(ValueError, match=r"vocabulary.txt"):
            NGramVocabulary.load(path)
    for whole, altered in ((b"unigram_buckets=3", b"unigram_buckets=0"), (b"\nthe\n", b"\nt e\n")):
        path.write_bytes(content.replace(whole, altered))
        with pytest.raises(ValueError, match="vocabulary.txt: Expected"):
            NGramVocabulary.load(path)
