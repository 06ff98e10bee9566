from __future__ import annotations

import numpy as np

from experiments.use.table_4 import known_words, table, word_vectors
from use_st5.bias import weat_tests


def test_words_without_a_vector_leave_groups_of_one_size() -> None:
    test = weat_tests()["weat1"]
    known = {word.casefold() for word in (*test.x[2:], *test.y[1:], *test.a, *test.b[:-1])}
    common = known_words(test, known)
    assert common.x == test.x[2:]
    assert common.y == test.y[1:-1]
    assert (common.a, common.b) == (test.a, test.b[:-1])


def test_vectors_that_hold_an_association_have_a_large_effect() -> None:
    """Each word's vector is its group's, turned by noise; names are read in lower case."""
    tests = weat_tests()
    rng = np.random.default_rng(0)
    words: dict[str, np.ndarray] = {}
    for name in ("weat1", "weat3"):
        for group, sign in (("x", 1), ("a", 1), ("y", -1), ("b", -1)):
            for word in getattr(tests[name], group):
                noise = rng.normal(size=2)
                words.setdefault(word.casefold(), np.array([sign, 0.0]) + 0.1 * noise)
    for test in tests.values():
        for word in (*test.x, *test.y, *test.a, *test.b):
            words.setdefault(word.casefold(), rng.normal(size=2))
    rows = {word: row for row, word in enumerate(words)}
    vectors = np.stack([*words.values()])
    lines = table({"words": lambda texts: word_vectors(vectors, rows, texts)}, rows)
    assert lines[-1] == "Left out: no word."
    for line in (lines[2], lines[4]):
        assert float(line.split("|")[-2].split("(")[0]) > 1.5
