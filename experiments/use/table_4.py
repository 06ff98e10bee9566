"""WEAT of word vectors and of sentence encoders: Table 4 of the USE paper.

    python -m experiments.use.table_4 use_dan_en use_transformer_en --vectors glove.6B.50d.txt

The paper compares the associations of GloVe's vectors, as Caliskan et al. (2017) printed them, with
those of its DAN. This prints a table with the effect size d and the one-sided p of each of
Caliskan's ten tests: as Caliskan et al. printed them, for the word vectors of a file of word2vec or
GloVe, and for each of MODELS, which are bundled names or folders. Word vectors are those of the
words in lower case. A word without a vector is left out of its group, and the last word of the
other group of targets with it; the note below the table names it.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import use_st5
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.bias import WEATTest, run_weat, weat_tests

# d and p of GloVe, 840 billion tokens (Caliskan et al. 2017, Table 1). From memory.
CALISKAN = {
    "weat1": (1.50, 1e-7),
    "weat2": (1.53, 1e-7),
    "weat3": (1.41, 1e-8),
    "weat4": (1.50, 1e-4),
    "weat5": (1.28, 1e-3),
    "weat6": (1.81, 1e-3),
    "weat7": (1.06, 0.018),
    "weat8": (1.24, 1e-2),
    "weat9": (1.38, 1e-2),
    "weat10": (1.21, 1e-2),
}

Encode = Callable[[Sequence[str]], np.ndarray]


def main() -> None:
    """Reads the arguments and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["use_dan_en"])
    parser.add_argument("--vectors", type=Path, help="a file of word2vec or GloVe")
    arguments = parser.parse_args()
    encoders: dict[str, Encode] = {name: use_st5.load(name).encode for name in arguments.models}
    known = None
    if arguments.vectors:
        vectors = WordVectors.load(arguments.vectors)
        known = {word: row for row, word in enumerate(vectors.words)}
        of_words = partial(word_vectors, vectors.vectors, known)
        encoders = {arguments.vectors.stem: of_words, **encoders}
    print("\n".join(table(encoders, known)))


def word_vectors(vectors: np.ndarray, rows: Mapping[str, int], words: Sequence[str]) -> np.ndarray:
    """The vectors of words, `[words, dimension]`."""
    return vectors[[rows[word.casefold()] for word in words]]


def table(encoders: Mapping[str, Encode], known: Collection[str] | None) -> list[str]:
    """The lines of the table in Markdown; the words that all encoders know, None: all."""
    lines = [
        f"| test | GloVe, Caliskan et al. | {' | '.join(encoders)} |",
        "|---" * (2 + len(encoders)) + "|",
    ]
    left_out = set()
    for name, published in CALISKAN.items():
        test = weat_tests()[name]
        common = test if known is None else known_words(test, known)
        left_out |= {*test.x, *test.y, *test.a, *test.b} - {
            *(*common.x, *common.y, *common.a, *common.b)
        }
        results = [run_weat(encode, common) for encode in encoders.values()]
        found = [(result.effect_size, result.p_value) for result in results]
        cells = [f"{d:.2f} ({p:.2g})" for d, p in (published, *found)]
        x, y, a, b = test.categories
        lines.append(f"| {x} / {y}, {a} / {b} | {' | '.join(cells)} |")
    return [*lines, "", f"Left out: {', '.join(sorted(left_out)) or 'no word'}."]


def known_words(test: WEATTest, known: Collection[str]) -> WEATTest:
    """A test without the words that have no vector, whose groups of targets are equally large."""
    x, y, a, b = (
        tuple(word for word in group if word.casefold() in known)
        for group in (test.x, test.y, test.a, test.b)
    )
    size = min(len(x), len(y))
    return dataclasses.replace(test, x=x[:size], y=y[:size], a=a, b=b)


if __name__ == "__main__":
    main()
