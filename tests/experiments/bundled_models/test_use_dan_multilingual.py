"""The parts of the training of `use_dan_multilingual`."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from experiments.bundled_models.dan_student import Rows
from experiments.bundled_models.use_dan_multilingual import (
    Translation,
    fitted_table,
    read_translations,
    shares,
    translated_scored_pairs,
)


def test_the_table_is_the_ridge_regression_of_the_vectors() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 40)
    starts = np.cumsum([0, *lengths])
    ids = rng.integers(0, 7, starts[-1])
    vectors = rng.normal(size=(40, 3)).astype(np.float32)
    vectors[:, 2] = 0  # as two numbers of all-MiniLM-L6-v2
    texts = rng.permutation(40)
    means = np.zeros((40, 7))
    for text, (start, end) in enumerate(zip(starts, starts[1:], strict=False)):
        np.add.at(means[text], ids[start:end], 1 / (end - start))
    expected = np.linalg.solve(means.T @ means + 0.05 * np.eye(7), means.T @ vectors)
    found = fitted_table(Rows(ids, starts), texts, vectors[texts], size=7)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_languages_are_drawn_by_the_root_of_their_share_and_the_bible_rarely() -> None:
    made = [("tatoeba", "de")] * 3 + [("bible", "de")] + [("tatoeba", "da")]
    found = shares([Translation(source, language, "a", "b") for source, language in made])
    # Weights of 4 ** -0.5 and 1, the verse a quarter of it: 1.625 + 1 in all.
    expected = np.array([0.5, 0.5, 0.5, 0.125, 1.0]) / 2.625
    np.testing.assert_allclose(found, expected)


def test_sets_that_choose_and_copyleft_sources_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "parallel").mkdir()
    for name in ("tatoeba", "mkqa", "spd"):
        with lzma.open(tmp_path / f"parallel/{name}.tsv.xz", "wt", encoding="utf-8") as file:
            file.write(f"de\tA   {name}.\tEin {name}.\n")
    (found,) = read_translations(tmp_path)
    assert found == Translation("tatoeba", "de", "A tatoeba.", "Ein tatoeba.")


def test_scored_pairs_in_other_languages_are_those_of_the_english_ones(tmp_path: Path) -> None:
    english = [("A dog eats.", "a man runs"), ("A cat sits.", "It sits.")]
    row = "genre\tfile\t2012\t0\t4\t{}\t{}\n"
    (tmp_path / "stsbenchmark").mkdir()
    (tmp_path / "stsbenchmark/sts-dev.csv").write_text(row.format("A man runs.", "He walks."))
    (tmp_path / "stsbenchmark/sts-train.csv").write_text("".join(row.format(*e) for e in english))
    folder = tmp_path / "stsb_multi_mt/data"
    folder.mkdir(parents=True)
    for language, pairs in (("en", english), ("de", [("Hund", "Mann"), ("Katze", "Sie")])):
        lines = "".join(f"{first},{second},4.0\n" for first, second in pairs)
        (folder / f"stsb-{language}-train.csv").write_text(lines)
    expected = [("Katze", "Sie", 0.8), ("A cat sits.", "It sits.", 0.8)]
    assert translated_scored_pairs(tmp_path) == expected
