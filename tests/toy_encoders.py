"""Small encoders of every family, exported once for all tests: fixtures of `tests/conftest.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    import keras

    from use_st5.tokenizers.tokenizer import Tokenizer
    from use_st5.trainable_encoder import TrainableEncoder

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
    def folder(self) -> Path:
        """The folder in float32."""
        return self.folders["float32"]

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


@pytest.fixture(scope="session")
def toy_t5(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A Sentence-T5 of one layer and 24 dimensions over T5's own vocabulary, with dropout."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    keras.utils.set_random_seed(0)
    config = T5Config(32_128, 1, 16, 32, 2, 8, "gated_gelu", dropout=0.1)
    model, tokenizer = SentenceT5(config, projection_dim=24), SentencePieceTokenizer()
    return _exported(model, tokenizer, tmp_path_factory, max_length=128, at_once=())


@pytest.fixture(scope="session")
def toy_mpnet(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """An MPNet of two blocks, in whose vocabulary padding is not the first piece."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.convert.tokenizer_files import MPNET_TOKENS
    from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    keras.utils.set_random_seed(0)
    pieces = ["<s>", "<pad>", "</s>", "[UNK]", *WORDS, "<mask>"]
    tokenizer = WordPieceTokenizer(pieces, special=MPNET_TOKENS)
    config = MPNetConfig(len(pieces), 2, 8, 12, 2, max_positions=24, relative_buckets=8)
    model = _scaled(SentenceMPNet(config, normalize=True))
    return _exported(model, tokenizer, tmp_path_factory, max_length=24, at_once=())


@pytest.fixture(scope="session")
def toy_modernbert(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A ModernBERT of two blocks with a window of four tokens."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from tests.tokenizers.test_added_tokens import modernbert, write
    from use_st5.convert.tokenizer_files import read_tokenizer
    from use_st5.models.modernbert.model import ModernBertConfig, SentenceModernBert

    keras.utils.set_random_seed(0)
    tokenizer = read_tokenizer(write(tmp_path_factory.mktemp("tokenizer"), modernbert()))
    config = ModernBertConfig(300, 2, 8, 12, 2, max_positions=32, local_window=4, dropout=0.1)
    model = _scaled(SentenceModernBert(config))
    return _exported(model, tokenizer, tmp_path_factory, max_length=32, at_once=())


@pytest.fixture(scope="session")
def toy_static_embedding(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A StaticEmbedding of eight dimensions."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    import keras

    from use_st5.models.static_embedding.model import StaticEmbedding
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    keras.utils.set_random_seed(0)
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])
    model = StaticEmbedding(tokenizer.vocabulary.size, 8)
    return _exported(model, tokenizer, tmp_path_factory, max_length=None, at_once=())


@pytest.fixture(scope="session")
def toy_kerashub(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A text embedder of KerasHub, a BERT of two blocks."""
    from tests.kerashub_embedders import bert
    from use_st5.models.kerashub.family import read_text_embedder

    model, tokenizer, length = read_text_embedder(bert())
    return _exported(model, tokenizer, tmp_path_factory, max_length=length, at_once=())


@pytest.fixture(scope="session")
def toy_trigrams(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """An encoder of the family that `tests/models/toy_family.py` registers."""
    import keras

    from tests.models.toy_family import FAMILY

    keras.utils.set_random_seed(0)
    tokenizer = FAMILY.usual_tokenizer()
    model = FAMILY.fresh("toy_trigrams_small", tokenizer)
    return _exported(model, tokenizer, tmp_path_factory, max_length=30, at_once=())


def _scaled(model: keras.Model) -> keras.Model:
    """Enlarges the initial matrices, which are so small that all vectors are nearly the same."""
    model.build()
    for variable in model.trainable_variables:
        variable.assign(variable * 15 if len(variable.shape) == 2 else variable)
    return model


class _Folders(dict[str, Path]):
    """Exports an encoder when its folder of a precision is asked for."""

    def __init__(self, encoder: TrainableEncoder, home: Path) -> None:
        super().__init__()
        self._encoder, self._home = encoder, home

    def __missing__(self, precision: str) -> Path:
        self._encoder.export(self._home / precision, precision=precision)
        self[precision] = self._home / precision
        return self[precision]


def _exported(
    model: keras.Model,
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    max_length: int | None,
    at_once: tuple[str, ...] = ("float32", "int8"),
) -> Toy:
    """Exports a model, with the length limit that the model has itself."""
    from use_st5.trainable_encoder import TrainableEncoder

    facts = {"card": "# Toy\n", "metadata": {"languages": ["en"]}}
    encoder = TrainableEncoder(model, tokenizer, name="toy", max_length=max_length, **facts)
    folders = _Folders(encoder, tmp_path_factory.mktemp("exported"))
    for precision in at_once:
        folders[precision]
    return Toy(model, tokenizer, max_length, folders)
