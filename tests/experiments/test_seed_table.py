"""Tables over seeds."""

from __future__ import annotations

import pytest

from experiments.seed_table import seed_means, seed_table


def test_a_table_has_mean_and_spread_and_of_one_seed_no_spread() -> None:
    rows = {
        "SBERT": [{"a": 0.50, "b": 0.70}, {"a": 0.52, "b": 0.74}],
        "untuned": [{"a": 0.40, "b": float("nan")}],
    }
    assert seed_table("Title", rows, averaged=True).splitlines() == [
        "## Title",
        "",
        "| | seeds | a | b | mean |",
        "|---|---|---|---|---|",
        "| SBERT | 2 | 51.00 ± 1.41 | 72.00 ± 2.83 | 61.50 ± 2.12 |",
        "| untuned | 1 | 40.00 | nan | nan |",
    ]
    assert seed_table("Title", {"one": [{"a": 0.5}]}).splitlines()[-1] == "| one | 1 | 50.00 |"


def test_what_not_all_seeds_have_is_left_empty() -> None:
    rows = {"one": [{"a": 0.5, "b": 0.7}, {"a": 0.6}], "two": [{"a": 0.7}, {"a": 0.7}]}
    assert [line.split("|")[4].strip() for line in seed_table("Title", rows).splitlines()[4:]] == [
        "",
        "",
    ]
    assert seed_means(rows) == pytest.approx({"one/a": 0.55, "two/a": 0.7})
