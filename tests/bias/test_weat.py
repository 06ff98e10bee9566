from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cosine

from use_st5.bias.weat import (
    WEATTest,
    bootstrap_interval,
    count_partitions,
    read_weat,
    run_weat,
    weat_tests,
)

Encode = Callable[[list[str]], np.ndarray]

# With a along the first axis and all of b along the second, a text's association is the difference
# of its coordinates over its length: 1, -0.2, 0.2 and -1.
VECTORS = {
    "one": (2, 0),
    "minus fifth": (3, 4),
    "fifth": (4, 3),
    "minus one": (0, 1),
    "a": (1, 0),
    "b": (0, 1),
    "b, longer": (0, 7),
}
TOY = WEATTest("toy", ("one", "minus fifth"), ("fifth", "minus one"), ("a",), ("b", "b, longer"))


def encode(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def random_case(size: int, *, seed: int) -> tuple[Encode, WEATTest]:
    names = [tuple(f"{group}{i}" for i in range(size)) for group in "xyab"]
    vectors = np.random.default_rng(seed).normal(size=(4 * size, 5))
    vectors[:size, 0] += 0.4
    vectors[2 * size : 3 * size, 0] += 1
    rows = dict(zip(sum(names, ()), vectors, strict=True))
    return lambda texts: np.stack([rows[text] for text in texts]), WEATTest("random", *names)


def test_by_hand() -> None:
    result = run_weat(encode, TOY)
    # Means (1 - 0.2) / 2 = 0.4 and -0.4; the mean of all is 0, their squares sum to 2.08.
    assert result.effect_size == pytest.approx(0.8 / math.sqrt(2.08 / 3), abs=1e-12)
    assert run_weat(encode, TOY, ddof=0).effect_size == pytest.approx(0.8 / math.sqrt(2.08 / 4))
    # The six halves sum to 0.8 (observed), 1 + 0.2 = 1.2, 1 - 1 = 0, -0.2 + 0.2 = 0,
    # -0.2 - 1 = -1.2 and 0.2 - 1 = -0.8: two are at least 0.8.
    assert (result.p_value, result.exact, result.partitions) == (2 / 6, True, 6)
    # A resample without spread inside its groups has the extreme d = √3 or -√3: in 3 of 16 cases
    # the text of x is the greater one, in 1 (-0.2 twice against 0.2 twice) the smaller one.
    interval = (result.effect_size_low, result.effect_size_high)
    assert interval == pytest.approx((-math.sqrt(3), math.sqrt(3)))


def test_the_definitions_written_out_give_the_same() -> None:
    for seed in range(3):
        embed, test = random_case(4, seed=seed)
        vectors = {text: embed([text])[0] for text in test.x + test.y + test.a + test.b}

        def association(word: str, test: WEATTest = test, vectors: dict = vectors) -> float:
            near_a = statistics.fmean(1 - cosine(vectors[word], vectors[a]) for a in test.a)
            return near_a - statistics.fmean(1 - cosine(vectors[word], vectors[b]) for b in test.b)

        s = {word: association(word) for word in test.x + test.y}
        means = [statistics.fmean(s[word] for word in group) for group in (test.x, test.y)]
        halves = [
            sum(s[word] for word in half) - sum(s[word] for word in s if word not in half)
            for half in itertools.combinations(s, 4)
        ]
        result = run_weat(embed, test)
        assert result.effect_size == pytest.approx(
            (means[0] - means[1]) / statistics.stdev(s.values())
        )
        # The first half that `combinations` yields is x.
        assert result.p_value == sum(half >= halves[0] - 1e-9 for half in halves) / 70


def test_ties_count_in_spite_of_rounding() -> None:
    # 1 - 1 = 0 is tied with 0.2 - 0.2; 0.8 and 1.2 are above.
    tied = replace(TOY, x=("one", "minus one"), y=("fifth", "minus fifth"))
    for seed in range(5):
        turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(64, 64)))
        assert run_weat(lambda texts, turn=turn: encode(texts) @ turn[:2], tied).p_value == 4 / 6


