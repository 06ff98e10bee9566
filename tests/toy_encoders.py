"""Small encoders of every family, exported once for all tests: fixtures of `tests/conftest.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    import keras

    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.tokenizers.tokenizer import Tokenizer

WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat", "how", "old", "are", "you", "what", "is")
# The arguments of a USETransformerConfig, except the number of rows of its table.
USE_TRANSFORMER: dict[str, Any] = {
    "embedding_dim": 8,
    "num_layers": 1,
    "hidden_dim": 12,
    "intermediate_dim": 20,
    "num_heads": 3,
    "dimension": 16,
    "max_length": 16,
    "dropout": 0.3,
}
PAIRS = ("the cat", "how old", "old are", "what is", "a dog")


class Toy(NamedTuple):
    """The model that was exported, and the folders it was exported to, by precision."""

    model: keras.Model
    tokenizer: Tokenizer
    max_length: int | None
    folders: dict[str, Path]

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.tokenizer.vocabulary.size

    def ids(self, texts: list[str | bytes]) -> Any:
        """The input of the model for these texts: their padded ids."""
        return self.tokenizer.padded(texts, self.max_length)


@pytest.fixture(scope="session", params=["use_dan", "use_transformer", "bert"])
def toy(request: pytest.FixtureRequest) -> Toy:
    """The toys of the families, one after the other."""
    return request.getfixturevalue(f"toy_{request.param}")


@pytest.fixture(scope="session")
def toy_use_dan(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A USE-DAN of 27 rows x 8 and 16 dimensions, with both kinds of dropout."""
    import keras

    from use_st5.models.use_dan.model import USEDAN, USEDANConfig
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

    keras.utils.set_random_seed(0)  # the same weights whichever tests ran before
    vocabulary = NGramVocabulary(WORDS, PAIRS, unigram_buckets=4, bigram_buckets=3)
    config = USEDANConfig(
        num_embeddings=vocabulary.size,
        embedding_dim=8,
        hidden_dims=(12, 16),
        term_dropout=0.3,
        dropout=0.3,
    )
    model, tokenizer = USEDAN(config), NGramTokenizer(vocabulary)
    return _exported(model, tokenizer, tmp_path_factory, max_length=None)


@pytest.fixture(scope="session")
def toy_use_transformer(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A USE Transformer of 19 rows x 8, one block and 16 dimensions, with dropout."""
    import keras

    from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
    from use_st5.tokenizers.token_tokenizer import UnigramTokenizer

    keras.utils.set_random_seed(0)
    vocabulary = NGramVocabulary(WORDS, unigram_buckets=4)
    config = USETransformerConfig(num_embeddings=vocabulary.size, **USE_TRANSFORMER)
    model, tokenizer = USETransformer(config), UnigramTokenizer(vocabulary)
    return _exported(model, tokenizer, tmp_path_factory, max_length=16)


@pytest.fixture(scope="session")
def toy_bert(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A BERT of 18 rows x 12, one block and a dense layer, with dropout."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.models.bert import names as bert_names
    from use_st5.models.bert.model import BertConfig, ProjectionConfig, SentenceBert
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    keras.utils.set_random_seed(0)
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", *WORDS])
    config = BertConfig(
        tokenizer.vocabulary.size,
        num_layers=1,
        hidden_dim=12,
        intermediate_dim=20,
        num_heads=3,
        max_positions=16,
        separator_id=tokenizer.separator,
        dropout=0.3,
        attention_dropout=0.3,
    )
    model = SentenceBert(config, dense=ProjectionConfig(16), normalize=True)
    model.build()
    # BERT's first weights are so small that all vectors are nearly the same.
    for path, variable in bert_names.weight_variables(model).items():
        if len(variable.shape) == 2:
            variable.assign(variable * (5 if path.endswith("kernel") else 25))
    return _exported(model, tokenizer, tmp_path_factory, max_length=16)


def _exported(
    model: keras.Model,
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    max_length: int | None,
) -> Toy:
    """Exports a model in both precisions, with the length limit that the model has itself."""
    from use_st5.trainable_encoder import TrainableEncoder

    if not model.built:
        model.build()
    facts = {"card": "# Toy\n", "metadata": {"languages": ["en"]}}
    encoder = TrainableEncoder(model, tokenizer, name="toy", **facts)
    folders = {}
    for precision in ("float32", "int8"):
        folders[precision] = tmp_path_factory.mktemp("exported") / precision
        encoder.export(folders[precision], precision=precision)
    return Toy(model, tokenizer, max_length, folders)


class ToyT5(NamedTuple):
    """A Sentence-T5 and the folder it was exported to."""

    model: SentenceT5
    tokenizer: Any
    folder: Path


@pytest.fixture(scope="session")
def toy_t5(tmp_path_factory: pytest.TempPathFactory) -> ToyT5:
    """A Sentence-T5 of one layer and 24 dimensions over T5's own vocabulary, with dropout."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
    from use_st5.trainable_encoder import TrainableEncoder

    keras.utils.set_random_seed(0)
    config = T5Config(32_128, 1, 16, 32, 2, 8, "gated_gelu", dropout=0.1)
    model, tokenizer = SentenceT5(config, projection_dim=24), SentencePieceTokenizer()
    model.build()
    folder = tmp_path_factory.mktemp("exported") / "st5"
    TrainableEncoder(model, tokenizer, name="tiny", max_length=128).export(folder)
    return ToyT5(model, tokenizer, folder)
