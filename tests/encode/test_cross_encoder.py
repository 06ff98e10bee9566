from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.encode.cross_encoder import CrossEncoder, Ranked

TEXTS = ["a cat", "a dog barks", "cats", ""]


def lengths(first: list[str], second: list[str]) -> np.ndarray:
    """Logits that can be computed by hand: length of the first text minus length of the second."""
    return np.array([len(a) - len(b) for a, b in zip(first, second, strict=True)], np.float32)


JUDGE = CrossEncoder(lengths, name="lengths")


def test_scores_are_the_sigmoid_of_the_logits_in_the_order_given() -> None:
    pairs = [("abc", text) for text in TEXTS]
    logits = np.array([-2.0, -8.0, -1.0, 3.0])
    np.testing.assert_array_equal(JUDGE.predict(pairs, logits=True), logits)
    np.testing.assert_allclose(JUDGE.predict(pairs), 1 / (1 + np.exp(-logits)), rtol=1e-5)
    np.testing.assert_array_equal(JUDGE.predict(pairs, batch_size=1), JUDGE.predict(pairs))
    assert JUDGE.predict(pairs).dtype == np.float32
    assert JUDGE.predict([]).shape == (0,)
    assert JUDGE.predict([(b"abc", "ab")], logits=True).tolist() == [1.0]


def test_numbers_far_out_do_not_overflow() -> None:
    far = CrossEncoder(lambda first, second: np.array([-1e4, 1e4], np.float32), name="far")
    assert far.predict([("a", "b")] * 2).tolist() == [0.0, 1.0]


def test_ranking_is_by_score_and_then_by_place() -> None:
    ranked = JUDGE.rank("ab", ["ccc", "d", "eee", "f"])
    assert [each.place for each in ranked] == [1, 3, 0, 2]
    assert ranked[0] == Ranked(1, pytest.approx(1 / (1 + np.exp(-1))), "d")
    assert [each.text for each in JUDGE.rank("ab", ["ccc", "d"], top_k=1)] == ["d"]
    assert [each.text for each in JUDGE.rank("ab", "one text")] == ["one text"]


def test_what_logits_tell_apart_is_ranked_where_the_scores_are_one() -> None:
    # For a logit above 17 the sigmoid is 1 in float32.
    texts = ["b" * 5, "", "b" * 2]
    assert [each.place for each in JUDGE.rank("a" * 100, texts)] == [1, 2, 0]


@pytest.mark.parametrize("pairs", ["a pair", [("a", "b", "c")], ["ab"], [("a", 1)], {"a": "b"}, 3])
def test_what_is_no_pair_of_strings_is_refused(pairs: object) -> None:
    with pytest.raises(TypeError, match="Expected|not iterable|no len"):
        JUDGE.predict(pairs)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="top_k: expected 1 or more, received 0"):
        JUDGE.rank("a", ["b"], top_k=0)
    with pytest.raises(ValueError, match="batch_size"):
        JUDGE.predict([("a", "b")], batch_size=0)


def test_a_sentence_encoder_is_refused(repository: Path) -> None:
    with pytest.raises(ValueError, match="Load a sentence encoder with use_st5.load"):
        CrossEncoder.load(repository / "saved_models" / "use_dan_en")
