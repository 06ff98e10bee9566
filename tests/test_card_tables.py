"""The tables of the model cards, written from a record."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def card_tables(repository: Path) -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location(
        "card_tables", repository / "tools" / "card_tables.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_correlations_and_their_mean(card_tables: ModuleType) -> None:
    names = (*card_tables.AVERAGED, "stsb_dev")
    tasks = {
        name: {
            "title": name.upper(),
            "counts": {"pairs": 10 + number},
            "scores": {
                "spearman_all": number / 10,
                "pearson_all": 0.12345,
                "pearson_angular_all": -0.5,
            },
        }
        for number, name in enumerate(names)
    }
    lines = list(card_tables.sts_table(tasks))
    assert "| SICKR | 14 | 40.00 | 12.35 | -50.00 |" in lines
    # 0, 10, 20, 30 and 40; the 50 of the development split is left out.
    assert lines[-1] == "| mean of all but STS-B dev | | 20.00 | | |"


def test_association_tests(card_tables: ModuleType) -> None:
    scores = {"effect_size": -0.456, "effect_size_low": -1, "effect_size_high": 0.2}
    task = {
        "group": "seat",
        "details": {
            "categories": ["EuropeanAmericanNames", "old people's names", "Pleasant", "Family"]
        },
        "counts": {"targets": 8},
        "scores": {**scores, "p_value": 0.0004},
    }
    *_, line = card_tables.bias_table({"seat3": task, "mr": {"group": "senteval"}})
    assert line == (
        "| seat3 | European American names / old people's names | pleasant / family | 8 "
        "| −0.46 (−1.00 to 0.20) | <0.001 |"
    )


def test_the_shipped_records_fill_the_shipped_cards(
    card_tables: ModuleType, repository: Path
) -> None:
    """Checks that a card has every number of the tables that its record gives."""
    for card in sorted(repository.glob("saved_models/*/README.md")):
        record = repository / "results" / f"{card.parent.name}.json"
        tasks = json.loads(record.read_text(encoding="utf-8"))["tasks"]
        text = card.read_text(encoding="utf-8")
        for table in (card_tables.sts_table, card_tables.transfer_table):
            for line in list(table(tasks))[2:]:
                assert line in text, f"{card}: {line}"


def test_the_page_of_further_scores_is_that_of_the_shipped_records(
    card_tables: ModuleType, repository: Path
) -> None:
    results = repository / "results"
    names = ["use_dan_en", "use_transformer_en", "st5_mini_en"]
    page = "\n".join(card_tables.page(results / f"{name}.json" for name in names)).rstrip()
    assert (results / "bundled_models.md").read_text(encoding="utf-8") == f"{page}\n"
