from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from use_st5.bias.weat import run_weat
from use_st5.bias.weat_test import WEATTest
from use_st5.vector_store import VectorCache

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
    # A resample without spread inside its groups has d = √3 or -√3, the most there is: in 3 of 16
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
        # The first half that combinations gives is x.
        assert result.p_value == sum(half >= halves[0] - 1e-9 for half in halves) / 70


def test_ties_count_in_spite_of_rounding() -> None:
    # 1 - 1 = 0 is tied with 0.2 - 0.2; above are 0.8 and 1.2.
    tied = replace(TOY, x=("one", "minus one"), y=("fifth", "minus fifth"))
    for seed in range(5):
        turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(64, 64)))
        assert run_weat(lambda texts, turn=turn: encode(texts) @ turn[:2], tied).p_value == 4 / 6


def test_one_group_apart_has_the_smallest_p() -> None:
    apart = replace(TOY, x=("one", "fifth"), y=("minus fifth", "minus one"))
    assert run_weat(encode, apart).p_value == 1 / 6
    assert run_weat(encode, replace(apart, x=apart.y, y=apart.x)).p_value == 1


def test_swapping_targets_or_attributes_negates_the_effect() -> None:
    embed, test = random_case(5, seed=1)
    result = run_weat(embed, test)
    for swapped in (replace(test, x=test.y, y=test.x), replace(test, a=test.b, b=test.a)):
        other = run_weat(embed, swapped)
        assert other.effect_size == pytest.approx(-result.effect_size)
        assert other.effect_size_low == pytest.approx(-result.effect_size_high, abs=0.1)
        # Every partition is on one side; the observed one, tied with itself, is on both.
        assert result.p_value + other.p_value == pytest.approx(253 / 252)


def test_lengths_do_not_matter() -> None:
    embed, test = random_case(4, seed=2)
    lengths = np.random.default_rng(0).uniform(0.01, 100, size=(16, 1))
    result, scaled = run_weat(embed, test), run_weat(lambda texts: embed(texts) * lengths, test)
    assert scaled.effect_size == pytest.approx(result.effect_size)
    assert scaled.effect_size_high == pytest.approx(result.effect_size_high)
    assert scaled.p_value == result.p_value


def test_same_seed_same_result() -> None:
    embed, test = random_case(8, seed=3)
    exact, sampled = run_weat(embed, test), run_weat(embed, test, samples=1000)
    assert run_weat(embed, test, samples=1000) == sampled
    assert run_weat(embed, test, samples=1000, seed=1).p_value != sampled.p_value
    assert run_weat(embed, test, seed=1).effect_size_low != exact.effect_size_low
    # The way to p does not touch the rest.
    same = {"exact": True, "partitions": math.comb(16, 8), "p_value": exact.p_value}
    assert replace(sampled, **same) == exact


def test_each_distinct_text_is_encoded_once() -> None:
    calls = []
    shared = replace(TOY, a=("a", "one"), b=("b", "a", "b"))
    embed = VectorCache(lambda texts: calls.append(texts) or encode(texts))
    assert run_weat(embed, shared) == run_weat(embed, shared)
    assert calls == [["one", "minus fifth", "fifth", "minus one", "a", "b"]]


def test_targets_associated_alike_have_no_effect_size() -> None:
    result = run_weat(encode, replace(TOY, x=("one", "a"), y=("a", "one")))
    assert math.isnan(result.effect_size)
    assert math.isnan(result.effect_size_low)
    assert math.isnan(result.effect_size_high)
    assert result.p_value == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [(math.nan, "NaN or infinity"), (math.inf, "NaN or infinity"), (0, "a zero vector")],
)
def test_vectors_without_direction_are_refused(value: float, message: str) -> None:
    def broken(texts: list[str]) -> np.ndarray:
        vectors = encode(texts)
        vectors[texts.index("fifth")] = value
        return vectors

    with pytest.raises(ValueError, match=f"received {message} for 'fifth'"):
        run_weat(broken, TOY)


@pytest.mark.parametrize(
    "options", [{"ddof": 4}, {"ddof": -1}, {"samples": 0}, {"resamples": 0}], ids=str
)
def test_options_out_of_range_are_refused(options: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))}: expected"):
        run_weat(encode, TOY, **options)


@pytest.mark.process
def test_numpy_alone_is_imported(fresh_python: Callable[..., str]) -> None:
    code = (
        "import sys, use_st5.bias.weat; print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    assert fresh_python("-c", code).strip() == "[]"
