from __future__ import annotations

from tests.resources.records import record
from use_st5.resources.resource_tables import COLUMNS, markdown, rows


def test_medians_quartiles_ratios_and_cuts() -> None:
    found = rows(record(), "cpu")
    assert [row[:2] for row in found[:3]] == [("10", "flat"), ("10", "steep"), ("100", "flat")]
    # Visits of 0.5, 1 and 2 ms.
    assert found[0][3] == "1.00 (0.75-1.50)"
    words, name, ids, text, text_ratio, by_ids, ids_ratio, working, memory, memory_ratio = found[-1]
    assert (words, name, ids) == ("200", "steep", "200")
    assert text == "4.00 (3.00-6.00) cut"
    assert by_ids == "4.00 (3.00-6.00)"
    assert (text_ratio, ids_ratio) == ("4.00", "4.00")
    assert (working, memory, memory_ratio) == ("40.0", "50.0", "2.38")


def test_unknown_memory_is_said() -> None:
    assert rows(record(working=None), "cpu")[0][-3:] == ("unknown",) * 3


def test_markdown_has_every_row_and_the_crossings() -> None:
    text = markdown(record())
    assert all(line.count("|") > 2 for line in text.splitlines() if line.startswith("|"))
    for row in rows(record(), "cpu"):
        assert len(row) == len(COLUMNS)
        assert f"| {' | '.join(row)} |" in text
    assert "| steep | 1,000 | 10.0 | 150 |" in text
    assert "## CPU: a processor" in text
    assert "faster up to 100 words, slower beyond |" in text