def test_swapping_targets_or_attributes_negates_the_effect() -> None:
    embed, test = random_case(5, seed=1)
    result = run_weat(embed, test)
    for swapped in (replace(test, x=test.y, y=test.x), replace(test, a=test.b, b=test.a)):
        other = run_weat(embed, swapped)
        assert other.effect_size == pytest.approx(-result.effect_size)
        assert other.effect_size_low == pytest.approx(-result.effect_size_high, abs=0.1)
        # Every partition is on one side; the observed one, tied with itself, is on both.
        assert result.p_value + other.p_value == pytest.approx(253 / 252)


def test_same_seed_same_result() -> None:
    embed, test = random_case(8, seed=3)
    exact, sampled = run_weat(embed, test), run_weat(embed, test, samples=1000)
    assert run_weat(embed, test, samples=1000) == sampled
    assert run_weat(embed, test, samples=1000, seed=1).p_value != sampled.p_value
    assert run_weat(embed, test, seed=1).effect_size_low != exact.effect_size_low
    # Exact and sampled partitions differ only in these fields.
    same = {"exact": True, "partitions": math.comb(16, 8), "p_value": exact.p_value}
    assert replace(sampled, **same) == exact


def test_targets_associated_alike_have_no_effect_size() -> None:
    result = run_weat(encode, replace(TOY, x=("one", "a"), y=("a", "one")))
    assert math.isnan(result.effect_size)
    assert math.isnan(result.effect_size_low)
    assert math.isnan(result.effect_size_high)
    assert result.p_value == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [(math.nan, "NaN or infinity"), (0, "a zero vector")],
)
def test_vectors_without_direction_are_refused(value: float, message: str) -> None:
    def broken(texts: list[str]) -> np.ndarray:
        vectors = encode(texts)
        vectors[texts.index("fifth")] = value
        return vectors

    with pytest.raises(ValueError, match=f"received {message} for 'fifth'"):
        run_weat(broken, TOY)


TEST = WEATTest("toy", ("rose", "iris"), ("flea", "wasp"), ("love",), ("filth", "grief", "war"))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"x": ("rose",)}, "toy: expected .*'x': 1, 'y': 2"),
        ({"a": ()}, "toy: expected .*'a': 0"),
    ],
)
def test_groups_that_cannot_be_tested_are_refused(groups: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TEST, **groups)


def test_read(tmp_path: Path) -> None:
    groups = zip(("targ1", "targ2", "attr1", "attr2"), "XYAB", "pqrs", strict=True)
    content = {key: {"category": name, "examples": [text, "ü"]} for key, name, text in groups}
    path = tmp_path / "weat0.jsonl"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    expected = WEATTest("weat0", ("p", "ü"), ("q", "ü"), ("r", "ü"), ("s", "ü"))
    assert read_weat(path) == read_weat(str(path)) == expected
    text_alone = {**content, "attr2": {"category": "S", "examples": "a text is no list"}}
    numbers = {**content, "attr2": {"category": "S", "examples": [1, 2]}}
    unnamed = {**content, "attr2": {"category": None, "examples": ["s"]}}
    others = [json.dumps(one) for one in (text_alone, numbers, unnamed, {**content, "attr2": []})]
    for wrong in ("", "{", "[]", '{"targ1": 1}', "\0", "[" * 100_000, *others):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=r"weat0.jsonl: \$.*: expected .*sent-bias"):
            read_weat(path)
    uneven = {**content, "targ1": {"category": "X", "examples": ["p"]}}
    empty = {**content, "attr1": {"category": "A", "examples": []}}
    for refused in (uneven, empty):
        path.write_text(json.dumps(refused), encoding="utf-8")
        with pytest.raises(ValueError, match=r"weat0.jsonl: .*expected texts in .*sent-bias"):
            read_weat(path)
    for content in (b"\xff", b" " * (2**24 + 1)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"weat0.jsonl: .*expected .*sent-bias"):
            read_weat(path)
    for absent in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(OSError, match="absent.jsonl|test_read"):
            read_weat(absent)


