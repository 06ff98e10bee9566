"""Pairs of texts without labels: from the STS sets, a file, or running text."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from experiments.corpora import CORPORA
from experiments.held_out import held_out_sentences, without_held_out
from experiments.trans_encoder.mined_pairs import Pair, mined_pairs
from use_st5.data import DataFolder, DataSource, TableReader, TextReader, normalized
from use_st5.evaluation import read_sts

# Texts → vectors `[texts, dimension]`.
Embed = Callable[[list[str]], np.ndarray]


@dataclasses.dataclass(frozen=True)
class SetPool:
    """The pairs of STS sets, without their scores.

    Each pair occurs once, in either order. With `complete` the pool is as in Trans-Encoder's code,
    where it has 37,081 pairs (Liu et al. 2022, Table 15): it includes pairs that the organisers of
    STS15 and STS16 never scored, and drops only repetitions of the same strings in the same order.

    Attributes:
        sources: The sets.
        without: Test sets, whose pairs are left out, since the STS Benchmark and SICK share pairs
            with other sets. Test sets that are not in the data folder are ignored.
        limit: The number of pairs to draw; None: all.
        complete: Whether the pool is complete, as described above.
    """

    sources: tuple[DataSource, ...]
    without: tuple[DataSource, ...] = ()
    limit: int | None = None
    complete: bool = False

    def pairs(self, data: Path, embed: Embed, seed: int) -> list[Pair]:
        """The pairs in the order of the sets."""
        del embed  # Nothing is searched.
        folder = DataFolder(data)
        test_pairs = {
            unordered(pair)
            for source in self.without
            if folder.has(source)
            for pair in _pairs_of(folder, source)
        }
        source_pairs = itertools.chain(
            *(_pairs_of(folder, source, unscored=self.complete) for source in self.sources)
        )
        candidates = (pair for pair in source_pairs if unordered(pair) not in test_pairs)
        pairs = [*(dict.fromkeys(candidates) if self.complete else distinct(candidates))]
        if self.limit is None or self.limit >= len(pairs):
            return pairs
        indices = np.random.default_rng(seed).choice(len(pairs), self.limit, replace=False)
        return [pairs[i] for i in sorted(indices)]


@dataclasses.dataclass(frozen=True)
class MinedPool:
    """Pairs mined from running text, without the sentences of the test sets.

    Attributes:
        corpora: Keys of `CORPORA`; each corpus gives an equal share, or all its sentences if fewer.
        text: A file or folder of running text instead of the corpora; None: the corpora.
        sentences: The number of sentences to draw in total.
        words: The fewest and the most words of a sentence.
        neighbours: As in `mined_pairs`, by the start's vectors.
        others: As in `mined_pairs`.
    """

    corpora: tuple[str, ...] = ("100_english_novels", "wikitext_2")
    text: Path | None = None
    sentences: int = 7_500
    words: tuple[int, int] = (5, 30)
    neighbours: int = 1
    others: int = 1

    def pairs(self, data: Path, embed: Embed, seed: int) -> list[Pair]:
        """The pairs in the order of the drawn sentences."""
        held_out, rng = held_out_sentences(data), np.random.default_rng(seed)
        sources: list[Iterable] = (
            [CORPORA[name].examples(data) for name in self.corpora]
            if self.text is None
            else [TextReader(self.text)]
        )
        sample: list[str] = []
        for source in sources:
            examples = ({"sentence": each["sentence"]} for each in source)
            sentences = [*dict.fromkeys(self._fitting(without_held_out(examples, held_out)))]
            share = min(len(sentences), self.sentences // len(sources))
            sample += [
                sentences[i] for i in sorted(rng.choice(len(sentences), share, replace=False))
            ]
        return mined_pairs(
            sample, embed(sample), neighbours=self.neighbours, others=self.others, seed=seed
        )

    def _fitting(self, examples: Iterable[dict[str, str]]) -> Iterator[str]:
        fewest, most = self.words
        for example in examples:
            if fewest <= len(example["sentence"].split()) <= most:
                yield example["sentence"]


@dataclasses.dataclass(frozen=True)
class FilePool:
    """The pairs of a user's file: two texts a line with a tab between them.

    Attributes:
        path: The file, UTF-8, plain or gzip.
    """

    path: Path

    def pairs(self, data: Path, embed: Embed, seed: int) -> list[Pair]:
        """The pairs in the order of the lines, each once."""
        del data, embed, seed
        rows = TableReader(self.path, {"first": 0, "second": 1}, file_format="tsv", strict=True)
        return [*distinct((row["first"], row["second"]) for row in rows)]


Pool = SetPool | MinedPool | FilePool


def given_pool(usual: Pool, pairs: Path | None, text: Path | None) -> Pool:
    """The pool of a run: a file of pairs, running text, or the usual one."""
    if pairs is not None and text is not None:
        raise ValueError("Expected --pairs or --text, received both.")
    if pairs is not None:
        return FilePool(pairs)
    if text is None:
        return usual
    mined = usual if isinstance(usual, MinedPool) else MinedPool()
    return dataclasses.replace(mined, text=text)


@dataclasses.dataclass(frozen=True)
class Overlap:
    """The shares of test pairs and test sentences that were among the training pairs.

    Attributes:
        pairs: Share of the test pairs, in either order, in 0 … 1.
        sentences: Share of the distinct test sentences.
    """

    pairs: float
    sentences: float

    def __str__(self) -> str:
        """The overlap in words, for a table."""
        if not self.sentences:
            return "inductive"
        return f"transductive: {self.pairs:.0%} of pairs, {self.sentences:.0%} of sentences"


def overlap(tested: Sequence[Pair], pool: Iterable[Pair]) -> Overlap:
    """The overlap of the tested pairs with a pool, comparing normalized texts."""
    pool_pairs = {unordered(pair) for pair in pool}
    texts = {text for pair in pool_pairs for text in pair}
    pairs = [unordered(pair) for pair in tested]
    sentences = {text for pair in pairs for text in pair}
    return Overlap(
        sum(pair in pool_pairs for pair in pairs) / len(pairs),
        len(sentences & texts) / len(sentences),
    )


def unordered(pair: Pair) -> frozenset[str]:
    """A key of a pair: its normalized texts, without their order."""
    return frozenset(map(normalized, pair))


def distinct(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yields each pair once; pairs that differ only in their order count as equal."""
    seen: set[frozenset[str]] = set()
    for pair in pairs:
        if (key := unordered(pair)) not in seen:
            seen.add(key)
            yield pair


def _pairs_of(folder: DataFolder, source: DataSource, *, unscored: bool = False) -> Iterator[Pair]:
    pairs = read_sts(folder, source, unscored=unscored).pairs
    return ((pair.first, pair.second) for pair in pairs)
