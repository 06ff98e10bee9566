"""`use-st5 cluster`: groups the lines of a text by what they are about."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from use_st5._imports import require
from use_st5.cli.files import ColumnOption, open_texts, sole_file
from use_st5.cli.models import (
    DEFAULT_MODEL,
    BackendChoice,
    CountingEncoder,
    ModelChoice,
    ModelOption,
    PromptNameOption,
    PromptOption,
    load_encoder,
)
from use_st5.cli.output import check_table_name, manual, print_table, waiting, write_table

if TYPE_CHECKING:
    import numpy as np

# From this number of lines on k-means reads parts of them at a time.
_MANY = 20_000
_WORDS = 8

HELP = manual(
    """Group the lines of a text by what they are about, and name the words of each group.

    --clusters N makes N groups by k-means on vectors of length 1. --threshold joins groups as long
    as the mean cosine between the lines of two groups is at least this (agglomerative clustering
    with average linkage); it compares all pairs, so use it for some thousand lines. Without both, N
    is the square root of half the number of lines. Empty lines are left out. Needs the extra
    evaluation, scikit-learn.

    The result has a row for each group, the largest first: its number, its lines, the words that
    are frequent in it and rare in the others (class-based TF-IDF, without English stop words), and
    the line nearest to its mean. --to writes the group of every line, with the columns label and
    text, .tsv, .csv or .jsonl: `use-st5 train` can learn it.""",
    "use-st5 cluster questions.txt --clusters 20 --to groups.tsv",
    "use-st5 cluster tickets.csv --column text --threshold 0.6",
)


def cluster(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A text file, or - for standard input.")
    ],
    to: Annotated[Path | None, typer.Option("--to", help="The file to write.")] = None,
    clusters: Annotated[int | None, typer.Option(min=1, help="How many groups.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="The smallest mean cosine of two groups that are joined.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of k-means.")] = 0,
    model: ModelOption = DEFAULT_MODEL,
    backend: BackendChoice = "tensorflow",
    prompt: PromptOption = None,
    prompt_name: PromptNameOption = None,
    column: ColumnOption = None,
) -> None:
    """Groups the lines of a text."""
    if clusters is not None and threshold is not None:
        raise typer.BadParameter("expected one of --clusters and --threshold.")
    chosen = ModelChoice(model, backend, prompt, prompt_name)
    require("sklearn", "evaluation")
    if to is not None:
        check_table_name(to)
    with contextlib.nullcontext() if to is None else sole_file(to, inputs=[file]):
        with open_texts(file, column=column) as lines:
            texts = [line for line in lines if line.strip()]
        if len(texts) < (clusters or 1):
            raise ValueError(f"{file}: expected {clusters or 1:,} texts, received {len(texts):,}")
        encoder = CountingEncoder(load_encoder(chosen), chosen)
        import numpy as np

        from use_st5.encode.similarity import unit_rows

        with waiting(f"grouping {len(texts):,} texts"):
            vectors = unit_rows(encoder.encode(texts)).astype(np.float32)
            count = clusters or max(1, round((len(texts) / 2) ** 0.5))
            labels = _labels(vectors, count, threshold, seed)
        encoder.say_truncated()
        if to is not None:
            write_table(
                to, ("label", "text"), [(str(n), t) for n, t in zip(labels, texts, strict=True)]
            )
    rows = []
    for number, words in enumerate(_topic_words(texts, labels), start=1):
        members = np.flatnonzero(labels == number)
        nearest = members[np.argmax(vectors[members] @ vectors[members].mean(axis=0))]
        rows.append((str(number), f"{len(members):,}", ", ".join(words), texts[nearest]))
    print_table(["group", "lines", "words", "typical line"], rows)


def _labels(vectors: np.ndarray, count: int, threshold: float | None, seed: int) -> np.ndarray:
    """The group of each row, from 1: the largest first, then the one that begins first."""
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering, KMeans, MiniBatchKMeans

    if len(vectors) == 1:  # Agglomerative clustering wants two.
        return np.ones(1, int)
    model: Any = KMeans(count, random_state=seed, n_init=3)
    if threshold is not None:
        # The distances; a zero vector has them, too.
        vectors = np.maximum(0, 1 - vectors @ vectors.T)
        model = AgglomerativeClustering(
            n_clusters=None,
            metric="precomputed",
            linkage="average",
            distance_threshold=1 - threshold,
        )
    elif len(vectors) >= _MANY:
        model = MiniBatchKMeans(count, random_state=seed, n_init=3, batch_size=4096)
    _, firsts, labels, sizes = np.unique(
        model.fit_predict(vectors), return_index=True, return_inverse=True, return_counts=True
    )
    ranks = np.empty(len(sizes), int)
    ranks[np.lexsort((firsts, -sizes))] = np.arange(1, len(sizes) + 1)
    return ranks[labels]


def _topic_words(texts: list[str], labels: np.ndarray) -> list[list[str]]:
    """The words of each group with the largest class-based TF-IDF (Grootendorst, 2203.05794)."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    groups: list[list[str]] = [[] for _ in range(labels.max())]
    for text, label in zip(texts, labels, strict=True):
        groups[label - 1].append(text)
    vectorizer = CountVectorizer(stop_words="english")
    try:
        counts = vectorizer.fit_transform(map("\n".join, groups))
    except ValueError:  # No text has a word.
        return [[] for _ in groups]
    words, totals = vectorizer.get_feature_names_out(), np.asarray(counts.sum(axis=0)).ravel()
    weights = np.log1p(counts.sum() / len(groups) / totals)
    topics = []
    for row in counts:
        order = np.argsort(-row.data * weights[row.indices], kind="stable")[:_WORDS]
        topics.append(words[row.indices[order]].tolist())
    return topics
