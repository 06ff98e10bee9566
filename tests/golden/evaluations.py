"""Scores of every evaluation task on small made-up data sets, with an encoder that counts words."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.evaluation import evaluate, select_tasks

TASKS = (
    "sts12,stsb_dev,stsb,sickr,trec,mrpc,sicke,probing_tense,"
    "sentglue_rte,pairs_mrpc,geometry,weat1,weat6b,tatoeba,bucc_de-en,stsb_de"
)


class WordCounts:
    """Hashed counts of words: the more words two texts share, the higher their cosine."""

    name = "word_counts"
    identity = "hashed counts of words, 32 buckets"

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Texts to float32 `[texts, 32]`."""
        vectors = np.full((len(sentences), 32), 1e-2, np.float32)
        for row, sentence in enumerate(sentences):
            for word in sentence.lower().split():
                vectors[row, zlib.crc32(word.encode()) % 32] += 1
        return vectors


_WORDS = ("cat", "dog", "man", "woman", "sat", "ran", "old", "red", "big", "tree", "car", "song")


def _sentences(seed: int, count: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(_WORDS, rng.integers(3, 7))) for _ in range(count)]


def _pairs(seed: int, count: int) -> list[tuple[str, str, float]]:
    """Two sentences, and five times the share of the first's words that are in the second."""
    pairs = []
    for n, first in enumerate(_sentences(seed, count)):
        words = first.split()
        second = " ".join([*words[: n % (len(words) + 1)], _WORDS[n % len(_WORDS)]])
        score = 5 * len({*words} & {*second.split()}) / len({*words})
        pairs.append((first, second, round(score, 3)))
    return pairs


def _labels(seed: int, count: int, kinds: int = 2) -> list[tuple[str, int]]:
    """A sentence and a label that one of its words shows; now and then the word is wrong."""
    rows = []
    for n, text in enumerate(_sentences(seed, count)):
        label = n % kinds
        word = _WORDS[label if n % 7 else label - 1]
        rows.append((f"{text} {word} {word} {word}", label))
    return rows


def _classes(count: int = 60) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, files in {"MR": ("rt-polarity.pos", "rt-polarity.neg")}.items():
        for file, label in zip(files, (1, 0), strict=True):
            texts[f"{name}/{file}"] = "\n".join(
                t for t, found in _labels(1, count) if found == label
            )
    for seed, part in enumerate(("train", "dev", "test")):
        rows = _labels(seed, count)
        texts[f"SST/binary/sentiment-{part}"] = "\n".join(f"{t}\t{label}" for t, label in rows)
    for seed, file in enumerate(("train_5500.label", "TREC_10.label")):
        kinds = ("DESC:manner", "NUM:count", "HUM:ind")
        rows = _labels(seed, count, 3)
        texts[f"TREC/{file}"] = "\n".join(f"{kinds[label]} {t}" for t, label in rows)
    for seed, file in enumerate(("train", "test")):
        head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        rows = [
            f"{int(s > 2)}\t{n}\t9{n}\t{a}\t{b}" for n, (a, b, s) in enumerate(_pairs(seed, count))
        ]
        texts[f"MRPC/msr_paraphrase_{file}.txt"] = head + "\n".join(rows)
    parts = [("tr", 60), ("va", 30), ("te", 30)]
    probes = [(part, *row) for n, (part, few) in enumerate(parts) for row in _labels(n, few)]
    texts["probing/past_present.txt"] = "\n".join(
        f"{part}\t{('PAST', 'PRES')[label]}\t{text}" for part, text, label in probes
    )
    head = "sentence1\tsentence2\tlabel\n"
    for seed, file in enumerate(("train", "dev")):
        names = ("not_entailment", "entailment")
        rows = [f"{a}\t{b}\t{names[s > 2]}" for a, b, s in _pairs(seed, count)]
        texts[f"RTE/{file}.tsv"] = head + "\n".join(rows)
    return texts


def _similarities() -> dict[str, str]:
    texts: dict[str, str] = {}
    for seed, name in enumerate(
        ("STS12-en-test/STS.{}.news.txt", "STS12-en-test/STS.{}.forum.txt")
    ):
        pairs = _pairs(seed, 20 + 10 * seed)
        texts[name.format("input")] = "\n".join(f"{a}\t{b}" for a, b, _ in pairs)
        texts[name.format("gs")] = "\n".join(str(s) for _, _, s in pairs)
    for seed, part in enumerate(("train", "dev", "test")):
        texts[f"stsbenchmark/sts-{part}.csv"] = "\n".join(
            f"main-news\tMSRpar\t2012\t{n}\t{s:.3f}\t{a}\t{b}"
            for n, (a, b, s) in enumerate(_pairs(seed + 5, 40))
        )
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for seed, file in enumerate(("SICK_train", "SICK_trial", "SICK_test_annotated")):
        kinds = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
        texts[f"sick2014/{file}.txt"] = head + "\n".join(
            f"{n}\t{a}\t{b}\t{max(1.0, s)}\t{kinds[int(s / 2)]}"
            for n, (a, b, s) in enumerate(_pairs(seed, 60))
        )
    texts["data/stsb-de-test.csv"] = "\n".join(f'"{a}",{b},{s}' for a, b, s in _pairs(9, 30))
    return texts


def _translations() -> dict[str, str]:
    """Pairs of sentences that share most of their words stand for translations."""
    from use_st5.evaluation.translations import LANGUAGES

    texts: dict[str, str] = {}
    for seed, code in enumerate(LANGUAGES):
        pairs = [(a, f"{a} {_WORDS[n % 12]}") for n, a in enumerate(_sentences(seed, 8))]
        texts[f"data/tatoeba/v1/tatoeba.{code}-eng.{code}"] = "\n".join(a for a, _ in pairs)
        texts[f"data/tatoeba/v1/tatoeba.{code}-eng.eng"] = "\n".join(b for _, b in pairs)
    german, english = _sentences(3, 30), [f"{a} song" for a in _sentences(3, 20)]
    texts["de-en.dev.de"] = "\n".join(f"de-{n}\t{text}" for n, text in enumerate(german))
    texts["de-en.dev.en"] = "\n".join(f"en-{n}\t{text}" for n, text in enumerate(english))
    texts["de-en.dev.gold"] = "\n".join(f"de-{n}\ten-{n}" for n in range(20))
    return texts


def write_data(folder: Path) -> None:
    """Small copies of the data sets of `TASKS`, laid out as they are published."""
    for place, text in (_classes() | _similarities() | _translations()).items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def scores(folder: Path) -> dict[str, Any]:
    """Task → its scores and counts, of `TASKS` on the data in `folder`."""
    record = evaluate(WordCounts(), select_tasks(TASKS), folder, seed=7)
    return {
        name: {
            "scores": {each: _number(value) for each, value in task["scores"].items()},
            "counts": task["counts"],
        }
        for name, task in record.tasks.items()
    }


def _number(value: Any) -> Any:
    """A score to seven digits; NaN and infinity become strings, which JSON can hold."""
    if isinstance(value, float):
        return round(value, 7) if math.isfinite(value) else str(value)
    return value
