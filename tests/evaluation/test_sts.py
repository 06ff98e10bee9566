"""Semantic textual similarity in English: readers, protocol and tasks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance
from scipy.spatial.distance import pdist

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder
from use_st5.encode.vector_store import Encode, VectorCache
from use_st5.evaluation import sts
from use_st5.evaluation.sts import (
    STS16,
    SUITE,
    TASKS,
    STSPair,
    STSSet,
    alignment,
    evaluate_sts,
    read_semeval_sts,
    read_sick,
    read_sts,
    read_stsb,
    uniformity,
)
from use_st5.evaluation.task import TaskContext, TaskResult


def suite(path: Path) -> dict[str, STSSet]:
    """The sets of a folder by name."""
    folder = DataFolder(path)
    return {source.name: read_sts(folder, source) for source in SUITE if folder.has(source)}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"


def test_semeval_skips_lines_without_gold(tmp_path: Path) -> None:
    write(tmp_path / "STS.input.news.txt", 'a "b\tc\nd\u2028e\tf\x85g\nh\ti\n')
    write(tmp_path / "STS.gs.news.txt", "4.5\n\n0\n")
    write(tmp_path / "STS.input.surprise.OnWN.txt", "j\tk \n")
    write(tmp_path / "STS.gs.surprise.OnWN.txt", "5.000")
    write(tmp_path / "STS.gs.SMT.txt", "1\n")
    write(tmp_path / "STS.gs.ALL.txt", "1\n2\n")
    data = read_semeval_sts(tmp_path)
    assert data.name == tmp_path.name
    assert data.subsets == {
        "news": [STSPair('a "b', "c", 4.5), STSPair("h", "i", 0.0)],
        "surprise.OnWN": [STSPair("j", "k", 5.0)],
    }
    assert len(data.pairs) == 3


def test_semeval_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected files STS\.input"):
        read_semeval_sts(tmp_path)
    write(tmp_path / "STS.input.x.txt", "a\tb\nc\td\n")
    with pytest.raises(FileNotFoundError, match=r"STS\.gs\.x\.txt: expected a file"):
        read_semeval_sts(tmp_path)
    gold = write(tmp_path / "STS.gs.x.txt", "1\n2\n3\n")
    with pytest.raises(ValueError, match=r"gs\.x\.txt: expected 2 lines"):
        read_semeval_sts(tmp_path)
    write(gold, "1\nhigh\n")
    with pytest.raises(ValueError, match=r"gs\.x\.txt:2: expected a score .*, received 'high'"):
        read_semeval_sts(tmp_path)
    write(gold, "\n\n")
    with pytest.raises(ValueError, match=r"expected pairs with scores, received none for \['x'\]"):
        read_semeval_sts(tmp_path)
    write(gold, "1\n2\n")
    write(tmp_path / "STS.input.x.txt", "a\tb\nc d\n")
    with pytest.raises(ValueError, match=r"x\.txt:2: expected at least 2 tab-separated fields"):
        read_semeval_sts(tmp_path)


def test_stsb_has_no_quoting_and_may_have_more_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "sts-dev.csv",
        'main-news\tMSRpar\t2012test\t0001\t5.000\t"A, b\tC "d"\n'
        "main-captions\tMSRvid\t2012test\t0002\t0.5\te\tf\tlicence\tmore\n"
        "main-news\tMSRpar\t2012test\t0003\t1\tg\th\n",
    )
    data = read_stsb(path)
    assert data.name == "sts-dev"
    assert data.subsets == {
        "main-news": [STSPair('"A, b', 'C "d"', 5.0), STSPair("g", "h", 1.0)],
        "main-captions": [STSPair("e", "f", 0.5)],
    }
    shifted = path.read_text().replace("MSRpar", "\tMSRpar", 1)
    with pytest.raises(ValueError, match=r"s\.csv:1: expected 7 or 9 .* received 8: 'main-news"):
        read_stsb(write(tmp_path / "s.csv", shifted))
    with pytest.raises(ValueError, match=r"b\.csv:1: expected at least 7 .* received 1: 'a,b,c'"):
        read_stsb(write(tmp_path / "b.csv", "a,b,c\n"))
    with pytest.raises(ValueError, match="expected pairs of sentences, found none"):
        read_stsb(write(tmp_path / "c.csv", "\n"))
    with pytest.raises(FileNotFoundError, match="expected a file"):
        read_stsb(tmp_path / "none.csv")


def test_sick_by_its_header(tmp_path: Path) -> None:
    path = write(tmp_path / "SICK_trial.txt", SICK + "4\tA b\tC d\t3.6\tCONTRADICTION\r\n\r\n")
    assert read_sick(path).subsets == {"all": [STSPair("A b", "C d", 3.6)]}
    bad = write(tmp_path / "b.txt", "pair_ID\tsentence_A\n1\ta\n")
    with pytest.raises(ValueError, match="sentence_B, relatedness_score missing"):
        read_sick(bad)


ARCHIVED = {  # The names of the folders in SemEval's archives.
    12: "test-gold",
    13: "test-gs",
    14: "sts-en-test-gs-2014",
    15: "test_evaluation_task2a",
    16: "sts2016-english-with-gs-v1.0",
}


@pytest.mark.parametrize(
    "layout",
    [
        "{archived}",
        "STS{year}/{archived}",
        "STS{year}-en-test/{archived}",
        "downloads/STS20{year}-en-test/{archived}",
        "STS/STS{year}-en-test",  # as SentEval's script leaves them
        "STS{year}",
    ],
)
def test_years_in_the_layouts_that_archives_and_scripts_leave(tmp_path: Path, layout: str) -> None:
    for year, archived in ARCHIVED.items():
        folder = tmp_path / layout.format(year=year, archived=archived)
        prefix = "STS2016" if year == 16 and folder.name == archived else "STS"
        write(folder / f"{prefix}.input.news.txt", f"a {year}\tb\n")
        write(folder / f"{prefix}.gs.news.txt", "1\n")
        write(folder / "correlation.pl", "no data")
    (tmp_path / "STS13-en-test").mkdir(exist_ok=True)  # its name is found, but it has no files
    sets = suite(tmp_path)
    assert {name: data.pairs[0].first for name, data in sets.items()} == {
        f"STS{year}": f"a {year}" for year in ARCHIVED
    }
    hashed = DataFolder(tmp_path).hashes([STS16])
    assert [Path(file).name.split(".", 1)[1] for file in hashed] == [
        "gs.news.txt",
        "input.news.txt",
    ]


# The published numbers of pairs, without the years that the data folder lacks.
COUNTS = {
    "STS12": {
        "MSRpar": 750,
        "MSRvid": 750,
        "SMTeuroparl": 459,
        "surprise.OnWN": 750,
        "surprise.SMTnews": 399,
    },
    "STS13": {"FNWN": 189, "OnWN": 561, "headlines": 750},
    "STS15": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
}


def test_published_counts(data_dir: Path) -> None:
    sets = suite(data_dir)
    for name, counts in COUNTS.items():
        assert {subset: len(each) for subset, each in sets[name].subsets.items()} == counts
    assert {name: len(data.pairs) for name, data in sets.items()} == {
        "STS12": 3108,
        "STS13": 1500,
        "STS15": 3000,
        "STS-B dev": 1500,
        "STS-B test": 1379,
        "SICK-R test": 4927,
    }
    stsb = data_dir / "sts_raw" / "stsbenchmark"
    assert len(read_stsb(stsb / "sts-train.csv").pairs) == 5749
    assert len(read_sick(data_dir / "sick2014" / "SICK_train.txt").pairs) == 4500
    assert len(read_sick(data_dir / "sick2014" / "SICK_trial.txt").pairs) == 500
    for data in sets.values():
        for pair in (pair for subset in data.subsets.values() for pair in subset):
            assert 0 <= pair.score <= 5
            assert pair.first
            assert pair.second


# Places on the unit circle in degrees: the angle between two sentences is their difference.
ANGLES = {"a": 0.0, "b": 30.0, "c": 90.0, "d": 180.0, "e": 45.0}


def encode(sentences: list[str]) -> np.ndarray:
    radians = np.deg2rad([ANGLES[sentence] for sentence in sentences])
    # Lengths must not matter for cosine and angular similarity.
    lengths = np.arange(1, len(sentences) + 1)[:, None]
    return np.stack([np.cos(radians), np.sin(radians)], axis=1) * lengths


def pairs(*rows: tuple[str, str, float]) -> list[STSPair]:
    return [STSPair(*row) for row in rows]


TWO = STSSet(
    "toy",
    {
        # Cosines 1, cos 30, 0: the gold order is the same.
        "x": pairs(("a", "a", 5), ("a", "b", 4), ("a", "c", 1)),
        # Cosines cos 45, -1: the gold order is the reverse.
        "y": pairs(("a", "e", 0), ("a", "d", 5)),
    },
)


def test_by_hand() -> None:
    (score,) = evaluate_sts(encode, TWO)
    # Similarities 1, .866, 0, .707, -1 have ranks 5 4 2 3 1; gold 5 4 1 0 5 has 4.5 3 2 1 4.5.
    ranks, gold = np.array([5, 4, 2, 3, 1]), np.array([4.5, 3, 2, 1, 4.5])
    expected = np.sum((ranks - 3) * (gold - 3)) / math.sqrt(10 * np.sum((gold - 3) ** 2))
    assert score.spearman == pytest.approx(
        {"all": expected, "mean": 0.0, "wmean": 3 / 5 - 2 / 5, "x": 1.0, "y": -1.0}
    )
    x = np.array([1, math.sqrt(3) / 2, 0]) - (1 + math.sqrt(3) / 2) / 3
    g = np.array([5, 4, 1]) - 10 / 3
    pearson = float(x @ g / math.sqrt((x @ x) * (g @ g)))
    assert score.pearson["x"] == pytest.approx(pearson)
    assert score.pearson["wmean"] == pytest.approx(3 / 5 * pearson - 2 / 5)


def test_angular_keeps_ranks_and_is_linear_in_the_angle() -> None:
    data = pairs(("a", "a", 180), ("a", "b", 150), ("a", "c", 90), ("a", "d", 0), ("a", "e", 135))
    cosine, angular = evaluate_sts(encode, data, metrics=("cosine", "angular"))
    assert angular.spearman == pytest.approx(cosine.spearman)
    assert angular.pearson["all"] == pytest.approx(1.0)
    assert cosine.pearson["all"] < 0.995


def test_dot_uses_lengths() -> None:
    data = pairs(("a", "b", 1), ("b", "c", 2))
    cosine, dot = evaluate_sts(encode, data, metrics=("cosine", "dot"))
    # cos 30 · 1 · 2 against cos 60 · 2 · 3.
    assert (cosine.spearman["all"], dot.spearman["all"]) == pytest.approx((-1, 1))


def test_constant_similarity_or_gold_is_not_a_number() -> None:
    data = pairs(("a", "a", 1), ("b", "b", 2))
    (score,) = evaluate_sts(lambda s: np.ones((len(s), 3)), data)
    assert math.isnan(score.spearman["all"])
    assert math.isnan(score.pearson["all"])
    (score,) = evaluate_sts(encode, pairs(("a", "b", 3), ("a", "c", 3)))
    assert math.isnan(score.spearman["all"])


def test_what_is_refused() -> None:
    data = TWO.subsets["x"]
    with pytest.raises(
        ValueError, match=r"expected an array of shape \[3, dim\], received \[2, 2\]"
    ):
        evaluate_sts(lambda s: encode(s)[:-1], data)
    with pytest.raises(ValueError, match="NaN or infinity for 'b'"):
        evaluate_sts(lambda s: np.array([[np.nan if x == "b" else 1.0] for x in s]), data)
    with pytest.raises(ValueError, match="Unknown metric: 'euclidean'"):
        evaluate_sts(encode, data, metrics=("euclidean",))
    for few in (data[:1], [], STSSet("empty", {})):
        with pytest.raises(ValueError, match="at least two pairs in each subset"):
            evaluate_sts(encode, few)


def random_set(seed: int) -> STSSet:
    """Two subsets whose gold scores have ties."""
    draw = random.Random(seed)
    some = [
        STSPair(*draw.choices([*ANGLES], k=2), score=draw.choice([0, 1.5, 2.2, 3, 4.8, 5]))
        for _ in range(50)
    ]
    return STSSet("random", {"x": some[:20], "y": some[20:]})


def with_scores(data: STSSet, scale: Callable[[float], float]) -> STSSet:
    subsets = {
        name: [replace(pair, score=scale(pair.score)) for pair in subset]
        for name, subset in data.subsets.items()
    }
    return STSSet(data.name, subsets)


@pytest.mark.parametrize("seed", range(3))
def test_a_monotone_map_of_the_scores_leaves_spearman_and_a_linear_one_pearson(seed: int) -> None:
    data = random_set(seed)
    (score,) = evaluate_sts(encode, data)
    (monotone,) = evaluate_sts(encode, with_scores(data, lambda gold: math.exp(gold) - 7))
    (linear,) = evaluate_sts(encode, with_scores(data, lambda gold: gold / 5))
    (reversed_,) = evaluate_sts(encode, with_scores(data, lambda gold: 5 - gold))
    assert monotone.spearman == pytest.approx(score.spearman)
    assert monotone.pearson["all"] != pytest.approx(score.pearson["all"], abs=1e-3)
    assert linear.pearson == pytest.approx(score.pearson)
    for kind in ("spearman", "pearson"):
        expected = {name: -value for name, value in getattr(score, kind).items()}
        assert getattr(reversed_, kind) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_permuting_pairs_or_swapping_their_sentences_changes_nothing(seed: int) -> None:
    data, draw = random_set(seed), random.Random(seed)
    permuted = STSSet(
        data.name,
        {
            name: [
                replace(pair, first=pair.second, second=pair.first) if draw.random() < 0.5 else pair
                for pair in draw.sample(pairs, len(pairs))
            ]
            for name, pairs in reversed(data.subsets.items())
        },
    )
    metrics = ("cosine", "angular")
    scores = (evaluate_sts(encode, each, metrics=metrics) for each in (data, permuted))
    for one, other in zip(*scores, strict=True):
        assert one.spearman == pytest.approx(other.spearman)
        assert one.pearson == pytest.approx(other.pearson)


def test_a_zero_vector_is_similar_to_nothing() -> None:
    # As in SentEval, an undefined cosine counts as 0: between 1 (a, a) and −1 (a, d).
    def zero_for_c(sentences: list[str]) -> np.ndarray:
        return encode(sentences) * np.array([[sentence != "c"] for sentence in sentences])

    data = pairs(("a", "a", 5), ("c", "c", 3), ("b", "c", 3), ("a", "d", 0))
    (score,) = evaluate_sts(zero_for_c, data)
    assert score.spearman["all"] == pytest.approx(1.0)


def test_real_file_against_scipy(data_dir: Path) -> None:
    """The test itself reads, embeds (with counts of words) and correlates the development split."""
    task = next(task for task in TASKS if task.name == "stsb_dev")
    result = task.run(TaskContext(VectorCache(BagOfWords().encode), DataFolder(data_dir)))
    path = data_dir / "sts_raw" / "stsbenchmark" / "sts-dev.csv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    encode, genres = BagOfWords().encode, [row[0] for row in rows]
    first, second = (encode([row[column] for row in rows]).astype(np.float64) for column in (5, 6))
    cosines = np.array([1 - distance.cosine(u, v) for u, v in zip(first, second, strict=True)])
    cosines = cosines.round(12)  # restores ties that SciPy's rounding errors break
    gold = np.array([float(row[4]) for row in rows])
    expected = stats.spearmanr(cosines, gold).statistic
    assert result.scores["spearman_all"] == pytest.approx(expected, abs=2e-5)
    expected = stats.pearsonr(cosines, gold).statistic
    assert result.scores["pearson_all"] == pytest.approx(expected, abs=1e-9)
    parts = [np.array(genres) == genre for genre in dict.fromkeys(genres)]
    each = [stats.pearsonr(cosines[part], gold[part]).statistic for part in parts]
    weighted = np.average(each, weights=[part.sum() for part in parts])
    assert result.scores["pearson_wmean"] == pytest.approx(weighted)
    assert result.scores["pearson_mean"] == pytest.approx(np.mean(each))


# Lengths do not count, only directions: east, north, west and 60 degrees from east.
DIRECTIONS = {"e": [2.0, 0.0], "n": [0.0, 3.0], "w": [-1.0, 0.0], "s": [0.5, math.sqrt(0.75)]}
NEAR_AND_FAR = [
    STSPair("e", "n", 4.5),  # squared distance 2
    STSPair("e", "s", 4.0),  # 1
    STSPair("e", "e", 5.0),  # 0
    STSPair("e", "w", 3.9),  # 4
    STSPair("n", "e", 0.0),  # 2
]


def encode_directions(sentences: list[str]) -> np.ndarray:
    return np.array([DIRECTIONS[sentence] for sentence in sentences])


def measured(encode: Encode, pairs: list[STSPair]) -> TaskResult:
    context = TaskContext(VectorCache(encode), DataFolder("."))
    return TASKS[-1].score(context, STSSet("toy", {"all": pairs}))


def test_geometry_by_hand() -> None:
    score = measured(encode_directions, NEAR_AND_FAR)
    assert score.scores["alignment_above_4"] == pytest.approx((2 + 0) / 2)
    assert score.scores["alignment_from_4"] == pytest.approx((2 + 1 + 0) / 3)
    # Squared distances of the four: en 2, ew 4, es 1, nw 2, ns 2 − √3, ws 3.
    kernels = [math.exp(-2 * squared) for squared in (2, 4, 1, 2, 2 - math.sqrt(3), 3)]
    assert score.scores["uniformity"] == pytest.approx(math.log(sum(kernels) / 6))
    with_self_pairs = math.log((4 + 2 * sum(kernels)) / 16)
    assert score.scores["uniformity_with_self_pairs"] == pytest.approx(with_self_pairs)
    assert (score.counts["pairs"], score.counts["sentences"]) == (5, 4)
    assert (score.counts["positives_above_4"], score.counts["positives_from_4"]) == (2, 3)


@pytest.mark.parametrize("block", [1, 7, 100, 4096])
def test_uniformity_against_all_distances_at_once(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sts, "_BLOCK", block)
    vectors = np.random.default_rng(0).normal(0.3, 1.0, size=(100, 5)).astype(np.float32)
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1)[:, None]
    squared = pdist(unit, "sqeuclidean")
    assert uniformity(vectors) == pytest.approx(math.log(np.exp(-2 * squared).mean()), abs=1e-12)
    total = 100 + 2 * np.exp(-2 * squared).sum()
    assert uniformity(vectors, self_pairs=True) == pytest.approx(math.log(total / 100**2))


def test_bounds_of_geometry() -> None:
    same, opposite = np.ones((5, 3)), np.array([[1.0, 2.0], [-2.0, -4.0]])
    assert uniformity(same) == pytest.approx(0.0, abs=1e-12)
    assert uniformity(opposite) == pytest.approx(-8.0)
    assert alignment(opposite[:1], opposite[1:]) == pytest.approx(4.0)
    assert alignment(same, 7 * same) == pytest.approx(0.0)


def test_undefined_geometry() -> None:
    with pytest.raises(ValueError, match="NaN or infinity for 'n'"):
        measured(lambda s: np.array([[np.nan if x == "n" else 1.0] for x in s]), NEAR_AND_FAR)
    score = measured(encode_directions, NEAR_AND_FAR[3:])
    assert math.isnan(score.scores["alignment_above_4"])
    assert score.counts["positives_from_4"] == 0
