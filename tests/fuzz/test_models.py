"""Strings through every model."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given

from tests.fuzz.models import MODELS, model_check
from tests.fuzz.strings import BATCHES, FEW, Check, batch, hold


@functools.cache
def _check(name: str) -> Check:
    if name == "sentence_t5":
        pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    return model_check(name)


@pytest.mark.parametrize("name", MODELS)
def test_dozens_of_strings(name: str) -> None:
    hold(_check(name), batch(0, 60, 4))


@pytest.mark.parametrize("name", MODELS)
@FEW
@given(texts=BATCHES)
def test_strings_that_hypothesis_draws(name: str, texts: list[bytes]) -> None:
    _check(name)(texts)
