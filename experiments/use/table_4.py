"""WEAT of word vectors and of sentence encoders: Table 4 of the USE paper.

    python -m experiments.use.table_4 use_dan_en use_transformer_en --vectors glove.6B.50d.txt

The paper compares the associations of GloVe's vectors (Caliskan et al. 2017) with those of its DAN.
This prints a table with the effect size d and the one-sided p of each of Caliskan's ten tests: the
paper's (`published.json`; `?`: from notes, not read again), those of the word vectors of a file of
word2vec or GloVe, and those of each of MODELS, which are bundled names or folders. Word vectors are
those of the words in lower case. A word without a vector is left out of its group, and the last
word of the other group of targets with it; the note below the table names both.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import use_st5
from experiments.run import read_json
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.bias import WEATTest, run_weat, weat_tests

_PUBLISHED = Path(__file__).with_name("published.json")
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
    printed = published()
    names = [*(f"paper: {model}" for model in printed), *encoders]
    lines = [f"| test | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    left_out = set()
    for name in next(iter(printed.values())):
        test = weat_tests()[name]
        common = test if known is None else known_words(test, known)
        left_out |= {*test.x, *test.y, *test.a, *test.b} - {
            *(*common.x, *common.y, *common.a, *common.b)
        }
        results = [run_weat(encode, common) for encode in encoders.values()]
        cells = [scores[name] for scores in printed.values()]
        cells += [f"{result.effect_size:.2f} ({result.p_value:.2g})" for result in results]
        x, y, a, b = test.categories
        lines.append(f"| {x} / {y}, {a} / {b} | {' | '.join(cells)} |")
    return [*lines, "", f"Left out: {', '.join(sorted(left_out)) or 'no word'}."]


def published() -> dict[str, dict[str, str]]:
    """Model → test → the cell of the paper's table."""
    cells: dict[str, dict[str, str]] = {}
    for each in read_json(_PUBLISHED)["tables"]:
        if each["benchmark"] == "weat":
            cell = "{:.2f}{}" if each["metric"] == "effect_size" else " ({:.2g}{})"
            for row in each["rows"]:
                own, mark = cells.setdefault(row["model"], {}), "?" * (not row.get("confirmed", 1))
                for name, value in row["scores"].items():
                    own[name] = own.get(name, "") + cell.format(value, mark)
    return cells


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
