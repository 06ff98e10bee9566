from __future__ import annotations

from tests.evaluation.report.conftest import HOSTILE
from tests.evaluation.report.records import entry, record
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report import markdown_tables


def test_a_table_is_github_markdown() -> None:
    tasks = {
        "sts12": entry("sts", "STS12", {"spearman_all": 0.5}),
        "sts13": entry("sts", "STS13", {"spearman_all": None}),
    }
    other = {"sts12": entry("sts", "STS12", {"spearman_all": -0.25})}
    text = markdown_tables([record("a|b", tasks), record("c", other)], published=False)
    table = text[text.index("### Semantic") :]
    assert table.splitlines() == [
        "### Semantic textual similarity",
        "",
        "Spearman correlation × 100, aggregation “all” (the pairs of all subsets together).",
        "",
        "| Model | STS12 | STS13 |",
        "| :--- | ---: | ---: |",
        r"| a\|b | **50.00** | undefined |",
        "| c | −25.00 | – |",
    ]


def test_every_row_has_the_cells_of_its_head(full_records: list[EvaluationRecord]) -> None:
    text = markdown_tables(full_records)
    head = 0
    for line in text.splitlines():
        bars = line.replace(r"\|", "").count("|")
        if head:
            assert bars in (0, head)
        head = bars
    assert "<script" not in text.replace(r"\<", "")
    assert HOSTILE not in text
    assert "published: Ni et al. (2022), Table 3" in text


def test_long_tables_stay_out(full_records: list[EvaluationRecord]) -> None:
    text = markdown_tables(full_records)
    assert "Finding translations" in text
    assert "Swahili" not in text


def test_what_cannot_be_compared_is_said() -> None:
    one = record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.5})})
    two = record("b", {"mr": entry("senteval", "MR", {"accuracy": 0.6}, protocol="Another")})
    text = markdown_tables([one, two], published=False)
    assert "**Not comparable.** MR: the models were measured by different protocols." in text
    assert "**60.00**" not in text
