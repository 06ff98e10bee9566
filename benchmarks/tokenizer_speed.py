"""How fast are the text stages of BERT and RoBERTa beside Hugging Face's tokenizers?

    python benchmarks/tokenizer_speed.py FILE [FILE ...] [--vocabulary vocab.txt]

A file is UTF-8 text, one sentence a line; where there are more than `--limit`, an evenly spaced
sample is taken. The word pieces are those of `--vocabulary`, or trained on the sentences like the
byte pairs. Both sides have one thread, get the same batches by turns in one process, and must give
the same ids. Printed are sentences a second, and the ratio of ours to theirs: the median of the
rounds, and the least and the largest. Needs `pip install tokenizers`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf
import tokenizers as hugging_face

from use_st5.text import BytePairVectorizer, Vectorizer, WordPieceVectorizer

ROUNDS = 7
# Sentences in a call, and calls in a round.
SETTINGS = {"one sentence": (1, 100), "a batch of 32": (32, 20), "a batch of 1024": (1024, 2)}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

Side = Callable[[list[str]], Any]


def main() -> None:
    """Reads the arguments, compares, prints the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--vocabulary", type=Path, help="vocab.txt of an uncased BERT")
    parser.add_argument("--size", type=int, default=20_000, help="pieces of what is trained")
    parser.add_argument("--limit", type=int, default=20_000, help="sentences to compare")
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    sentences = read(arguments.files, arguments.limit)
    letters = sum(map(len, sentences)) / len(sentences)
    print(f"{len(sentences):,} sentences of {letters:.0f} characters")
    compare("word pieces", sentences, *word_pieces(sentences, arguments.vocabulary, arguments.size))
    compare("byte pairs", sentences, *byte_pairs(sentences, arguments.size))


def read(files: list[Path], limit: int) -> list[str]:
    """Evenly spaced lines that are not empty."""
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files)
    lines = [line for text in texts for line in text.split("\n") if line.strip()]
    number = min(limit, len(lines))
    return [lines[k * len(lines) // number] for k in range(number)]


def word_pieces(sentences: list[str], vocabulary: Path | None, size: int) -> tuple[Side, Side]:
    """Ours, and Hugging Face's."""
    if vocabulary is None:
        theirs = hugging_face.BertWordPieceTokenizer()
        theirs.train_from_iterator(sentences, vocab_size=size, show_progress=False)
        ids = theirs.get_vocab()
        words = sorted(ids, key=ids.__getitem__)
    else:
        words = vocabulary.read_text(encoding="utf-8").splitlines()
    theirs = hugging_face.BertWordPieceTokenizer({word: k for k, word in enumerate(words)})
    return ours(WordPieceVectorizer(words)), theirs.encode_batch


def byte_pairs(sentences: list[str], size: int) -> tuple[Side, Side]:
    """Ours, and Hugging Face's; the ids of `<s>` and `<pad>` are ours."""
    theirs = hugging_face.ByteLevelBPETokenizer()
    theirs.train_from_iterator(
        sentences, vocab_size=size, special_tokens=SPECIAL, show_progress=False
    )
    model = json.loads(theirs.to_str())["model"]
    merges = [(one, two) for one, two in model["merges"]]
    theirs = hugging_face.ByteLevelBPETokenizer(model["vocab"], merges)
    theirs.post_processor = hugging_face.processors.TemplateProcessing(
        single="<pad> $A </s>", special_tokens=[("<pad>", 1), ("</s>", 2)]
    )
    return ours(BytePairVectorizer(model["vocab"], merges)), theirs.encode_batch


def ours(vectorizer: Vectorizer) -> Side:
    """Sentences to padded ids by the graph."""
    graph = tf.function(vectorizer.padded, input_signature=[tf.TensorSpec([None], tf.string)])
    call = graph.get_concrete_function()
    return lambda sentences: call(tf.constant(sentences))


def compare(name: str, sentences: list[str], our: Side, their: Side) -> None:
    """Prints how often the ids are the same, and the speeds."""
    different = 0
    for start in range(0, len(sentences), 1024):
        batch = sentences[start : start + 1024]
        rows = [np.trim_zeros(row, "b").tolist() for row in our(batch).numpy()]
        different += sum(a != b.ids for a, b in zip(rows, their(batch), strict=True))
    print(f"\n{name}: {different:,} of {len(sentences):,} sentences have other ids")
    for setting, (size, calls) in SETTINGS.items():
        rounds = []
        for turn in range(ROUNDS):
            starts = range(turn * size * calls, (turn + 1) * size * calls, size)
            batches = [[sentences[(s + k) % len(sentences)] for k in range(size)] for s in starts]
            rounds.append([size * calls / seconds(side, batches) for side in (our, their)])
        ratios = sorted(mine / other for mine, other in rounds)
        mine, other = (statistics.median(speeds) for speeds in zip(*rounds, strict=True))
        print(
            f"  {setting:16} ours {mine:9,.0f}/s  Hugging Face's {other:9,.0f}/s  "
            f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


def seconds(side: Side, batches: list[list[str]]) -> float:
    """What the calls took."""
    start = time.perf_counter()
    for batch in batches:
        side(batch)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
