"""Strings through every tokenizer."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given

from tests.fuzz.strings import BATCHES, FEW, Check, batch, hold
from tests.fuzz.tokenizer_checks import NEED_TEXT, STAGES


@functools.cache
def _check(stage: str) -> Check:
    if stage in NEED_TEXT:
        pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
        pytest.importorskip("sentencepiece", reason="the extra `dev` is not installed")
    return STAGES[stage]()


@pytest.mark.parametrize("stage", STAGES)
def test_hundreds_of_strings(stage: str) -> None:
    hold(_check(stage), batch(0, 500))


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "long_texts"])
@FEW
@given(texts=BATCHES)
def test_strings_that_hypothesis_draws(stage: str, texts: list[bytes]) -> None:
    _check(stage)(texts)
