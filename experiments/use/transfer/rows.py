"""The rows of the transfer tables: their parts, and the data that they need."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import use_st5
from experiments.use.transfer.model import TransferModel
from experiments.use.transfer.splits import TransferSplit
from experiments.use.transfer.word_cnn import WordCNN
from experiments.use.transfer.word_dan import WordDAN
from experiments.use.transfer.word_embedding import WordEmbedding
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.encode import VectorCache
from use_st5.evaluation import LabelledTexts
from use_st5.layers import SavedModelLayer
from use_st5.tokenizers import NGramVocabulary

# As in the paper, word vectors are pretrained by word2vec, or learned on the task.
WORD_ROWS = ("cnn_w2v", "dan_w2v", "cnn_lrn", "dan_lrn")
NUM_WORDS = 20_000
WORD_DIMENSION = 100


@dataclass(frozen=True)
class TransferRow:
    """A sentence encoder (a name or folder), one of `WORD_ROWS`, or both."""

    encoder: str | None
    words: str | None

    @property
    def name(self) -> str:
        """The name of the row, for example "use_dan_en+cnn_w2v"."""
        encoder = [Path(self.encoder).name] if self.encoder else []
        return "+".join([*encoder, *([self.words] if self.words else [])])

    @property
    def pretrained(self) -> bool:
        """Whether the row uses pretrained word vectors."""
        return bool(self.words and self.words.endswith("w2v"))


@dataclass(frozen=True)
class Features:
    """The inputs of a model's head, and the classes."""

    inputs: dict[str, np.ndarray]
    labels: np.ndarray


@dataclass(frozen=True)
class PreparedSplit:
    """A split as features, and the words of its training texts."""

    number: int
    train: Features
    dev: Features
    test: Features
    vocabulary: NGramVocabulary | None


def transfer_rows(encoders: Sequence[str]) -> dict[str, TransferRow]:
    """The paper's rows by name: each encoder alone and with words, then words alone."""
    by_name: dict[str, str] = {}
    for encoder in encoders:
        name = Path(encoder).name
        if (other := by_name.setdefault(name, encoder)) != encoder:
            raise ValueError(
                f"encoders: {other} and {encoder} would both be the row {name}. Rename one of the "
                "folders, or give each to a command with an --out of its own."
            )
    rows = [TransferRow(encoder, words) for encoder in encoders for words in (None, *WORD_ROWS)]
    rows += [TransferRow(None, words) for words in WORD_ROWS]
    return {row.name: row for row in rows}


@dataclass(frozen=True)
class _Encoder:
    """A sentence encoder: its identity, its cached vectors, and its layer."""

    identity: str
    embed: VectorCache
    layer: SavedModelLayer


class Ingredients:
    """Encoders and word vectors, each loaded when a row first needs it.

    Args:
        store: Folder that keeps sentence vectors, so that each text is encoded once; each encoder
            has a folder named by its identity.
        word_vectors: Returns the pretrained vectors.
    """

    def __init__(self, store: Path, word_vectors: Callable[[], WordVectors]) -> None:
        self._store = store
        self._make_vectors = word_vectors
        self._vectors: WordVectors | None = None
        self._encoders: dict[str, _Encoder] = {}

    def settings(self, row: TransferRow) -> dict[str, str]:
        """The settings of a row's results besides its name: the identity of its "encoder"."""
        return {"encoder": self._encoder(row.encoder).identity} if row.encoder else {}

    def prepare(self, row: TransferRow, split: TransferSplit) -> PreparedSplit:
        """Computes everything that trainings on a split share."""
        embedding = None
        if row.words:
            embedding = WordEmbedding.from_texts(
                split.train.columns[0], num_words=NUM_WORDS, vectors=self._word_vectors(row)
            )

        def features(samples: LabelledTexts) -> Features:
            inputs = {}
            if row.encoder:
                inputs["sentence"] = self._encoder(row.encoder).embed(samples.columns[0])
            if embedding:
                inputs["words"] = embedding.ids(samples.columns[0]).numpy()
            return Features(inputs, samples.labels)

        return PreparedSplit(
            split.number,
            features(split.train),
            features(split.dev),
            features(split.test),
            embedding.vocabulary if embedding else None,
        )

    def model(self, row: TransferRow, prepared: PreparedSplit, chosen: dict[str, Any]) -> Any:
        """A new `TransferModel` with the chosen hyper-parameters."""
        words = None
        if row.words and prepared.vocabulary:
            embedding = WordEmbedding(
                prepared.vocabulary,
                vectors=self._word_vectors(row),
                dimension=WORD_DIMENSION,
                trainable=chosen.get("train_words", True),
            )
            if row.words.startswith("cnn"):
                words = WordCNN(embedding, filters=chosen["filters"])
            else:
                words = WordDAN(
                    embedding,
                    hidden_units=(chosen["word_units"],),
                    word_dropout=chosen["word_dropout"],
                )
        hidden = chosen["hidden_units"]
        return TransferModel(
            int(prepared.train.labels.max()) + 1,
            sentence=self._encoder(row.encoder).layer if row.encoder else None,
            words=words,
            hidden_units=(hidden,) if hidden else (),
            dropout=chosen["dropout"],
        )

    def _word_vectors(self, row: TransferRow) -> WordVectors | None:
        if row.pretrained and self._vectors is None:
            self._vectors = self._make_vectors()
        return self._vectors if row.pretrained else None

    def _encoder(self, name: str) -> _Encoder:
        if name not in self._encoders:
            encoder = use_st5.load(name)
            # Cuts are part of an encoder's results, and users of the experiment can pass no option.
            encode = functools.partial(encoder.encode, on_truncation="ignore")
            embed = VectorCache(encode, store=self._store / encoder.identity)
            self._encoders[name] = _Encoder(encoder.identity, embed, SavedModelLayer(name))
        return self._encoders[name]
