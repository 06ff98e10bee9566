"""The text that the bundled models learn search from: passages, and queries with their passages.

`english_search/passages/*.jsonl.xz` has passages with their domain, `english_search/pairs/*.tsv.xz`
has rows of a query (title, heading, question) and its passage. Both belong to a source by their
file's name. This command writes all texts that lack the teachers' vectors into the folder TEACHER,
in an order whose every beginning is a balanced sample; `teacher` then computes the vectors:

    python -m experiments.bundled_models.search_text TEACHER --data DATA
    python -m experiments.bundled_models.teacher TEACHER --mpnet FOLDER --minilm FOLDER
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.bundled_models.teacher import Teacher

_FOLDER = "english_search"


def read_passages(data: Path) -> Iterator[tuple[str, str]]:
    """The passages, each with its domain."""
    for path in sorted((data / _FOLDER / "passages").glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield row["domain"], " ".join(row["text"].split())


def read_pairs(data: Path) -> Iterator[tuple[str, str, str]]:
    """The pairs: source, query and passage."""
    for path in sorted((data / _FOLDER / "pairs").glob("*.tsv.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                query, passage = line.rstrip("\n").split("\t")
                yield path.name.removesuffix(".tsv.xz"), " ".join(query.split()), passage


def balanced(groups: Mapping[str, Sequence[str]], *, seed: int = 1) -> list[str]:
    """All texts, in an order whose every beginning holds about the square root of each group.

    Args:
        groups: Name → texts.
        seed: Seed of the order within a group.

    Returns:
        Each distinct text once.
    """
    ranked = []
    for name, texts in sorted(groups.items()):
        distinct = [*dict.fromkeys(texts)]
        random.Random(f"{seed} {name}").shuffle(distinct)
        step = len(distinct) ** -0.5
        ranked += [(place * step, text) for place, text in enumerate(distinct)]
    return [*dict.fromkeys(text for _, text in sorted(ranked))]


def search_texts(data: Path) -> list[str]:
    """The passages and the texts of the pairs, in the order of `balanced`.

    The texts of a pair follow each other, so that a beginning holds whole pairs.
    """
    groups: dict[str, list[str]] = {}
    for domain, passage in read_passages(data):
        groups.setdefault(f"passages {domain}", []).append(passage)
    for source, query, passage in read_pairs(data):
        groups.setdefault(f"pairs {source}", []).append(f"{query}\n{passage}")
    if not groups:
        raise FileNotFoundError(
            f"Expected passages/*.jsonl.xz and pairs/*.tsv.xz in {data / _FOLDER}, found neither."
        )
    return [*dict.fromkeys(text for row in balanced(groups) for text in row.split("\n"))]


def hard_negatives(vectors: np.ndarray, pairs: np.ndarray, *, ranks: int = 30) -> np.ndarray:
    """The nearest passage of another pair whose cosine is at most 95 % of the positive's.

    It is NV-Retriever's rule, as in `use-st5 mine`. If none of the first `ranks` passages fits, the
    own passage stands: a loss leaves it out.

    Args:
        vectors: The teacher's vectors, `[texts, dim]`.
        pairs: The numbers of a query and of its passage, `[pairs, 2]`.
        ranks: How many of the nearest passages are looked at.

    Returns:
        The numbers of the passages, `[pairs]`.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"

    def units(rows: np.ndarray) -> torch.Tensor:
        tensor = torch.tensor(np.asarray(vectors[rows], np.float32), device=device)
        return torch.nn.functional.normalize(tensor)

    candidates = np.unique(pairs[:, 1])
    passages, negatives = units(candidates), pairs[:, 1].copy()
    for start in range(0, len(pairs), 2048):
        rows = pairs[start : start + 2048]
        queries = units(rows[:, 0])
        limits = 0.95 * (queries * units(rows[:, 1])).sum(1, keepdim=True)
        cosines, places = (queries @ passages.T).topk(min(ranks, len(candidates)), dim=1)
        found = candidates[places.cpu().numpy()]
        fits = (cosines <= limits).cpu().numpy() & (found != rows[:, 1:])
        chosen = np.take_along_axis(found, fits.argmax(1)[:, None], 1)[:, 0]
        negatives[start : start + 2048] = np.where(fits.any(1), chosen, rows[:, 1])
    return negatives


def main() -> None:
    """Reads the arguments, and writes the texts whose vectors are missing."""
    parser = argparse.ArgumentParser(description="Writes the texts that the teachers shall read.")
    parser.add_argument("teacher", type=Path, help="the folder of the teachers' vectors")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    options = parser.parse_args()
    try:
        Teacher(options.teacher).check(search_texts(options.data))
    except FileNotFoundError as missing:
        print(missing)


if __name__ == "__main__":
    main()
