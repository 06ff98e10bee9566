from __future__ import annotations

import math

import pytest

from use_st5.footprint.quantity import Crossing, crossings, describe_crossings


def test_a_power_of_the_length_is_found_exactly() -> None:
    """With a ratio of (n / 30)² the crossing lies at 30, wherever the lengths stand."""
    lengths = (10, 25, 77, 512)
    (found,) = crossings(lengths, [(n / 30) ** 2 for n in lengths])
    assert found.length == pytest.approx(30)
    assert found.above


def test_halfway_on_the_logarithmic_scale() -> None:
    """From a half to twice between 10 and 1000: at 100, the geometric mean."""
    assert crossings((10, 1000), (2.0, 0.5)) == (Crossing(pytest.approx(100), False),)


def test_curves_that_cross_twice() -> None:
    found = crossings((10, 20, 40), (0.5, 2.0, 0.25))
    assert [one.above for one in found] == [True, False]
    assert found[0].length == pytest.approx(math.sqrt(200))
    assert found[1].length == pytest.approx(20 * 2 ** (1 / 3))


def test_touching_is_not_crossing() -> None:
    assert crossings((10, 20, 40), (2.0, 1.0, 2.0)) == ()
    assert crossings((10, 20), (1.0, 2.0)) == ()


def test_equal_at_a_measured_length() -> None:
    assert crossings((10, 20, 40), (0.5, 1.0, 2.0)) == (Crossing(pytest.approx(20), True),)
    # Equal over a stretch: from where they meet.
    assert crossings((10, 20, 40, 80), (0.5, 1.0, 1.0, 2.0)) == (Crossing(pytest.approx(20), True),)


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((0.5, 2.0), "faster up to 100 words, slower beyond"),
        ((2.0, 0.5), "slower up to 100 words, faster beyond"),
        ((3.0, 2.0), "never within the range: slower from 10 to 1000 words"),
        ((0.3, 0.2), "never within the range: faster from 10 to 1000 words"),
        ((1.0, 1.0), "never within the range: equal from 10 to 1000 words"),
    ],
)
def test_in_words(ratios: tuple[float, float], words: str) -> None:
    assert describe_crossings((10, 1000), ratios, "slower", "faster") == words


def test_two_crossings_in_words() -> None:
    words = describe_crossings((10, 1000, 100_000), (0.5, 2.0, 0.5), "slower", "faster")
    assert words == "faster up to 100 words, slower up to 10000, faster beyond"
