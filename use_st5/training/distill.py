"""A static model from any encoder: a table of its tokens' vectors, without a Transformer."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import keras
import numpy as np

from use_st5.encode.sentences import one_or_many
from use_st5.hub.model_manifest import ModelManifest, check_replaceable
from use_st5.models.encoder_model import inference
from use_st5.models.static_embedding.model import StaticEmbedding
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.wordpiece_tokenizer import BERT_TOKENS, WordPieceTokenizer
from use_st5.trainable_encoder import TrainableEncoder

_BATCH = 512  # tokens
_SPECIAL = (BERT_TOKENS.padding, BERT_TOKENS.unknown, BERT_TOKENS.start, BERT_TOKENS.separator)


def distill(
    encoder: str | os.PathLike[str] | TrainableEncoder,
    folder: str | os.PathLike[str],
    *,
    vocabulary: Iterable[str] = (),
    dimension: int = 256,
    sif: float = 5e-5,
    name: str | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> ModelManifest:
    """Writes a static model whose table comes from an encoder, as model2vec does.

    The row of a token is the encoder's vector of the token alone, shortened to its principal
    components. Each component is divided by the square root of its standard deviation. A frequent
    token gets a small weight, `sif / (sif + p)` (Arora et al. 2017), where `p` is its share of all
    tokens by Zipf's law: in proportion to 1 / (1 + its place in the vocabulary).

    The vector of a text is the mean of the rows of its tokens, with length 1. The model is a
    `StaticEmbedding`; it cuts no text.

    Args:
        encoder: The encoder, or what `TrainableEncoder.load` takes.
        folder: The folder to write; an older model of use_st5 there is replaced.
        vocabulary: Words, the most frequent first. If the encoder reads BERT's word pieces, they
            come after its own ones; else they are the whole vocabulary, and a text's other words
            are not read. Relatives of BERT and RoBERTa need none.
        dimension: Numbers of a sentence vector, at most those of the encoder's.
        sif: The smaller, the less frequent tokens weigh; 0: all weigh the same.
        name: The model's name; None: the folder's.
        log: Called with a line about the words that cannot be used.

    Returns:
        The written description.

    Examples:
        >>> use_st5.distill("hf://sentence-transformers/all-MiniLM-L6-v2", "minilm_static")
        >>> use_st5.load("minilm_static", backend="onnx").encode(sentences)
    """
    check_replaceable(folder)
    words, _ = one_or_many(vocabulary)
    if sif < 0:
        raise ValueError(f"sif: expected 0 or more, received {sif}.")
    if not isinstance(encoder, TrainableEncoder):
        encoder = TrainableEncoder.load(encoder)
    if encoder.inputs != 1:
        raise ValueError("Expected an encoder of single texts, received a cross-encoder.")
    tokenizer, ids, vectors = _token_vectors(encoder, words, log)
    most = min(vectors.shape)
    if not 1 <= dimension <= most:
        raise ValueError(f"dimension: expected 1 to {most:,} numbers, received {dimension}.")
    table = np.zeros((tokenizer.vocabulary.size, dimension), np.float32)
    table[ids] = principal_components(vectors, dimension) * zipf_weights(len(ids), sif)[:, None]
    model = StaticEmbedding(*table.shape, normalize=True, ignored_id=tokenizer.unknown_id or 0)
    model.build()
    model.embedding.embeddings.assign(table)
    facts = {**encoder.metadata, "distilled_from": encoder.name or "an encoder", "sif": sif}
    return TrainableEncoder(model, tokenizer, name=name, metadata=facts).export(folder)


def principal_components(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """The first components of each row, divided by the square root of their deviation.

    Args:
        vectors: float `[rows, width]`, at least two rows.
        dimension: The number of components.

    Returns:
        `[rows, dimension]`; the largest number of each axis is positive.
    """
    centred = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(centred.T).reshape(len(centred.T), -1))
    axes, variances = axes[:, : -dimension - 1 : -1], variances[: -dimension - 1 : -1]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dimension)])
    least = max(variances[0], 1e-30) * 1e-9
    return centred @ axes / np.maximum(variances, least) ** 0.25


def zipf_weights(rows: int, sif: float) -> np.ndarray:
    """The weights `sif / (sif + p)` of tokens, most frequent first, whose `p` follow Zipf's law."""
    shares = 1 / np.arange(2, rows + 2)
    return sif / (sif + shares / shares.sum()) if sif else np.ones(rows)


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
        raise ValueError(f"vocabulary: expected words: a {kind} has no pieces for a table.")
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
        raise ValueError("vocabulary: expected words that the encoder has no pieces for.")
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
