"""STS by the source of the sentences and by the words that two sentences share."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.sbert_defsent.sts_tasks import (
    BY_SHARED_WORDS,
    BY_SOURCE,
    dice_coefficient,
    fifths,
)
from tests.evaluation.test_sts import COUNTS, letters
from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.encode.vector_store import VectorCache
from use_st5.evaluation.sts import STSPair
from use_st5.evaluation.task import TaskContext


@pytest.mark.parametrize(
    ("other", "published"),
    [
        ("The man is playing the guitar.", 0.800),
        ("A guy is playing an instrument.", 0.545),
        ("A man is playing a guitar and singing.", 0.833),
        ("The girl is playing the guitar.", 0.600),
        ("A woman is cutting vegetable.", 0.400),
    ],
)
def test_coefficients_of_the_paper(other: str, published: float) -> None:
    first = "A man is playing a guitar."
    assert round(dice_coefficient(first, other), 3) == published
    assert dice_coefficient(other, first) == dice_coefficient(first, other)


def test_words() -> None:
    assert dice_coefficient("a a b", "b b c") == 2 * 1 / 4  # sets, not bags
    assert dice_coefficient("The U.S. don't!", "(the) u.s, 'Don't'") == 1.0
    assert dice_coefficient("U.S.", "us u s") == 0.0
    assert dice_coefficient("Straße, 1.5 —", "STRASSE 1 5") == 0.0
    assert dice_coefficient("?!", "...") == 1.0
    assert dice_coefficient("?!", "word") == 0.0


# Second sentences for "a b c d", three for each of the coefficients 0, 2/5, 2/3, 6/7 and 1, with
# their gold scores. Of each three, the first is nearest and the third farthest.
BY_HAND = {
    "e": 3, "f": 2, "g": 1,
    "a": 1, "b": 2, "c": 3,
    "a b": 3, "b c": 1, "c d": 2,
    "a b c": 1, "b c d": 3, "c d a": 2,
    "D c b a": 5, "a, b c d": 5, "a b c d.": 0,
}  # fmt: skip


def encode_by_hand(sentences: list[str]) -> np.ndarray:
    places = [[*BY_HAND].index(each) % 3 + 1 if each in BY_HAND else 0 for each in sentences]
    return np.stack([np.cos(places), np.sin(places)], axis=1)


def test_quintiles_by_hand() -> None:
    pairs = [STSPair("a b c d", second, gold) for second, gold in BY_HAND.items()]
    quintiles = fifths(VectorCache(encode_by_hand), pairs[::-1])
    assert [(each["dice_from"], each["dice_to"], each["pairs"]) for each in quintiles] == [
        (value, value, 3) for value in (0, 2 / 5, 2 / 3, 6 / 7, 1)
    ]
    # 1 − 6·Σd² / (n·(n² − 1)), the last with a tie.
    spearman = [each["spearman"] for each in quintiles]
    assert spearman == pytest.approx([1, -1, 1 - 12 / 24, 1 - 36 / 24, 0.75**0.5])
    similarities = np.cos([1.0, 2.0, 3.0])
    assert quintiles[4]["pearson"] == pytest.approx(
        stats.pearsonr(similarities, [5, 5, 0]).statistic
    )


def toy_pairs(count: int) -> list[STSPair]:
    draw = random.Random(0)
    sentences = [" ".join(draw.choices("abcdefgh", k=4)) for _ in range(2 * count)]
    scores = [draw.uniform(0, 5) for _ in range(count)]
    return [STSPair(*each) for each in zip(sentences[::2], sentences[1::2], scores, strict=True)]


def counts_of_letters(sentences: list[str]) -> np.ndarray:
    letters = [[sentence.count(letter) for letter in "abcdefgh"] for sentence in sentences]
    return np.array(letters) * np.geomspace(1, 3, 8)


def test_each_quintile_is_correlated_by_itself() -> None:
    pairs = toy_pairs(103)
    quintiles = fifths(VectorCache(counts_of_letters), pairs)
    assert sum(each["pairs"] for each in quintiles) == 103
    assert {each["pairs"] for each in quintiles} == {20, 21}
    edges = [edge for each in quintiles for edge in (each["dice_from"], each["dice_to"])]
    assert edges == sorted(edges)
    # The edges are sorted coefficients: the order of tied pairs does not change them.
    coefficients = np.array([dice_coefficient(pair.first, pair.second) for pair in pairs])
    assert edges == list(np.sort(coefficients)[[0, 19, 20, 40, 41, 60, 61, 81, 82, 102]])


def test_order_of_pairs_and_scale_of_scores_change_nothing() -> None:
    pairs = toy_pairs(60)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    quintiles = fifths(VectorCache(counts_of_letters), pairs)
    for one, other in zip(quintiles, fifths(VectorCache(counts_of_letters), shuffled), strict=True):
        assert (one["dice_from"], one["dice_to"], one["pairs"]) == (
            other["dice_from"],
            other["dice_to"],
            other["pairs"],
        )
        assert one["spearman"] == pytest.approx(other["spearman"])
        assert one["pearson"] == pytest.approx(other["pearson"])


def test_too_few_pairs() -> None:
    with pytest.raises(ValueError, match="expected at least 10, received 9"):
        fifths(VectorCache(encode_by_hand), [STSPair("a", "b", 1)] * 9)


# Each test gives the gold scores for the cosines 1, 1/2 and 0.
def write_tasks(folder: Path, subset: str, gold: tuple[float, ...]) -> None:
    """Writes three pairs with falling cosines: 1, 1/2, 0."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"STS.input.{subset}.txt").write_text("a b\ta b\na b\ta c\na b\tc d\n")
    (folder / f"STS.gs.{subset}.txt").write_text("".join(f"{score}\n" for score in gold))


