"""The rows' names, and the vectors that are kept for each encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import use_st5
from experiments.use.transfer import rows
from experiments.use.transfer.rows import Ingredients, TransferRow, transfer_rows
from experiments.use.transfer.splits import TransferSplit
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.evaluation.labelled_texts import LabelledTexts

ROW = TransferRow("models/mine", None)
TEXTS = LabelledTexts((["a", "bb"],), np.array([0, 1]))
SPLIT = TransferSplit(0, TEXTS, TEXTS, TEXTS)


class Encoder:
    """Encodes a text as its length times a weight; the caller must turn off its warnings."""

    identity = "of ones"
    weight = 1.0
    encoded = 0

    def encode(self, texts: list[str], *, on_truncation: str = "warn") -> np.ndarray:
        assert on_truncation == "ignore"
        self.encoded += len(texts)
        return np.array([[len(text) * self.weight] for text in texts], np.float32)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    """The encoder that is loaded from `models/mine`."""
    found = Encoder()
    monkeypatch.setattr(use_st5, "load", lambda name: found, raising=False)
    monkeypatch.setattr(rows, "SavedModelLayer", lambda name: None)
    return found


def no_words() -> WordVectors:
    raise AssertionError("no row here has pretrained word vectors")


def test_an_encoder_that_was_trained_anew_is_asked_anew(encoder: Encoder, tmp_path: Path) -> None:
    def run() -> tuple[list[float], dict[str, str]]:
        ingredients = Ingredients(tmp_path, no_words)
        vectors = ingredients.prepare(ROW, SPLIT).train.inputs["sentence"]
        return vectors[:, 0].tolist(), ingredients.settings(ROW)

    assert run() == run() == ([1.0, 2.0], {"encoder": "of ones"})
    assert encoder.encoded == 2, "the second run reads what the first one kept"
    encoder.identity, encoder.weight = "of threes", 3.0
    assert run() == ([3.0, 6.0], {"encoder": "of threes"})


def test_rows_of_words_depend_on_no_encoder(tmp_path: Path) -> None:
    assert Ingredients(tmp_path, no_words).settings(TransferRow(None, "cnn_lrn")) == {}


def test_rows_of_the_paper() -> None:
    rows = transfer_rows(["use_dan_en", "models/mine"])
    assert len(rows) == 14
    assert rows["mine+dan_lrn"] == TransferRow("models/mine", "dan_lrn")
    assert rows["use_dan_en"].words is None
    assert [name for name, row in rows.items() if row.encoder is None] == [
        *("cnn_w2v", "dan_w2v", "cnn_lrn", "dan_lrn")
    ]


def test_two_encoders_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one/model and two/model .* row model\. Rename"):
        transfer_rows(["one/model", "other", "two/model"])
    assert len(transfer_rows(["one/model", "one/model"])) == 9
