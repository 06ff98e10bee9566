from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from use_st5.bias.weat import WEATTest, read_weat, run_weat

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
        # Every partition is on one side; the observed one, tied with itself, is on both.
        assert result.p_value + other.p_value == pytest.approx(253 / 252)


def test_lengths_do_not_matter() -> None:
    embed, test = random_case(4, seed=2)
    lengths = np.random.default_rng(0).uniform(0.01, 100, size=(16, 1))
    result, scaled = run_weat(embed, test), run_weat(lambda texts: embed(texts) * lengths, test)
    assert scaled.effect_size == pytest.approx(result.effect_size)
    assert scaled.p_value == result.p_value


def test_sampled_p_is_near_the_exact_one() -> None:
    embed, test = random_case(8, seed=3)
    exact = run_weat(embed, test, samples=12_870)
    assert (exact.exact, exact.partitions) == (True, math.comb(16, 8))
    assert 0.02 < exact.p_value < 0.98  # else the comparison would say little
    sampled = run_weat(embed, test, samples=12_869)
    assert (sampled.exact, sampled.partitions) == (False, 12_869)
    deviation = math.sqrt(exact.p_value * (1 - exact.p_value) / 12_869)
    assert abs(sampled.p_value - exact.p_value) < 4 * deviation
    assert sampled.effect_size == exact.effect_size
    assert run_weat(embed, test, samples=12_869) == sampled
    assert run_weat(embed, test, samples=12_869, seed=1).p_value != sampled.p_value


def test_sampled_p_counts_the_observed_partition() -> None:
    apart = replace(TOY, x=("one",) * 20, y=("minus one",) * 20)
    assert run_weat(encode, apart, samples=100).p_value == 1 / 100


def test_blocks_count_every_partition_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embed, test = random_case(4, seed=4)
    whole = run_weat(embed, test)
    monkeypatch.setattr("use_st5.bias.weat._BLOCK", 24)  # three partitions of eight targets
    assert run_weat(embed, test) == whole
    least = replace(TOY, x=("minus one",) * 4, y=("one",) * 4)
    assert run_weat(encode, least, samples=50).p_value == 1  # 49 draws, the last block is short


def test_each_distinct_text_is_encoded_once() -> None:
    calls = []
    shared = replace(TOY, a=("a", "one"), b=("b", "a", "b"))
    run_weat(lambda texts: calls.append(texts) or encode(texts), shared)
    assert calls == [["one", "minus fifth", "fifth", "minus one", "a", "b"]]


def test_targets_associated_alike_have_no_effect_size() -> None:
    result = run_weat(encode, replace(TOY, x=("one", "a"), y=("a", "one")))
    assert math.isnan(result.effect_size)
    assert result.p_value == 1


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"x": ("one",)}, "toy: expected as many texts in x as in y, received 1 and 2"),
        ({"a": ()}, r"received none in \['a'\]"),
        ({"x": (), "y": ()}, r"received none in \['x', 'y'\]"),
    ],
)
def test_groups_that_cannot_be_tested_are_refused(groups: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TOY, **groups)


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


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[7, dim\], received \(6, 2\)"):
        run_weat(lambda texts: encode(texts)[1:], TOY)
    with pytest.raises(ValueError, match=r"shape \[7, dim\], received \(7,\)"):
        run_weat(lambda texts: encode(texts)[:, 0], TOY)


@pytest.mark.parametrize("options", [{"ddof": 4}, {"ddof": -1}, {"samples": 0}])
def test_options_out_of_range_are_refused(options: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))}: expected"):
        run_weat(encode, TOY, **options)


def test_read(tmp_path: Path) -> None:
    groups = zip(("targ1", "targ2", "attr1", "attr2"), "XYAB", "pqrs", strict=True)
    content = {key: {"category": name, "examples": [text, "ü"]} for key, name, text in groups}
    path = tmp_path / "weat0.jsonl"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    expected = WEATTest("weat0", ("p", "ü"), ("q", "ü"), ("r", "ü"), ("s", "ü"))
    assert read_weat(path) == read_weat(str(path)) == expected
    for wrong in ("{", "[]", json.dumps({**content, "attr2": []}), '{"targ1": 1}'):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match="weat0.jsonl: expected one JSON object"):
            read_weat(path)
    with pytest.raises(FileNotFoundError):
        read_weat(tmp_path / "absent.jsonl")


@pytest.mark.process
def test_numpy_alone_is_imported(fresh_python: Callable[..., str]) -> None:
    code = (
        "import sys, use_st5.bias.weat; print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    assert fresh_python("-c", code).strip() == "[]"
