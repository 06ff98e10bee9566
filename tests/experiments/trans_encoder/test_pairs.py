from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from experiments.trans_encoder.pairs import (
    FilePool,
    MinedPool,
    SetPool,
    distinct,
    given_pool,
    overlap,
)
from experiments.trans_encoder.train import PUBLISHED_POOL
from tests.experiments.trans_encoder.pair_sets import write_semeval, write_sick, write_stsb
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation import sts as sets


def letters(texts: list[str]) -> np.ndarray:
    return np.array([np.bincount(bytearray(t, "utf-8"), minlength=256) for t in texts], float)


def test_sets_give_each_pair_once_and_none_that_is_tested(tmp_path: Path) -> None:
    write_stsb(tmp_path, "train", [("A dog.", "a cat"), ("One two", "three"), ("a cat", "a dog")])
    write_sick(tmp_path, "train", [("A cat!", "A DOG"), ("four", "five")])
    write_stsb(tmp_path, "test", [("three", "one two."), ("six", "seven")])
    pool = SetPool(
        (sets.STSB_TRAIN, sets.SICK_TRAIN), without=(sets.STSB_TEST, sets.STS14, sets.STSB_DEV)
    )
    assert pool.pairs(tmp_path, letters, 0) == [("A dog.", "a cat"), ("four", "five")]
    with pytest.raises(FileNotFoundError, match="STS12"):
        SetPool((sets.STS12,)).pairs(tmp_path, letters, 0)


def test_the_complete_pool_has_unscored_pairs_and_both_orders(tmp_path: Path) -> None:
    write_semeval(tmp_path, "15", [("one", "two"), ("three", "four"), ("one", "two")])
    gold = tmp_path / "STS15-en-test" / "STS.gs.news.txt"
    gold.write_text("3\n\n3\n", encoding="utf-8")  # The second has no score.
    write_stsb(tmp_path, "dev", [("two", "one"), ("One", "two"), ("one", "two")])
    sources = (sets.STS15, sets.STSB_DEV)
    assert SetPool(sources).pairs(tmp_path, letters, 0) == [("one", "two")]
    assert SetPool(sources, complete=True).pairs(tmp_path, letters, 0) == [
        ("one", "two"), ("three", "four"), ("two", "one"), ("One", "two"),
    ]  # fmt: skip


def test_the_papers_pool_by_the_sets_that_are_here(data_dir: Path) -> None:
    """27,084 of its 37,081 pairs; the others are those of STS14 and STS16."""
    folder = DataFolder(data_dir)
    if any(folder.has(each) for each in (sets.STS14, sets.STS16)):
        pytest.skip("counted without STS14 and STS16")
    here = [each for each in PUBLISHED_POOL.sources if folder.has(each)]
    assert len(here) == 9
    pairs = dataclasses.replace(PUBLISHED_POOL, sources=tuple(here)).pairs(data_dir, letters, 0)
    assert len(pairs) == 27_084


def test_of_a_limit_so_many_are_drawn_by_the_seed(tmp_path: Path) -> None:
    every = [(f"one {i}", f"two {i}") for i in range(40)]
    write_stsb(tmp_path, "train", every)
    few = SetPool((sets.STSB_TRAIN,), limit=10)
    drawn = few.pairs(tmp_path, letters, 0)
    assert len(drawn) == 10
    assert drawn == [pair for pair in every if pair in drawn], "in the order of the set"
    assert drawn == few.pairs(tmp_path, letters, 0) != few.pairs(tmp_path, letters, 1)
    more = SetPool((sets.STSB_TRAIN,), limit=99)
    assert more.pairs(tmp_path, letters, 0) == every


def test_pairs_are_mined_without_what_is_tested(tmp_path: Path) -> None:
    held = "the dog sees a cat"
    write_stsb(tmp_path, "dev", [(held, "x y z")])
    words = ("dog", "cat", "cow", "hen", "pig")
    texts = [f"The {one} sees a {other}." for one in words for other in words]
    (tmp_path / "mine.txt").write_text("\n".join([*texts, "Short.", "long " * 40]))
    pool = MinedPool(text=tmp_path / "mine.txt", sentences=20)
    pairs = pool.pairs(tmp_path, letters, 0)
    used = {text for pair in pairs for text in pair}
    assert len(used) == 20
    assert used <= {*texts} - {"The dog sees a cat."}
    assert pairs == pool.pairs(tmp_path, letters, 0)
    assert {*pool.pairs(tmp_path, letters, 1)} != {*pairs}


def test_corpora_share_the_sentences(corpora: Path) -> None:
    pool = MinedPool(sentences=12, words=(3, 8))
    used = {text for pair in pool.pairs(corpora, letters, 0) for text in pair}
    # Six are of the novels; Wikipedia has only one.
    assert len(used) == 6 + 1


def test_a_users_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("one\ttwo\nTwo!\tone\nthree\tfour\n")
    assert FilePool(path).pairs(tmp_path, letters, 0) == [("one", "two"), ("three", "four")]
    for wrong, said in (("one\n", "pairs.tsv:1"), ("a\t\n", "pairs.tsv:1"), ("", "no rows")):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=said):
            FilePool(path).pairs(tmp_path, letters, 0)


def test_what_the_run_is_given_stands_in_place_of_the_usual_pairs(tmp_path: Path) -> None:
    usual = SetPool((sets.STS12,))
    assert given_pool(usual, None, None) is usual
    assert given_pool(usual, tmp_path, None) == FilePool(tmp_path)
    assert given_pool(usual, None, tmp_path) == MinedPool(text=tmp_path)
    mined = MinedPool(sentences=9)
    assert given_pool(mined, None, tmp_path) == MinedPool(sentences=9, text=tmp_path)
    with pytest.raises(ValueError, match="--pairs or --text, received both"):
        given_pool(usual, tmp_path, tmp_path)


def test_the_overlap_is_by_words_in_whichever_order() -> None:
    pool = [("A dog.", "a cat"), ("one", "two")]
    found = overlap([("a CAT", "a dog"), ("one", "three"), ("four", "five"), ("six", "one")], pool)
    # The different sentences are: a cat, a dog, one, three, four, five and six.
    assert (found.pairs, found.sentences) == (1 / 4, 3 / 7)
    assert str(found) == "transductive: 25% of pairs, 43% of sentences"
    assert str(overlap([("x", "y")], pool)) == "inductive"


def test_equal_pairs_are_one() -> None:
    assert [*distinct([("a", "b"), ("b", "a."), ("a", "a"), ("a", "c")])] == [
        ("a", "b"), ("a", "a"), ("a", "c"),
    ]  # fmt: skip
