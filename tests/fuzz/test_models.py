"""Strings through every model."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.fuzz.models import MODELS, model_check
from tests.fuzz.strings import BATCHES, FEW, Check, batch, hold


@pytest.fixture(scope="module", params=MODELS)
def check(request: pytest.FixtureRequest) -> Check:
    """One model's check for all its tests, since each model takes a hundred megabytes."""
    if request.param == "sentence_t5":
        pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    return model_check(request.param)


def test_dozens_of_strings(check: Check) -> None:
    hold(check, batch(0, 30, 4))


# The bundled Transformers take seconds for these.
SLOW = ("use_transformer_en", "st5_mini_en")


@pytest.mark.parametrize(
    "check",
    [pytest.param(name, marks=[pytest.mark.end_to_end] * (name in SLOW)) for name in MODELS],
    indirect=True,
)
@FEW
@given(texts=BATCHES)
def test_strings_that_hypothesis_draws(check: Check, texts: list[bytes]) -> None:
    check(texts)
