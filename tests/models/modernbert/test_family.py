"""A tiny ModernBERT goes the ways of every family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models import family_contract as contract
from tests.models.modernbert.test_model import built
from tests.tokenizers.test_added_tokens import modernbert, write
from use_st5.convert.tokenizer_files import read_tokenizer
from use_st5.trainable_encoder import TrainableEncoder


@pytest.fixture
def encoder(tmp_path: Path) -> TrainableEncoder:
    """A tiny one with the tokenizer of a folder."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    return TrainableEncoder(built(), read_tokenizer(write(tmp_path, modernbert())))


def test_it_is_adapted(encoder: TrainableEncoder) -> None:
    contract.check_adapters(encoder, layers=14)


@pytest.mark.end_to_end
def test_it_is_trained(encoder: TrainableEncoder) -> None:
    contract.check_training(encoder)


@pytest.mark.parametrize(
    "precision", ["int8", pytest.param("float32", marks=pytest.mark.end_to_end)]
)
def test_it_is_exported(encoder: TrainableEncoder, precision: str, tmp_path: Path) -> None:
    contract.check_export(encoder, precision, tmp_path / precision)


@pytest.mark.end_to_end
def test_it_compares_pairs(encoder: TrainableEncoder, tmp_path: Path) -> None:
    contract.check_cross_encoder(encoder, tmp_path / "judge")


@pytest.mark.end_to_end
@pytest.mark.process
def test_a_fresh_process_loads_it(
    encoder: TrainableEncoder, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    contract.check_fresh_process(encoder, tmp_path / "model", fresh_python)
