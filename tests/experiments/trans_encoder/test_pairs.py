"""Pairs without labels, and the report of what models learn from them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.trans_encoder import comparison
from experiments.trans_encoder import report as scoring
from experiments.trans_encoder.mined_pairs import mined_pairs
from experiments.trans_encoder.pairs import (
    MinedPool,
    SetPool,
    overlap,
)
from experiments.trans_encoder.train import PUBLISHED_POOL
from tests.experiments.trans_encoder.pair_sets import (
    some_pairs,
    write_mrpc,
    write_semeval,
    write_sick,
    write_stsb,
)
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation import sts as sets
from use_st5.training.trans_encoder import DistilledModel


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


def test_the_papers_pool_by_the_sets_that_are_here(data_dir: Path) -> None:
    """27,084 of its 37,081 pairs; the others are those of STS14 and STS16."""
    folder = DataFolder(data_dir)
    if any(folder.has(each) for each in (sets.STS14, sets.STS16)):
        pytest.skip("counted without STS14 and STS16")
    here = [each for each in PUBLISHED_POOL.sources if folder.has(each)]
    assert len(here) == 9
    pairs = dataclasses.replace(PUBLISHED_POOL, sources=tuple(here)).pairs(data_dir, letters, 0)
    assert len(pairs) == 27_084


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


def test_the_overlap_is_by_words_in_whichever_order() -> None:
    pool = [("A dog.", "a cat"), ("one", "two")]
    found = overlap([("a CAT", "a dog"), ("one", "three"), ("four", "five"), ("six", "one")], pool)
    # The different sentences are: a cat, a dog, one, three, four, five and six.
    assert (found.pairs, found.sentences) == (1 / 4, 3 / 7)
    assert str(found) == "transductive: 25% of pairs, 43% of sentences"
    assert str(overlap([("x", "y")], pool)) == "inductive"


TEXTS = ["a", "b", "c", "d", "e"]

# The lengths differ; b and c point in the same direction, and so do d and e.
VECTORS = np.array([[1, 0, 0], [0, 1, 0.1], [0, 5, 0], [0, 0, 1], [0.1, 0, 9]])


def test_neighbours_are_by_the_cosine_and_no_pair_is_there_twice() -> None:
    pairs = mined_pairs(TEXTS, VECTORS, neighbours=1, others=0)
    assert ("b", "c") in pairs
    assert ("d", "e") in pairs
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert ("c", "b") not in pairs


class Lengths:
    """Encodes a text by its length; scores a pair by the difference of the two lengths."""

    def encode(self, given: object) -> np.ndarray:
        rows = list(given)
        if isinstance(rows[0], str):
            return np.array([[len(text), 1.0] for text in rows])
        return np.array([[len(a) - len(b)] for a, b in rows], np.float32)


def test_both_kinds_are_scored_as_the_tasks_do(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")
    pairs = [("aaaa", "b"), ("a", "bb"), ("aa", "bb"), ("aaa", "b")]
    write_semeval(tmp_path, "12", pairs)
    write_mrpc(tmp_path, pairs)
    sets, missing = scoring.test_sets(tmp_path)
    assert [(each.name, each.metric) for each in sets] == [
        ("sts12", "spearman_all"),
        ("pairs_mrpc", "auc"),
    ]
    assert {"STS13", "STS-B test", "QQP"} <= {*missing}
    similarities = scoring.similarities_of(sets, Lengths(), kind="cross")
    np.testing.assert_allclose(similarities["sts12"], 1 / (1 + np.exp(-np.array([3.0, -1, 0, 2]))))
    # Gold scores 0, 1, 2, 3 and ranks 4, 1, 2, 3: 1 - 6 * (9 + 1 + 1 + 1) / 60. MRPC's classes
    # are 0, 1, 0, 1: one of four comparisons of a positive and a negative pair is right.
    assert scoring.scores_of(sets, similarities) == pytest.approx(
        {"sts12": -0.2, "pairs_mrpc": 0.25}
    )
    cosines = scoring.similarities_of(sets, Lengths(), kind="bi")
    assert cosines["sts12"][2] == pytest.approx(1)
    both = scoring.ensemble_similarities([similarities, cosines])
    np.testing.assert_allclose(both["sts12"], (similarities["sts12"] + cosines["sts12"]) / 2)


def test_the_report_has_sets_means_and_the_course() -> None:
    def of_set(name: str, title: str, seed: int) -> scoring.TestSet:
        return scoring.TestSet(name, title, "spearman_all", some_pairs(4, seed), lambda each: 0.0)

    sets = [of_set("sts12", "STS12", 1), of_set("stsb", "STS-B test", 2), of_set("x", "X", 3)]
    scores = {"start": {"sts12": 0.5, "stsb": 0.7, "x": 0.9}}
    models = [DistilledModel("minilm", "cross", 1, 0.81234, 200, None)]
    text = scoring.report("Title", sets, ["STS14"], some_pairs(4, 1), scores, models)
    lines = text.splitlines()
    assert "| STS12 | 4 | transductive: 100% of pairs, 100% of sentences | 50.00 |" in lines
    assert "| mean |  |  | 70.00 |" in lines
    assert "| mean of those without a pair in the pool |  |  | 80.00 |" in lines
    assert "| 1 | minilm, cross | 81.23 | 200 |" in lines
    assert "Not in the data folder: STS14." in lines


class Fake:
    """A variant whose scores follow from its seed."""

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.seeds: list[int] = []

    def run(self, data: Path, output: Path, *, seed: int, **given: Any) -> dict[str, float]:
        assert given["pretrained"] == Path("bert")
        self.seeds.append(seed)
        start, bi = 0.5 + seed / 100, 0.5 + seed / 100 + self.gain
        scores = {"start/stsb": start, "bi/stsb": bi, "start/pairs_mrpc": 0.6, "bi/pairs_mrpc": 0.7}
        output.mkdir(parents=True)
        (output / "scores.json").write_text(json.dumps(scores))
        return scores


@pytest.fixture
def variants(monkeypatch: pytest.MonkeyPatch) -> dict[str, Fake]:
    made = {"self": Fake(0.02), "self_more": Fake(0.04)}
    monkeypatch.setattr(comparison.trans_encoder, "VARIANTS", made)
    return made


def test_variants_and_seeds_come_into_one_table(variants: dict[str, Fake], tmp_path: Path) -> None:
    given: dict[str, Any] = {"pretrained": Path("bert"), "variants": [*variants]}
    scores = comparison.run(tmp_path, tmp_path / "out", seeds=2, **given)
    assert scores["self: bi/stsb"] == pytest.approx(0.525)
    lines = (tmp_path / "out/tables.md").read_text().splitlines()
    assert "| self: start | 2 | 50.50 ± 0.71 | 50.50 ± 0.71 |" in lines
    assert "| self_more: bi | 2 | 4.00 ± 0.00 | 4.00 ± 0.00 |" in lines, "the gain"
    assert "| self: bi | 2 | 70.00 ± 0.00 | 70.00 ± 0.00 |" in lines, "of pairs"
    # Existing runs are not made again; the next seed is added.
    comparison.run(tmp_path, tmp_path / "out", seeds=3, **given)
    assert [each.seeds for each in variants.values()] == [[0, 1, 2]] * 2
