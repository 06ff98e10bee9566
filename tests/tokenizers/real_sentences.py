"""Real sentences of many languages, for comparisons with other tokenizers."""

from __future__ import annotations

import itertools
from pathlib import Path

_FILES = (
    "text/100_english_novels/corpus/*.txt", "sts_raw/stsbenchmark/sts-*.csv", "xnli/dev-*.tsv",
    "tatoeba/data/v1/tatoeba.*", "kornlu/KorSTS/*.tsv", "zh/CNSD-STS-B/*.txt",
    "jglue/datasets/jsts-*/*.json", "bucc/*.dev.??", "wordset_definitions.tsv",
    "self_dialogue.jsonl", "text/wikitext-2/*.txt",
)  # fmt: skip
# The texts have almost no emoji: one of these is put into the middle of each fiftieth text.
_EMOJI = (
    "😀", "👍🏽", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "🇫🇷🇩🇪", "🫠🫶🏿",
    "1\ufe0f\u20e3",
)  # fmt: skip


def real_sentences(data_dir: Path, number: int = 100_000) -> list[str]:
    """Distinct lines of novels, tests and dialogues, from each of them in turn."""
    groups = [_lines(data_dir, pattern) for pattern in _FILES]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*groups))
    distinct = dict.fromkeys(line for line in mixed if line)
    sentences = [*itertools.islice(distinct, number)]
    for place, emoji in zip(range(0, number, 50), itertools.cycle(_EMOJI), strict=False):
        line = sentences[place]
        sentences[place] = line[: len(line) // 2] + emoji + line[len(line) // 2 :]
    return sentences


def _lines(data_dir: Path, pattern: str) -> list[str]:
    """Some lines of each of the files."""
    lines: list[str] = []
    for path in sorted(data_dir.glob(pattern))[:120]:
        read = path.read_text(encoding="utf-8", errors="replace").splitlines()
        lines += [line[:400] for line in read[:: max(1, len(read) // 4000)] if line.strip()]
    return lines
