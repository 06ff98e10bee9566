"""A tiny ModernBERT in the tests of every family."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.family_contract import FamilyContract
from tests.models.modernbert.test_model import built
from tests.tokenizers.test_added_tokens import modernbert, write
from use_st5.convert.tokenizer_files import read_tokenizer
from use_st5.trainable_encoder import TrainableEncoder


@pytest.fixture
def encoder(tmp_path: Path) -> TrainableEncoder:
    """A tiny encoder with a tokenizer that is read from a folder."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    return TrainableEncoder(built(), read_tokenizer(write(tmp_path, modernbert())))


class TestModernBert(FamilyContract):
    name = "modernbert"
    adapted = 14
