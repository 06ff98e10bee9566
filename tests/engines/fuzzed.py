"""Random texts for comparisons of tokenizers."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np

from use_st5.hub.model_names import bundled_folder
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

_LETTERS = [
    *"abcdnotmerwl  ''\"\"``..,,:;()[]{}<>!?-#$%&@0123456789\t\n\x00\x7fSTIA",
    *"ΣσΑİıßÉéñ\u2018\u2019\u201c\u201d\u2026\u2014\u00a0\u200b\ufeff\x91\x85中日٣\U00010400한\u0301",
]
_WORDS = [
    *("wanna", "'tis", "'twas", "cannot", "gimme", "d'ye", "more'n", "gonna", "gotta", "don't"),
    *("n't", "'s", "'ll", "...", "--", "``", "''", '"', "e.g.", "U.S.", "10,000", "3:45", "a,b"),
    *("can't", "İ", "ΑΣ", "Lemme", "WANNA", ".", ".)", "'.\"", "<empty>", "the", "of", "in"),
]


def fuzzed_texts(number: int, seed: int = 0) -> list[str]:
    """Random texts of letters, of words in the Treebank's rules, and of any code points."""
    draw = random.Random(seed)
    kinds = (_of_letters, _of_words, _of_words, _mixed, _of_code_points)
    return [draw.choice(kinds)(draw) for _ in range(number)]


def ngram_vocabulary(kind: str) -> NGramVocabulary:
    """The words of a bundled model and pairs of the most frequent ones.

    Unknown words have buckets ("words"), or pieces ("pieces"); with few "buckets" pairs have some.
    """
    folder = bundled_folder("use_transformer_en")
    terms = NGramVocabulary.load(folder / "assets" / "vocabulary.txt").unigrams
    words = tuple(term for term in terms if not term.startswith("##"))
    pieces = terms[len(words) :] if kind == "pieces" else ()
    frequent = [word for word in (*words[:150], *_WORDS[:10], "how", "old") if word in {*words}]
    pairs = tuple(f"{a} {b}" for a, b in itertools.product(dict.fromkeys(frequent), repeat=2))
    if kind == "buckets":
        return NGramVocabulary(words[:200], pairs[:3000], 7, 11)
    return NGramVocabulary((*words[:20_000], *pieces), pairs, unigram_buckets=1000)


def every_code_point(pattern: str) -> list[str]:
    """A text for each code point, which takes the place of `{}` in the pattern."""
    points = [*range(1, 0xD800), *range(0xE000, 0x110000)]
    return [pattern.format(chr(point)) for point in points]


def check_same_ids(ours: Any, flat: Any, texts: list[str], raw: list[Any] | None = None) -> None:
    """Checks that ids are those of a tokenizer's graph.

    Args:
        ours: Texts → ids and starts.
        flat: The graph: string `[batch]` → ids and rows.
        texts: The texts to compare.
        raw: The same texts as bytes, for the graph.
    """
    ids, rows = (each.numpy() for each in flat(texts if raw is None else raw))
    starts = np.searchsorted(rows, np.arange(len(texts) + 1))
    our_ids, our_starts = ours(texts)
    if np.array_equal(ids, our_ids) and np.array_equal(starts, our_starts):
        return
    for place, text in enumerate(texts):
        expected = ids[starts[place] : starts[place + 1]].tolist()
        received = our_ids[our_starts[place] : our_starts[place + 1]].tolist()
        assert received == expected, repr(text)


def _of_letters(draw: random.Random) -> str:
    return "".join(draw.choices(_LETTERS, k=draw.randrange(30)))


def _of_words(draw: random.Random) -> str:
    ends = ("", " ", "  ", ",")
    return "".join(draw.choice(_WORDS) + draw.choice(ends) for _ in range(draw.randrange(10)))


def _mixed(draw: random.Random) -> str:
    kinds = (lambda: draw.choice(_LETTERS), lambda: draw.choice(_WORDS) + " ")
    return "".join(draw.choice(kinds)() for _ in range(draw.randrange(25)))


def _of_code_points(draw: random.Random) -> str:
    ranges = ((1, 0xD800), (0xE000, 0x110000), (1, 0x300))
    return "".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(draw.randrange(12)))
