"""Strings through every tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.fuzz.strings import BATCHES, FEW, Check, batch, hold
from tests.fuzz.tokenizer_checks import NEED_TEXT, STAGES


@pytest.fixture(scope="module")
def check(request: pytest.FixtureRequest) -> Check:
    """One tokenizer's check for all its tests."""
    if request.param in NEED_TEXT:
        pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
        pytest.importorskip("sentencepiece", reason="the extra `dev` is not installed")
    return STAGES[request.param]()


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(name, marks=[pytest.mark.end_to_end] * (name == "long_texts"))
        for name in STAGES
    ],
    indirect=True,
)
def test_hundreds_of_strings(check: Check) -> None:
    hold(check, batch(0, 250))


@pytest.mark.parametrize("check", [each for each in STAGES if each != "long_texts"], indirect=True)
@FEW
@given(texts=BATCHES)
def test_strings_that_hypothesis_draws(check: Check, texts: list[bytes]) -> None:
    check(texts)
