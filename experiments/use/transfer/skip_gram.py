"""Skip-gram vectors of the running text, for the word-level rows of the transfer tables."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import tensorflow as tf

from experiments.corpora import NOVELS
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.io import atomic_path
from use_st5.tokenizers import PTBTokenizer

DIMENSION = 100
MIN_COUNT = 5
_SETTINGS = {"sg": 1, "window": 5, "negative": 5, "epochs": 5}
_BATCH = 8192


def skip_gram_vectors(data: Path, folder: Path, *, seed: int) -> WordVectors:
    """Trains gensim's Word2Vec on the running text's tokens, or reads the vectors made before.

    Several threads train at a time, so the same seed does not give the same vectors. Therefore each
    seed has a file of its own, which is kept.

    Args:
        data: Folder of the corpora.
        folder: Folder of `skip_gram.SEED.bin`, in word2vec's binary format.
        seed: Seed of the initial vectors.
    """
    path = folder / f"skip_gram.{seed}.bin"
    if not path.exists():
        from gensim.models import word2vec  # the extra `transfer`

        with atomic_path(folder / "tokens.txt") as text:
            _write_tokens(data, text)
            model = word2vec.Word2Vec(
                corpus_file=str(text),
                vector_size=DIMENSION,
                min_count=MIN_COUNT,
                seed=seed,
                workers=os.cpu_count() or 1,
                **_SETTINGS,
            )
        (folder / "tokens.txt").unlink()
        with atomic_path(path) as temporary:
            model.wv.save_word2vec_format(str(temporary), binary=True)
    return WordVectors.load(path)


def _write_tokens(data: Path, path: Path) -> None:
    """Writes the tokens of each sentence on a line, separated by white space."""
    spaced = tf.function(PTBTokenizer().spaced, input_signature=[tf.TensorSpec([None], tf.string)])
    sentences = (example["sentence"] for example in NOVELS.examples(data))
    with path.open("wb") as stream:
        while batch := [*itertools.islice(sentences, _BATCH)]:
            stream.writelines(line + b"\n" for line in spaced(tf.constant(batch)).numpy())
