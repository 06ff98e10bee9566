"""Semantic textual similarity in English, and the geometry of embeddings: files and tasks.

The protocol is that of SentEval and of Sentence-T5 (section 5.2): nothing is trained; the
similarity of two embeddings is correlated with people's scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from use_st5.data.data_folder import DataFolder, DataSource
from use_st5.encode.similarity import similarity_by_name, unit_rows
from use_st5.encode.vector_store import Encode, VectorCache, as_cache
from use_st5.evaluation.labelled_texts import (
    numbered_lines,
    parse_score,
    read_columns,
    read_side_by_side,
    split_fields,
)
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

# Rows of the kernel at a time: limits the memory for any number of sentences.
_BLOCK = 1024
_SEMEVAL_INPUT = re.compile(r"STS\d*\.input\.(.+)\.txt")


@dataclass(frozen=True)
class STSPair:
    """Two sentences and people's mean judgement of their similarity.

    The score is 0 to 5 in STS and 1 to 5 in SICK; NaN if there is none.
    """

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class STSSet:
    """A named test set; `subsets`: name of a part (the source of its sentences) → its pairs."""

    name: str
    subsets: dict[str, list[STSPair]]

    @property
    def pairs(self) -> list[STSPair]:
        """The pairs of all subsets, in order."""
        return [pair for subset in self.subsets.values() for pair in subset]


def read_semeval_sts(folder: Path, *, name: str | None = None, unscored: bool = False) -> STSSet:
    """Reads a year of SemEval STS: `STS.input.X.txt` and `STS.gs.X.txt` for each subset X.

    Lines without a score are skipped: from 2015 on, the organisers scored only a part of the input.
    With `unscored`, they are read, too. Files of scores without input (STS13's SMT, withdrawn for
    its licence) are left out. The set's name is by default the folder's.
    """
    subsets = {}
    for path in sorted(folder.glob("STS*.input.*.txt")):
        if match := _SEMEVAL_INPUT.fullmatch(path.name):
            scores = path.with_name(path.name.replace(".input.", ".gs.", 1))
            subsets[match[1]] = [
                checked_pair(
                    *(path, number, split_fields(path, number, line, 2)[:2]),
                    parse_score(scores, number, score) if score.strip() else math.nan,
                )
                for number, line, score in read_side_by_side(path, scores)
                if unscored or score.strip()
            ]
    if not subsets:
        raise FileNotFoundError(f"{folder}: expected files STS.input.*.txt, found none.")
    if empty := [subset for subset, pairs in subsets.items() if not pairs]:
        raise ValueError(f"{folder}: expected pairs with scores, received none for {empty}.")
    return STSSet(name or folder.name, subsets)


def read_stsb(path: Path, *, name: str | None = None) -> STSSet:
    """Reads a file of the STS Benchmark: tab-separated, no quoting, no header.

    Columns: genre, file, year, id, score, first sentence, second sentence; some lines also have a
    source for each sentence, which is ignored.
    The subsets are the genres (main-news, main-captions, main-forums).
    """
    subsets: dict[str, list[STSPair]] = {}
    for number, line in numbered_lines(path):
        fields = split_fields(path, number, line, 7)
        if len(fields) not in (7, 9):
            received = f"received {len(fields)}: {line[:80]!r}"
            raise ValueError(f"{path}:{number}: expected 7 or 9 tab-separated fields, {received}")
        pair = checked_pair(path, number, fields[5:7], parse_score(path, number, fields[4]))
        subsets.setdefault(fields[0], []).append(pair)
    if not subsets:
        raise ValueError(f"{path}: expected pairs of sentences, found none.")
    return STSSet(name or path.stem, subsets)


def read_sick(path: Path, *, name: str | None = None) -> STSSet:
    """Reads the relatedness of a SICK file (Marelli et al. 2014): tab-separated with a header.

    Columns used: sentence_A, sentence_B, relatedness_score.
    """
    rows, _ = read_columns(path, ("sentence_A", "sentence_B", "relatedness_score"))
    pairs = scored_pairs(path, ((number, fields[:2], fields[2]) for number, fields in rows))
    return STSSet(name or path.stem, {"all": pairs})


def scored_pairs(path: Path, rows: Iterable[tuple[int, Sequence[str], str]]) -> list[STSPair]:
    """The pairs of line numbers of `path`, sentences and scores."""
    pairs = [
        checked_pair(path, number, sentences, parse_score(path, number, score))
        for number, sentences, score in rows
    ]
    if not pairs:
        raise ValueError(f"{path}: expected pairs of sentences, found none.")
    return pairs


def checked_pair(path: Path, number: int, sentences: Sequence[str], score: float) -> STSPair:
    """The pair of line `number` of `path`, its sentences without white space at their ends."""
    stripped = [sentence.strip() for sentence in sentences]
    if len(stripped) != 2 or not all(stripped):
        raise ValueError(f"{path}:{number}: expected two sentences, received {stripped}.")
    return STSPair(stripped[0], stripped[1], score)


_LICENCE = "scores CC BY-SA 4.0; each source of sentences has its own, see the set's readme"
# Year → the task, and the folder in its archive, which SentEval renames to STS{year}-en-test.
_SEMEVAL = {
    "12": ("SemEval-2012 task 6", "test-gold"),
    "13": ("the *SEM 2013 shared task", "test-gs"),
    "14": ("SemEval-2014 task 10", "sts-en-test-gs-2014"),
    "15": ("SemEval-2015 task 2", "test_evaluation_task2a"),
    "16": ("SemEval-2016 task 1", "sts2016-english-with-gs-v1.0"),
}


STS12, STS13, STS14, STS15, STS16 = (
    DataSource(
        f"STS{year}",
        (f"STS{year}-en-test/STS*.txt", f"STS{year}/STS*.txt", f"{archived}/STS*.txt"),
        f"{task}: its test data with gold scores, http://ixa2.si.ehu.eus/stswiki, or "
        "SentEval's data/downstream/get_transfer_data.bash",
        _LICENCE,
    )
    for year, (task, archived) in _SEMEVAL.items()
)
STSB_TRAIN, STSB_DEV, STSB_TEST = (
    DataSource(
        f"STS-B {part}",
        (f"stsbenchmark/sts-{part}.csv", f"STSBenchmark/sts-{part}.csv"),
        "the STS Benchmark of SemEval-2017 task 1, http://ixa2.si.ehu.eus/stswiki (the original, "
        "with seven tab-separated columns; GLUE's copy has others)",
        _LICENCE,
    )
    for part in ("train", "dev", "test")
)
SICK_TRAIN, SICK_TRIAL, SICK_TEST = (
    DataSource(
        f"SICK-R {part}",
        (f"sick2014/SICK_{file}.txt", f"SICK/SICK_{file}.txt"),
        "SemEval-2014 task 1, http://marcobaroni.org/composes/sick.html",
        "CC BY-NC-SA 3.0",
    )
    for part, file in (("train", "train"), ("trial", "trial"), ("test", "test_annotated"))
)
# Name → every set that `read_sts` reads.
STS_SOURCES = {
    source.name: source
    for source in (
        *(STS12, STS13, STS14, STS15, STS16, STSB_TRAIN, STSB_DEV, STSB_TEST),
        *(SICK_TRAIN, SICK_TRIAL, SICK_TEST),
    )
}
# The sets to test on. Those that models are trained on are left out.
SUITE = (STS12, STS13, STS14, STS15, STS16, STSB_DEV, STSB_TEST, SICK_TEST)


def read_sts(folder: DataFolder, source: DataSource, *, unscored: bool = False) -> STSSet:
    """Reads one of the usual sets; its name is the source's.

    With `unscored`, pairs of SemEval's years without a score are read, too.
    """
    path = folder.find(source)
    if source in (SICK_TRAIN, SICK_TRIAL, SICK_TEST):
        return read_sick(path, name=source.name)
    if source in (STSB_TRAIN, STSB_DEV, STSB_TEST):
        return read_stsb(path, name=source.name)
    return read_semeval_sts(path, name=source.name, unscored=unscored)


@dataclass(frozen=True)
class STSScore:
    """Correlations of one set in all three aggregations that papers use.

    They differ by several points on sets of several subsets, so every number must name its
    aggregation: "all" correlates over all pairs at once (SimCSE, Sentence-T5), "mean" averages the
    subsets' correlations, and "wmean" weights this average by their number of pairs (the SemEval
    shared tasks).

    Attributes:
        spearman: Aggregation or subset → Spearman's rank correlation, in `[-1, 1]`.
        pearson: Aggregation or subset → Pearson's correlation, in `[-1, 1]`. Both correlations are
            NaN if all similarities or all scores of a part are equal.
    """

    spearman: dict[str, float]
    pearson: dict[str, float]


def evaluate_sts(
    encode: Encode, data: STSSet | Sequence[STSPair], *, metrics: Sequence[str] = ("cosine",)
) -> list[STSScore]:
    """One score per metric of an encoder on one set; each distinct sentence is encoded once.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`, rows in the same order; any object that
            `numpy.asarray` takes. A `VectorCache` remembers them for the next set.
        data: A set, or pairs (taken as a set of one subset).
        metrics: Among "cosine", "angular" (Eq. 1 of the USE paper) and "dot". Except for rounding,
            Spearman is the same for the first two; Pearson is not.
    """
    if not isinstance(data, STSSet):
        data = STSSet("pairs", {"pairs": list(data)})
    if min(map(len, data.subsets.values()), default=0) < 2:
        raise ValueError(f"{data.name}: expected at least two pairs in each subset.")
    similarities = [similarity_by_name(metric) for metric in metrics]
    pairs = data.pairs
    first, second = embed_pairs(as_cache(encode), pairs)
    return [score_similarities(data, similarity(first, second)) for similarity in similarities]


def embed_pairs(embed: VectorCache, pairs: Sequence[STSPair]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings `[pairs, dim]` of the first and of the second sentences."""
    vectors = embed([sentence for pair in pairs for sentence in (pair.first, pair.second)])
    return vectors[::2], vectors[1::2]


def score_similarities(data: STSSet, similarity: np.ndarray) -> STSScore:
    """The correlations of similarities `[pairs]` that any model gave to the pairs of a set."""
    labels = np.array([pair.score for pair in data.pairs])
    sizes = [len(subset) for subset in data.subsets.values()]
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]

    def correlations(correlate: Callable[..., Any]) -> dict[str, float]:
        by_part = [correlation(correlate, similarity[part], labels[part]) for part in parts]
        return {
            "all": correlation(correlate, similarity, labels),
            "mean": float(np.mean(by_part)),
            "wmean": float(np.average(by_part, weights=sizes)),
            **dict(zip(data.subsets, by_part, strict=True)),
        }

    return STSScore(correlations(stats.spearmanr), correlations(stats.pearsonr))


def correlation(correlate: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> float:
    """SciPy's statistic `correlate`; NaN if all numbers in x or in y are equal up to rounding."""
    if any(np.ptp(values) <= 1e-12 * np.abs(values).max() for values in (x, y)):
        return float("nan")
    return float(correlate(x, y).statistic)


def _score_set(context: TaskContext, data: STSSet) -> TaskResult:
    """All aggregations of one set; subsets are SemEval's files or the STS Benchmark's genres."""
    cosine, angular = evaluate_sts(context.embed, data, metrics=("cosine", "angular"))
    scores = {
        f"{statistic}_{aggregation}": values[aggregation]
        for statistic, values in (("spearman", cosine.spearman), ("pearson", cosine.pearson))
        for aggregation in ("all", "mean", "wmean")
    }
    scores["pearson_angular_all"] = angular.pearson["all"]
    subsets = {
        name: {"pairs": len(x), "spearman": cosine.spearman[name], "pearson": cosine.pearson[name]}
        for name, x in data.subsets.items()
    }
    return TaskResult("spearman_all", scores, {"pairs": len(data.pairs)}, {"subsets": subsets})


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared distance of matching rows of `[pairs, dim]` scaled to length 1, in `[0, 4]`.

    Wang and Isola, "Understanding Contrastive Representation Learning through Alignment and
    Uniformity on the Hypersphere" (ICML 2020), with α = 2 and t = 2. The Sentence-T5 paper prints
    the distances without the square; its code squares them. NaN if there are no pairs.
    """
    if not len(first):
        return math.nan
    differences = unit_rows(first) - unit_rows(second)
    return float(np.mean(np.sum(differences**2, axis=1)))


def uniformity(vectors: np.ndarray, *, self_pairs: bool = False) -> float:
    """`log E exp(−2·‖x − y‖²)` over the rows of `[n, dim]` scaled to length 1, in `[−8, 0]`.

    A zero row stays zero. The mean is over the pairs of two different rows, as in Wang and Isola's
    code; with `self_pairs`, it is over all n² ordered pairs, as in t5x_retrieval.
    """
    count, vectors = len(vectors), unit_rows(vectors)
    squares, total = np.sum(vectors**2, axis=1), 0.0
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = squares[block, None] + squares - 2.0 * vectors[block] @ vectors.T
        total += float(np.exp(-2.0 * np.maximum(distances, 0.0)).sum())
    if self_pairs:
        return math.log(total / count**2)
    return math.log((total - count) / (count * (count - 1)))  # a row's kernel with itself is 1


def _score_geometry(context: TaskContext, data: STSSet) -> TaskResult:
    """Alignment over the similar pairs and uniformity over all distinct sentences."""
    pairs = data.pairs
    sentences = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    vectors = context.embed(sentences)
    first, second = embed_pairs(context.embed, pairs)
    scored = np.array([pair.score for pair in pairs])
    above, at_least = scored > 4, scored >= 4
    scores = {
        "alignment_above_4": alignment(first[above], second[above]),
        "alignment_from_4": alignment(first[at_least], second[at_least]),
        "uniformity": uniformity(vectors),
        "uniformity_with_self_pairs": uniformity(vectors, self_pairs=True),
    }
    counts = {
        "pairs": len(pairs),
        "positives_above_4": int(above.sum()),
        "positives_from_4": int(at_least.sum()),
        "sentences": len(sentences),
    }
    return TaskResult("uniformity", scores, counts)


_PROTOCOL = (
    "Correlation of the embeddings' cosine similarity with the gold scores, nothing trained; all: "
    "over all pairs at once (SimCSE, Sentence-T5), mean: of the subsets' correlations, wmean: of "
    "these weighted by their pairs (SemEval); pearson_angular_all: with the angular similarity of "
    "Eq. 1 of the USE paper"
)
_NAMES = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb_dev", "stsb", "sickr")
TASKS = (
    *(
        EvaluationTask(
            name,
            "sts",
            source.name,
            _PROTOCOL,
            score=_score_set,
            reader=partial(read_sts, source=source),
            sources=(source,),
        )
        for name, source in zip(_NAMES, SUITE, strict=True)
    ),
    EvaluationTask(
        "geometry",
        "geometry",
        "Alignment and uniformity",
        "Wang and Isola (ICML 2020) with alpha = 2, t = 2 on unit vectors of the STS-B test split; "
        "alignment: of the pairs with gold score above 4 (Figure 4 of Sentence-T5) and from 4 "
        "(SimCSE, whose authors took all of STS-B); uniformity: over all pairs of distinct "
        "sentences, and with self-pairs as in t5x_retrieval; lower is better",
        score=_score_geometry,
        reader=partial(read_sts, source=STSB_TEST),
        sources=(STSB_TEST,),
    ),
)
