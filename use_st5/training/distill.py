"""A static model from any encoder: a table of its tokens' vectors, without a Transformer."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from use_st5._imports import require
from use_st5.encode.sentences import one_or_many
from use_st5.hub.model_manifest import ModelManifest, check_replaceable
from use_st5.models.encoder_model import inference
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.wordpiece_tokenizer import BERT_TOKENS, WordPieceTokenizer
from use_st5.trainable_encoder import TrainableEncoder

_BATCH = 512  # tokens, or texts
_MOST_WORDS = 50_000
_WORD = re.compile(r"\w+|[^\w\s]")
# Chosen on STS-B dev, SICK trial and five retrieval sets (benchmarks/distill.py).
_SIF_OF_RANKS, _SIF_OF_COUNTS, _PENALTY, _STEPS = 5e-5, 3e-3, 0.3, 30
_SPECIAL = (BERT_TOKENS.padding, BERT_TOKENS.unknown, BERT_TOKENS.start, BERT_TOKENS.separator)


def distill(
    encoder: str | os.PathLike[str] | TrainableEncoder,
    folder: str | os.PathLike[str],
    *,
    texts: Iterable[str] = (),
    vocabulary: Iterable[str] = (),
    dimension: int = 256,
    sif: float | None = None,
    name: str | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> ModelManifest:
    """Writes a static model whose table comes from an encoder, as model2vec does.

    The vector of a text is the mean of a table's rows, one for each token, with length 1. The model
    is a `StaticEmbedding`; it cuts no text.

    The row of a token is the encoder's vector of the token alone, shortened to its principal
    components. With `texts`, a second step, as tokenlearn has one, learns the rows from the
    encoder's vectors of the texts, shortened to theirs: the table `W` with the smallest
    `Σ |mean of rows − vector|² + 0.3 |W − W₀|²`, which leaves the rows of rare tokens as they
    were in the first table `W₀`.

    Each component is then divided by the square root of its standard deviation. A frequent token
    gets a small weight, `sif / (sif + p)` (Arora et al. 2017), where `p` is its share of the tokens
    of `texts`, or by Zipf's law: in proportion to 1 / (1 + its place in the vocabulary).

    Args:
        encoder: The encoder, or what `TrainableEncoder.load` takes.
        folder: The folder to write; an older model of use_st5 there is replaced.
        texts: Texts like those that the model will read, at best 10,000 or more. They are encoded
            once.
        vocabulary: Words, the most frequent first. If the encoder reads BERT's word pieces, they
            come after its own ones; else they are the whole vocabulary, and a text's other words
            are not read. Relatives of BERT and RoBERTa need none. Without a vocabulary, an encoder
            of another kind takes the most frequent words of `texts`.
        dimension: Numbers of a sentence vector, at most those of the encoder's.
        sif: The smaller, the less frequent tokens weigh; 0: all weigh the same; None: 3e-3 with
            `texts`, else 5e-5, the best ones on development sets for STS and retrieval.
        name: The model's name; None: the folder's.
        log: Called with a line about the words that cannot be used.

    Returns:
        The written description.

    Examples:
        >>> use_st5.distill("hf://sentence-transformers/all-MiniLM-L6-v2", "minilm_static")
        >>> use_st5.load("minilm_static", backend="onnx").encode(sentences)
    """
    check_replaceable(folder)
    texts, words = one_or_many(texts)[0], one_or_many(vocabulary)[0]
    if sif is None:
        sif = _SIF_OF_COUNTS if texts else _SIF_OF_RANKS
    if sif < 0:
        raise ValueError(f"sif: expected 0 or more, received {sif}.")
    if not isinstance(encoder, TrainableEncoder):
        encoder = TrainableEncoder.load(encoder)
    if encoder.inputs != 1:
        raise ValueError("Expected an encoder of single texts, received a cross-encoder.")
    if texts and not words and not isinstance(encoder.tokenizer, FramedTokenizer):
        words = _frequent_words(texts)
    tokenizer, ids, vectors = _token_vectors(encoder, words, log)
    most = min(vectors.shape)
    if not 1 <= dimension <= most:
        raise ValueError(f"dimension: expected 1 to {most:,} numbers, received {dimension}.")
    if texts:
        rows, weights = _learned_rows(encoder, texts, tokenizer, ids, vectors, dimension, sif)
    else:
        centred = vectors - vectors.mean(axis=0)
        rows = centred @ principal_axes(centred, dimension)
        weights = sif_weights(1 / np.arange(2, len(ids) + 2), sif)
    table = np.zeros((tokenizer.vocabulary.size, dimension), np.float32)
    table[ids] = evened(rows) * weights[:, None]
    model = StaticEmbedding(*table.shape, normalize=True, ignored_id=tokenizer.unknown_id or 0)
    model.build()
    model.embedding.embeddings.assign(table)
    facts = {**encoder.metadata, "distilled_from": encoder.name or "an encoder", "sif": sif}
    return TrainableEncoder(model, tokenizer, name=name, metadata=facts).export(folder)


def principal_axes(centred: np.ndarray, dimension: int) -> np.ndarray:
    """The axes of most variance of the rows `[rows, width]`, `[width, dimension]`.

    The largest number of each axis is positive.
    """
    axes = np.linalg.eigh(centred.T @ centred)[1][:, : -dimension - 1 : -1]
    return axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dimension)])


def evened(rows: np.ndarray) -> np.ndarray:
    """Each column divided by the square root of its standard deviation."""
    deviations = rows.std(axis=0)
    return rows / np.sqrt(np.maximum(deviations, 1e-6 * deviations.max(initial=1e-30)))


def sif_weights(frequencies: np.ndarray, sif: float) -> np.ndarray:
    """The weight `sif / (sif + share)` of each token; 1 without `sif`."""
    return sif / (sif + frequencies / frequencies.sum()) if sif else np.ones(len(frequencies))


def ridge(means: Any, targets: np.ndarray, start: np.ndarray, penalty: float) -> np.ndarray:
    """The table `W` with the smallest `|means W − targets|² + penalty |W − start|²`.

    Conjugate gradients, all columns at once, scaled by the diagonal.

    Args:
        means: A sparse matrix `[texts, tokens]`: the share of each token in each text.
        targets: The vectors of the texts `[texts, dimension]`.
        start: `[tokens, dimension]`.
        penalty: The weight of the second term.
    """
    scale = 1 / (means.multiply(means).sum(axis=0)[:, None] + penalty)
    change, rest = np.zeros_like(start), means.T @ (targets - means @ start)
    direction = scale * rest
    size = (rest * direction).sum(axis=0)
    for _ in range(_STEPS):
        image = means.T @ (means @ direction) + penalty * direction
        step = size / np.maximum((direction * image).sum(axis=0), 1e-30)
        change, rest = change + step * direction, rest - step * image
        last, size = size, (rest * scale * rest).sum(axis=0)
        direction = scale * rest + size / np.maximum(last, 1e-30) * direction
    return start + change


def _learned_rows(
    encoder: TrainableEncoder,
    texts: list[str],
    tokenizer: FramedTokenizer,
    ids: np.ndarray,
    vectors: np.ndarray,
    dimension: int,
    sif: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the tokens that fit the encoder's vectors of texts, and the tokens' weights."""
    counts = _counts(tokenizer, texts)[:, ids]
    weights = sif_weights(counts.sum(axis=0) + 1, sif)
    means = counts.multiply(1 / np.maximum(counts.sum(axis=1), 1)[:, None]).tocsr()
    targets = encoder.encode(texts, batch_size=_BATCH)
    axes = principal_axes(targets - targets.mean(axis=0), dimension)
    targets, start = targets @ axes, (vectors - vectors.mean(axis=0)) @ axes
    start = (start * weights[:, None]).astype(np.float32)
    sums = means @ start
    start *= (sums * targets).sum() / max((sums * sums).sum(), 1e-30)
    return ridge(means, targets, start, _PENALTY), weights


