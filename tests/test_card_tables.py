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