def test_mean_over_the_sources_that_are_there(tmp_path: Path) -> None:
    write_tasks(tmp_path / "STS12-en-test", "MSRpar", (5, 4, 0))
    write_tasks(tmp_path / "STS12-en-test", "surprise.OnWN", (0, 1, 2))
    write_tasks(tmp_path / "STS16-en-test", "headlines", (3, 1, 2))
    result = BY_SOURCE.run(TaskContext(VectorCache(letters), DataFolder(tmp_path)))
    assert {name: part["spearman"] for name, part in result.details["sources"].items()} == {
        "STS12 MSRpar": pytest.approx(1.0),
        "STS12 OnWN": pytest.approx(-1.0),
        "STS16 headlines": pytest.approx(0.5),
    }
    assert result.main == "spearman_mean"
    assert result.scores["spearman_mean"] == pytest.approx(0.5 / 3)
    assert result.counts == {"sources": 3, "pairs": 9}
    parts = result.details["sources"].values()
    assert result.scores["pearson_mean"] == pytest.approx(np.mean([p["pearson"] for p in parts]))


def test_no_source(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="at least one of STS12, STS13, STS14, STS15, STS16"):
        BY_SOURCE.run(TaskContext(VectorCache(letters), DataFolder(tmp_path)))


def test_sources_of_the_paper(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = BY_SOURCE.run(context)
    assert {name: part["pairs"] for name, part in result.details["sources"].items()} == {
        # Table 1 does not say which sources were a surprise.
        f"{year} {source.removeprefix('surprise.')}": pairs
        for year, sources in COUNTS.items()
        for source, pairs in sources.items()
    }


# Rows of one split: gold score and second sentence; the first is "a b c d".
SPLITS = {
    "train": [(1, "e"), (0, "f"), (4, "a"), (5, "b")],
    "dev": [(3, "a b"), (3, "c d"), (2, "a b c")],
    "test": [(1, "b c d"), (5, "d c b a"), (4, "A b c d!")],
}


def near_the_alphabet(sentences: list[str]) -> np.ndarray:
    """Similarities to the first sentence fall from "a…" to "f…"."""
    angles = np.array([ord(sentence[0].lower()) - ord("a") for sentence in sentences]) / 4
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def write_by_dice(folder: Path, splits: dict[str, list[tuple[float, str]]]) -> None:
    folder.mkdir()
    for split, rows in splits.items():
        lines = [f"main\tf\t2012\t1\t{score}\ta b c d\t{second}\n" for score, second in rows]
        (folder / f"sts-{split}.csv").write_text("".join(lines))


def test_by_hand_tasks(tmp_path: Path) -> None:
    write_by_dice(tmp_path / "stsbenchmark", SPLITS)
    context = TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path))
    result = BY_SHARED_WORDS.run(context)
    quintiles = result.details["quintiles"]
    assert [(each["dice_from"], each["dice_to"], each["pairs"]) for each in quintiles] == [
        (value, value, 2) for value in (0, 2 / 5, 2 / 3, 6 / 7, 1)
    ]
    # By quintile: similarity orders e and f like gold, a and b unlike gold, two pairs of equal
    # gold scores, "a…" and "b…" like gold, "A…" and "d…" unlike gold.
    expected = {"q1": 1, "q2": -1, "q3": np.nan, "q4": 1, "q5": -1}
    for name, value in expected.items():
        assert result.scores[f"spearman_{name}"] == pytest.approx(value, nan_ok=True)
    assert [each["spearman"] for each in quintiles] == pytest.approx(
        [*expected.values()], nan_ok=True
    )
    assert result.main == "spearman_mean"
    assert np.isnan(result.scores["spearman_mean"])
    assert result.counts == {"pairs": 10}


def test_a_split_is_missing(tmp_path: Path) -> None:
    write_by_dice(tmp_path / "stsbenchmark", {name: SPLITS[name] for name in ("dev", "test")})
    with pytest.raises(MissingDataError, match="STS-B train: expected"):
        BY_SHARED_WORDS.run(TaskContext(VectorCache(near_the_alphabet), DataFolder(tmp_path)))


def test_all_splits_of_the_benchmark(data_dir: Path) -> None:
    context = TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir))
    result = BY_SHARED_WORDS.run(context)
    quintiles = result.details["quintiles"]
    assert [each["pairs"] for each in quintiles] == [1725, 1726, 1725, 1726, 1726]
    assert (quintiles[0]["dice_from"], quintiles[-1]["dice_to"]) == (0, 1)
    scores = [result.scores[f"spearman_q{number}"] for number in range(1, 6)]
    assert result.scores["spearman_mean"] == pytest.approx(np.mean(scores))
