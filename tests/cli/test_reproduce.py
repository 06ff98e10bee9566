"""`use-st5 reproduce` says where the experiments are now."""

from __future__ import annotations

from collections.abc import Callable


def test_it_says_where_to_in_one_line(use: Callable) -> None:
    for words in ((), ("use_dan_en", "--data", ".", "--out", "run"), ("--list",)):
        result = use("reproduce", *words)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
        assert "experiments/README.md" in result.stderr