def test_every_group_is_used_and_has_its_origin(repository: Path) -> None:
    path = repository / "use_st5" / "bias" / "word_lists.json"
    lists = json.loads(path.read_text(encoding="utf-8"))
    used = {group for test in lists["tests"].values() for group in test.values()}
    assert used == {*lists["groups"]}
    assert {group["origin"] for group in lists["groups"].values()} <= {*lists["origins"]}
    words = [frozenset(group["words"]) for group in lists["groups"].values()]
    assert len(set(words)) == len(words), "a list stands there twice"


@pytest.mark.parametrize("name", weat_tests())
def test_words_are_those_of_the_sent_bias_toolkit(name: str, data_dir: Path) -> None:
    published = read_weat(data_dir / "weat_seat" / "tests" / f"{name}.jsonl")
    ours, theirs = (
        [sorted(group) for group in astuple(test)[1:5]] for test in (weat_tests()[name], published)
    )
    assert ours == theirs


def test_interval_by_hand() -> None:
    # The resamples (0, 0), (0, 1), (1, 0) and (1, 1) of x are equally likely; y does not change.
    # d is 0 / 0, and so left out, in a quarter of the cases; 0.5 / std(0, 1, 0, 0) = 0.5 / 0.5 = 1
    # in two quarters; and 1 / std(1, 1, 0, 0) = √3 in one, the upper third of those left.
    x, y, draws = np.array([0.0, 1]), np.zeros(2), np.random.default_rng(0)
    low, high = bootstrap_interval(x, y, ddof=1, resamples=10_000, generator=draws)
    assert (low, high) == pytest.approx((1, math.sqrt(3)))


GENERATOR = np.random.default_rng(0)


def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return x.mean(axis=axis) - y.mean(axis=axis)


@pytest.mark.parametrize("rounded", [False, True])
def test_exact_p_is_that_of_scipy(rounded: bool) -> None:
    for seed in range(5):
        scores = np.random.default_rng(seed).normal([0.4] * 5 + [0] * 5)
        scores = scores.round() if rounded else scores  # rounded: many ties
        count, partitions, exact = count_partitions(scores, 252, GENERATOR)
        peer = stats.permutation_test(
            (scores[:5], scores[5:]), difference, alternative="greater", n_resamples=np.inf
        )
        assert exact
        assert count / partitions == pytest.approx(peer.pvalue, abs=1e-12)


def test_sampled_p_is_near_the_exact_one() -> None:
    scores = np.random.default_rng(3).normal([0.4] * 8 + [0] * 8)
    count, partitions, exact = count_partitions(scores, 12_870, GENERATOR)
    assert (partitions, exact) == (math.comb(16, 8), True)
    p = count / partitions
    assert 0.02 < p < 0.98  # otherwise the comparison would show little
    drawn, samples, exact = count_partitions(scores, 12_869, np.random.default_rng(0))
    assert (samples, exact) == (12_869, False)
    assert abs(drawn / samples - p) < 4 * math.sqrt(p * (1 - p) / samples)


def test_the_observed_partition_is_counted_with_the_drawn_ones() -> None:
    apart = np.array([1.0] * 20 + [-1.0] * 20)
    assert count_partitions(apart, 100, GENERATOR) == (1, 100, False)
    assert count_partitions(-apart, 50, GENERATOR) == (50, 50, False)


def test_blocks_count_every_partition_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(4).normal(size=8)
    whole = count_partitions(scores, 70, GENERATOR)
    monkeypatch.setattr("use_st5.bias.weat.BLOCK", 24)  # three partitions of eight targets
    assert count_partitions(scores, 70, GENERATOR) == whole
    # 49 draws: the last block is short. The observed partition is the least, all are above it.
    assert count_partitions(np.sort(scores), 50, GENERATOR) == (50, 50, False)
