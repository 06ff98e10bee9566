"""Small encoders of every family, exported once for all tests: fixtures of `tests/conftest.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    import keras

    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.text.vectorizer import Vectorizer

WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat", "how", "old", "are", "you", "what", "is")
# Of a USETransformerConfig, but for the rows of its table.
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
    """The model that was exported, and the folders it was exported to, by storage."""

    model: keras.Model
    vectorizer: Vectorizer
    max_length: int | None
    folders: dict[str, Path]

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.vectorizer.vocabulary.size

    def ids(self, texts: list[str | bytes]) -> Any:
        """What the model is given for these texts."""
        return self.vectorizer.padded(texts, self.max_length)


@pytest.fixture(scope="session", params=["use_dan", "use_transformer", "bert"])
def toy(request: pytest.FixtureRequest) -> Toy:
    """The toys of the families, one after the other."""
    return request.getfixturevalue(f"toy_{request.param}")


@pytest.fixture(scope="session")
def toy_use_dan(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A USE-DAN of 27 rows x 8 and 16 dimensions, with both kinds of dropout."""
    import keras

    from use_st5.models.use_dan.model import USEDAN, USEDANConfig
    from use_st5.text.ngram_vectorizer import NGramVectorizer
    from use_st5.text.ngram_vocabulary import NGramVocabulary

    keras.utils.set_random_seed(0)  # the same weights whichever tests ran before
    vocabulary = NGramVocabulary(WORDS, PAIRS, unigram_buckets=4, bigram_buckets=3)
    config = USEDANConfig(
        num_embeddings=vocabulary.size,
        embedding_dim=8,
        hidden_dims=(12, 16),
        term_dropout=0.3,
        dropout=0.3,
    )
    model, vectorizer = USEDAN(config), NGramVectorizer(vocabulary)
    return _exported(model, vectorizer, tmp_path_factory, max_length=None)


@pytest.fixture(scope="session")
def toy_use_transformer(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A USE Transformer of 19 rows x 8, one block and 16 dimensions, with dropout."""
    import keras

    from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
    from use_st5.text.ngram_vocabulary import NGramVocabulary
    from use_st5.text.token_vectorizer import UnigramVectorizer

    keras.utils.set_random_seed(0)
    vocabulary = NGramVocabulary(WORDS, unigram_buckets=4)
    config = USETransformerConfig(num_embeddings=vocabulary.size, **USE_TRANSFORMER)
    model, vectorizer = USETransformer(config), UnigramVectorizer(vocabulary)
    return _exported(model, vectorizer, tmp_path_factory, max_length=16)


@pytest.fixture(scope="session")
def toy_bert(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A BERT of 18 rows x 12, one block and a dense layer, with dropout."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.models.bert import names as bert_names
    from use_st5.models.bert.model import BertConfig, ProjectionConfig, SentenceBert
    from use_st5.text.wordpiece_vectorizer import WordPieceVectorizer

    keras.utils.set_random_seed(0)
    vectorizer = WordPieceVectorizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", *WORDS])
    config = BertConfig(
        vectorizer.vocabulary.size,
        num_layers=1,
        hidden_dim=12,
        intermediate_dim=20,
        num_heads=3,
        max_positions=16,
        separator_id=vectorizer.separator,
        dropout=0.3,
        attention_dropout=0.3,
    )
    model = SentenceBert(config, dense=ProjectionConfig(16), normalize=True)
    model.build()
    # BERT's first weights are so small that all vectors are nearly the same.
    for path, variable in bert_names.weight_variables(model).items():
        if len(variable.shape) == 2:
            variable.assign(variable * (5 if path.endswith("kernel") else 25))
    return _exported(model, vectorizer, tmp_path_factory, max_length=16)


@pytest.fixture(scope="session")
def toy_ensemble(toy_use_dan: Toy, tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """The USE-DAN and another of its shape, concatenated."""
    import keras

    from use_st5.models.ensemble.ensemble import Ensemble

    first = toy_use_dan.model
    keras.utils.set_random_seed(1)
    second = type(first)(first.config)
    model = Ensemble([first, second], mode="concat")
    return _exported(model, toy_use_dan.vectorizer, tmp_path_factory, max_length=None)


def _exported(
    model: keras.Model,
    vectorizer: Vectorizer,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    max_length: int | None,
) -> Toy:
    """A model in both storages; its limit is its own, the writer is not told."""
    from use_st5.trainable_encoder import TrainableEncoder

    if not model.built:
        model.build()
    facts = {"card": "# Toy\n", "metadata": {"languages": ["en"]}}
    encoder = TrainableEncoder(model, vectorizer, name="toy", **facts)
    folders = {}
    for storage in ("float32", "int8"):
        folders[storage] = tmp_path_factory.mktemp("exported") / storage
        encoder.export(folders[storage], storage=storage)
    return Toy(model, vectorizer, max_length, folders)


class ToyT5(NamedTuple):
    """A Sentence-T5 and the folder it was exported to."""

    model: SentenceT5
    vectorizer: Any
    folder: Path


@pytest.fixture(scope="session")
def toy_t5(tmp_path_factory: pytest.TempPathFactory) -> ToyT5:
    """A Sentence-T5 of one layer and 24 dimensions over T5's own vocabulary, with dropout."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer
    from use_st5.trainable_encoder import TrainableEncoder

    keras.utils.set_random_seed(0)
    config = T5Config(32_128, 1, 16, 32, 2, 8, "gated_gelu", dropout=0.1)
    model, vectorizer = SentenceT5(config, projection_dim=24), SentencePieceVectorizer()
    model.build()
    folder = tmp_path_factory.mktemp("exported") / "st5"
    TrainableEncoder(model, vectorizer, name="tiny", max_length=128).export(folder)
    return ToyT5(model, vectorizer, folder)
