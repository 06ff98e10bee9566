"""STS sets and SICK with a few pairs each, in their published formats."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from tests.corpora_folder import WORDS

Pairs = Sequence[tuple[str, str]]


def some_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Random pairs of sentences from the words in `WORDS`."""
    draw = random.Random(seed)

    def sentence() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(3, 7)))

    return [(sentence(), sentence()) for _ in range(count)]


def write_stsb(data: Path, part: str, pairs: Pairs) -> None:
    """Writes a split of the STS Benchmark; its scores cycle through 0 to 5."""
    row = "genre\tfile\t2012\t{}\t{}\t{}\t{}\n"
    text = "".join(row.format(i, i % 6, *pair) for i, pair in enumerate(pairs))
    _write(data / "stsbenchmark" / f"sts-{part}.csv", text)


def write_sick(data: Path, part: str, pairs: Pairs) -> None:
    """Writes a split of SICK; its scores cycle through 1 to 5."""
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    rows = (f"{i}\t{a}\t{b}\t{1 + i % 5}\tNEUTRAL\n" for i, (a, b) in enumerate(pairs))
    _write(data / "sick2014" / f"SICK_{part}.txt", head + "".join(rows))


def write_semeval(data: Path, year: str, pairs: Pairs) -> None:
    """Writes a year of SemEval with one subset."""
    folder = data / f"STS{year}-en-test"
    _write(folder / "STS.input.news.txt", "".join(f"{a}\t{b}\n" for a, b in pairs))
    _write(folder / "STS.gs.news.txt", "".join(f"{i % 6}\n" for i in range(len(pairs))))


def write_mrpc(data: Path, pairs: Pairs) -> None:
    """Writes the test split of MRPC."""
    rows = (f"{i % 2}\t1\t2\t{a}\t{b}\n" for i, (a, b) in enumerate(pairs))
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    _write(data / "MRPC" / "msr_paraphrase_test.txt", head + "".join(rows))


def write_sets(data: Path) -> Path:
    """Writes the sets of the experiment; STS-B test has half of its pairs from STS12."""
    pooled = some_pairs(8, 12)
    for seed, year in enumerate(("12", "13", "15")):
        write_semeval(data, year, some_pairs(8, 12 + seed))
    for seed, part in enumerate(("train", "dev")):
        write_stsb(data, part, some_pairs(12, 20 + seed))
    write_stsb(data, "test", [*pooled[:4], *some_pairs(4, 30)])
    for seed, part in enumerate(("train", "test_annotated")):
        write_sick(data, part, some_pairs(8, 40 + seed))
    write_mrpc(data, some_pairs(8, 50))
    return data


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
