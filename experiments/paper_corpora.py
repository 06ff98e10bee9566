"""The corpora of SBERT's and DefSent's papers, in their published formats.

SNLI (Bowman et al. 2015) and MultiNLI (Williams et al. 2018) come as jsonl and as tab-separated
txt; if both are there, jsonl is read. The definitions of the Oxford dictionary (Gadetsky et al.
2018) are those of Ishiwatari et al. 2019: the folder `oxford` of their `naacl_data.zip`, which
DefSent (Tsukagoshi et al. 2021) trains on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.nli_reader import read_nli
from experiments.published_corpus import Corpus, Example
from use_st5.data import TableReader

# DefSent's preparation joins the tokens of Ishiwatari et al. in this way.
_JOINED = ((" .", "."), (" ,", ","), (" ;", ";"), ("( ", "("), (" )", ")"), (" '", "'"))
_QUOTED = re.compile(r"`` (.*?)''")
_SINGLY_QUOTED = re.compile(r"‘\s*(.*?)\s*’")


def _oxford(files: list[Path]) -> Iterable[Example]:
    """Reads lines: WORD%oxford.SENSE, part of speech, dictionary, definition tokens, two lists."""
    for row in TableReader(files, {"word": 0, "definition": 3}, file_format="tsv"):
        word = row["word"].rpartition("%")[0] or row["word"]
        yield {"word": word.strip(), "definition": _in_running_text(row["definition"])}


def _in_running_text(tokens: str) -> str:
    """A definition without the spaces between tokens; text in double quotes gets a capital."""
    for apart, joined in _JOINED:
        tokens = tokens.replace(apart, joined)
    tokens = _QUOTED.sub(lambda quoted: quoted[1].capitalize(), tokens)
    return _SINGLY_QUOTED.sub(r"’\1’", tokens).strip()


SNLI = Corpus(
    "snli",
    "inference pairs on captions of images: premise, hypothesis, label",
    "snli_1.0_train.jsonl",
    "CC BY-SA 4.0",
    read_nli,
    ("snli_1.0_train.txt",),
)
MULTINLI = Corpus(
    "multinli",
    "inference pairs of ten genres: premise, hypothesis, label",
    "multinli_1.0_train.jsonl",
    "that of OANC, and of each source",
    read_nli,
    ("multinli_1.0_train.txt",),
)
OXFORD = Corpus(
    "oxford",
    "the Oxford dictionary, as Ishiwatari et al. 2019 publish it: word, definition",
    "oxford/[tv]*.txt",
    "not stated",
    _oxford,
)


def paper_pairs(data: Path) -> Iterator[Example]:
    """Premise, hypothesis and label of SNLI and MultiNLI, which SBERT learns from."""
    return itertools.chain(SNLI.examples(data), MULTINLI.examples(data))


def paper_definitions(data: Path) -> Iterator[Example]:
    """Words and definitions of all three Oxford files, which DefSent joins and splits again."""
    return OXFORD.examples(data)
