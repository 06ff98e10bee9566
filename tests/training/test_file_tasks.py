"""The loss of a file, with its usual settings and those of the papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training.words import Words
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.simcse_loss import SimCSELoss
from use_st5.training.arguments import make_arguments
from use_st5.training.dataset_stats import dataset_stats
from use_st5.training.sources import Source


@pytest.mark.parametrize(
    ("columns", "settings", "kind", "temperature"),
    [
        # Ours for pairs; Ni et al. 2021, section 4.1 (τ = 0.01); Gao et al. 2021, section 3.
        ("anchor positive", {}, ContrastiveLoss, 0.05),
        ("anchor positive", {"loss": {"temperature": 0.02}}, ContrastiveLoss, 0.02),
        ("anchor positive", {"name": "sentence_t5"}, ContrastiveLoss, 0.01),
        ("text", {}, SimCSELoss, 0.05),
        ("text", {"name": "simcse"}, SimCSELoss, 0.05),
    ],
)
def test_the_temperature(
    columns: str,
    settings: dict[str, Any],
    kind: type,
    temperature: float,
    table: Callable[..., Source],
) -> None:
    width = len(columns.split())
    rows = [tuple(f"word {n} {column}" for column in range(width)) for n in range(4)]
    found = dataset_stats(table("mine", columns, rows), Words())
    loss = found.source.kind.make_loss(found, None, make_arguments(**settings).loss)
    assert type(loss) is kind
    assert loss.temperature == temperature
