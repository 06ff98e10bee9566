"""Real sentences of many languages, for comparisons with the tokenizers of others."""

from __future__ import annotations

import itertools
from pathlib import Path

_FILES = (
    "text/100_english_novels/corpus/*.txt", "sts_raw/stsbenchmark/sts-*.csv", "xnli/dev-*.tsv",
    "tatoeba/data/v1/tatoeba.*", "kornlu/KorSTS/*.tsv", "zh/CNSD-STS-B/*.txt",
    "jglue/datasets/jsts-*/*.json", "bucc/*.dev.??", "wordset_definitions.tsv",
    "self_dialogue.jsonl", "text/wikitext-2/*.txt",
)  # fmt: skip
_EMOJI = range(0x1F300, 0x1FB00)


def real_sentences(data_dir: Path, number: int = 100_000) -> list[str]:
    """Distinct lines of novels, tests and dialogues: as many of each group, all with emoji."""
    groups = [_lines(data_dir, pattern) for pattern in _FILES]
    every = itertools.chain.from_iterable(groups)
    emoji = [line for line in every if any(ord(each) in _EMOJI for each in line)]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*groups))
    sentences = dict.fromkeys([*emoji, *(line for line in mixed if line)])
    return [*itertools.islice(sentences, number)]


def _lines(data_dir: Path, pattern: str) -> list[str]:
    """Some lines of each of the files."""
    lines: list[str] = []
    for path in sorted(data_dir.glob(pattern))[:120]:
        read = path.read_text(encoding="utf-8", errors="replace").splitlines()
        lines += [line[:400] for line in read[:: max(1, len(read) // 4000)] if line.strip()]
    return lines