def _counts(tokenizer: FramedTokenizer, texts: list[str]) -> Any:
    """How often each text has each token, a sparse matrix `[texts, tokens]`."""
    sparse, parts = require("scipy.sparse", "evaluation"), []
    for first in range(0, len(texts), _BATCH):
        pieces = tokenizer.pieces(texts[first : first + _BATCH])
        ids, splits = pieces.values.numpy(), pieces.row_splits.numpy()
        shape = (len(splits) - 1, tokenizer.vocabulary.size)
        parts.append(sparse.csr_array((np.ones(len(ids), np.float32), ids, splits), shape))
    return sparse.vstack(parts).tocsr()


def _frequent_words(texts: list[str]) -> list[str]:
    """The most frequent words of texts, in small letters."""
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    return [word for word, _ in counts.most_common(_MOST_WORDS)]


def _token_vectors(
    encoder: TrainableEncoder, words: list[str], log: Callable[[str], None]
) -> tuple[FramedTokenizer, np.ndarray, np.ndarray]:
    """The tokenizer of the static model, and the ids and vectors of its tokens."""
    tokenizer = encoder.tokenizer
    if isinstance(tokenizer, FramedTokenizer) and not words:
        ids = _own_ids(tokenizer)
        return tokenizer, ids, _piece_vectors(encoder, ids)
    if not words:
        kind = type(tokenizer).__name__
        raise ValueError(f"Expected a vocabulary or texts: a {kind} has no pieces for a table.")
    ids, pieces, make, new = np.array([], np.int64), [], _word_tokenizer, words
    if isinstance(tokenizer, WordPieceTokenizer):
        ids, make, known = _own_ids(tokenizer), tokenizer.with_words, {*tokenizer.words}
        pieces = [_piece_vectors(encoder, ids)]
        new = [word.lower() if tokenizer.lower_case else word for word in words]
        new = [word for word in new if word not in known]
    new = [*dict.fromkeys(word for word in new if _is_letters(word))]
    single = make(new).single_ids(new) if new else np.zeros(0)
    new = [word for word, id in zip(new, single, strict=True) if id]
    if not new:
        raise ValueError("vocabulary: expected single words that the encoder lacks, received none.")
    if len(new) < len(words):
        log(f"left out {len(words) - len(new):,} words: repeated, known or several tokens")
    wider = make(new)
    added = np.arange(wider.vocabulary.size - len(new), wider.vocabulary.size)
    return wider, np.concatenate([ids, added]), np.concatenate([*pieces, encoder.encode(new)])


