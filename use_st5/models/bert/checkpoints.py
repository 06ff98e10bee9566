"""Sentence-BERT out of the checkpoints of other libraries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from use_st5.convert.assignment import Target, assign_weights, check_shapes
from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.sentence_transformers import DenseModule
from use_st5.convert.tokenizer_files import read_tokenizer
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.bert import checkpoint_names, tensorflow_formats
from use_st5.models.bert.checkpoint_formats import MODEL_TYPES, bert_tensors
from use_st5.models.bert.config import POOLINGS, DenseActivation, Pooling, ProjectionConfig
from use_st5.models.bert.pooler import read_pooler
from use_st5.models.bert.sentence_bert import SentenceBert
from use_st5.text.byte_pair_vectorizer import BytePairVectorizer
from use_st5.text.wordpiece_vectorizer import WordPieceVectorizer, read_words

# Torch's classes.
_ACTIVATIONS: dict[str, DenseActivation] = {
    "Identity": "linear",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
}


def knows(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint holds a BERT or RoBERTa."""
    if checkpoint.format == "TensorFlow":
        return tensorflow_formats.knows(checkpoint)
    return checkpoint.settings.get("model_type") in MODEL_TYPES


def read(
    checkpoint: Checkpoint,
    *,
    pooling: str | None = None,
    vocabulary: Path | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> tuple[SentenceBert, WordPieceVectorizer | BytePairVectorizer]:
    """A Sentence-BERT with the weights of a checkpoint, and its text stage.

    Args:
        checkpoint: As for `read_sentence_bert`.
        pooling: As for `read_sentence_bert`.
        vocabulary: A file of its tokenizer, whose folder is read; None: the checkpoint's.
        dtype: As for `read_sentence_bert`.
        on_tensor: As for `read_sentence_bert`.

    Raises:
        FileNotFoundError: The folder has no vocabulary.
        ValueError: Tensors, settings or vocabulary do not fit.
    """
    vectorizer = _vectorizer(checkpoint, vocabulary)
    model = read_sentence_bert(
        checkpoint,
        separator=vectorizer.separator,
        pooling=pooling,
        dtype=dtype,
        on_tensor=on_tensor,
    )
    return model, vectorizer


def read_sentence_bert(
    checkpoint: Checkpoint,
    *,
    separator: int | None,
    pooling: str | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> SentenceBert:
    """A Sentence-BERT with the weights of a checkpoint, read tensor by tensor.

    Of sentence-transformers it has the modules. The head of the masked language model is there
    where the checkpoint has it.

    Args:
        checkpoint: Of a BERT or RoBERTa; stored in float32, bfloat16 or float16.
        separator: Id of the token that ends a text.
        pooling: As for `SentenceBert`; None: what a folder of sentence-transformers says, "mean"
            elsewhere.
        dtype: Keras dtype policy of the model, such as "bfloat16"; a projection stays float32.
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        ValueError: The weights do not fit the configuration, the settings are of no BERT or
            RoBERTa, the modules are not those of a Sentence-BERT, or `pooling` is given where the
            checkpoint says it.
    """
    pooled = _pooling(checkpoint, pooling)
    tensors = bert_tensors
    if checkpoint.format == "TensorFlow":
        tensors = tensorflow_formats.tensorflow_tensors
    bert, modules = tensors(checkpoint), checkpoint.modules
    check_shapes(bert.stored_shapes(), bert.source)
    dense = modules.dense if modules else None
    model = SentenceBert(
        dataclasses.replace(bert.config, separator_id=separator),
        pooling=pooled,
        dense=None if dense is None else _projection(dense, bert.config.hidden_dim),
        normalize=modules is not None and modules.normalize,
        head=bert.head,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    mapping = {
        bert.names[path]: Target(variable, transposed=bert.is_transposed(path))
        for path, variable in checkpoint_names.variables(model).items()
    }
    assign_weights(mapping, bert.source, on_tensor=on_tensor)
    if dense is not None:
        dense.assign(model.projection, on_tensor=on_tensor)
    model.pooler = read_pooler(checkpoint, bert.config.hidden_dim)
    return model


def _pooling(checkpoint: Checkpoint, asked: str | None) -> Pooling:
    pooling = checkpoint.pooling(asked) or POOLINGS[0]
    modules = checkpoint.modules
    if modules is not None and pooling not in POOLINGS:
        raise ValueError(
            f"{modules.pooling_file}: expected one of the poolings {POOLINGS}, found {pooling!r}."
        )
    return cast("Pooling", pooling)  # `SentenceBert` refuses others


def _projection(dense: DenseModule, hidden_dim: int) -> ProjectionConfig:
    """The layer of a folder of sentence-transformers, its tensors held against it."""
    if dense.activation not in _ACTIVATIONS:
        raise ValueError(
            f"{dense.where}: expected one of the activations {[*_ACTIVATIONS]}, found "
            f"{dense.activation!r}."
        )
    dense.check(hidden_dim)
    return ProjectionConfig(dense.width, dense.bias, _ACTIVATIONS[dense.activation])


def _vectorizer(
    checkpoint: Checkpoint, vocabulary: Path | None
) -> WordPieceVectorizer | BytePairVectorizer:
    """The text stage of the folder, or of the one in which a vocabulary lies."""
    folder = vocabulary.parent if vocabulary else checkpoint.beside
    vectorizer: WordPieceVectorizer | BytePairVectorizer
    if checkpoint.format == "TensorFlow":
        vectorizer = _of_words(vocabulary or folder / "vocab.txt")
    else:
        vectorizer = read_tokenizer(folder)
    roberta = checkpoint.settings.get("model_type") == "roberta"
    if roberta != isinstance(vectorizer, BytePairVectorizer):
        raise ValueError(
            f"{folder}: expected the tokenizer of a {'RoBERTa' if roberta else 'BERT'}, found a "
            f"{type(vectorizer).__name__}'s."
        )
    rows, size = checkpoint.settings.get("vocab_size"), vectorizer.vocabulary.size
    if isinstance(rows, int) and size > rows:
        raise ValueError(
            f"{folder}: expected a vocabulary of at most {rows:,} pieces, the rows of the table; "
            f"it has {size:,}."
        )
    modules = checkpoint.modules
    if modules and modules.lower_case and not getattr(vectorizer.vocabulary, "lower_case", False):
        raise ValueError(
            f"{checkpoint.where}: expected a tokenizer that reads capitals as small letters, as "
            "do_lower_case asks of sentence-transformers, found one that does not."
        )
    return vectorizer


def _of_words(path: Path) -> WordPieceVectorizer:
    """Of the original BERT nothing but the words tells the cased models from the uncased ones."""
    words = read_words(path)
    cased = any(word != word.lower() for word in words if not word.startswith("["))
    return WordPieceVectorizer(words, lower_case=not cased)