def _word_tokenizer(words: Sequence[str]) -> WordPieceTokenizer:
    """A tokenizer of whole words; if one has a capital, capitals matter."""
    lower = all(word == word.lower() for word in words)
    return WordPieceTokenizer([*_SPECIAL, *words], lower_case=lower)


def _own_ids(tokenizer: FramedTokenizer) -> np.ndarray:
    """The ids that texts may have, the special and the unused ones left out."""
    start, separator = tokenizer.padded([""]).numpy()[0]
    special = {0, start, separator, tokenizer.unknown_id, tokenizer.mask}
    if isinstance(tokenizer, WordPieceTokenizer):
        special |= {i for i, word in enumerate(tokenizer.words) if word.startswith("[unused")}
    return np.array([i for i in range(tokenizer.vocabulary.size) if i not in special])


def _piece_vectors(encoder: TrainableEncoder, ids: np.ndarray) -> np.ndarray:
    """The encoder's vectors of texts of one token each, between the special tokens."""
    run, (start, separator) = inference(encoder.model), encoder.tokenizer.padded([""]).numpy()[0]
    rows = np.stack([np.full_like(ids, start), ids, np.full_like(ids, separator)], axis=1)
    batches = np.split(rows.astype(np.int32), range(_BATCH, len(rows), _BATCH))
    return np.concatenate([keras.ops.convert_to_numpy(run(batch)) for batch in batches])


def _is_letters(word: str) -> bool:
    """Whether a word has nothing at which BERT's tokenizer splits; Chinese it splits, too."""
    return bool(word) and all(unicodedata.category(each)[0] in "LMN" for each in word)
