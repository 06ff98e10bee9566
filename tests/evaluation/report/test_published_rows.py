from __future__ import annotations

from use_st5.evaluation.published.tables import published_tables
from use_st5.evaluation.report.published_rows import published_effects, published_rows


def test_every_row_with_a_number_is_shown_once() -> None:
    keys = ["sts12", "average"]
    found = published_rows(["sts"], keys, [("SBERT-NLI", "fine-tuned on SNLI and MNLI")])
    assert [row.label for row in found.rows] == ["SBERT-NLI"]
    expected = [
        row.model
        for table in published_tables("sts")
        for row in table.rows
        if set(keys) & set(row.scores)
    ]
    assert sorted(row.label for row in (*found.rows, *found.more)) == sorted(expected)
    assert all(row.published and row.model is None for row in (*found.rows, *found.more))


def test_numbers_are_as_the_paper_prints_them() -> None:
    found = published_rows(["sts"], ["sts12", "sts13", "mr"], [("BERT-base w/o FT", "")])
    # Table 3 prints 30.88 and 59.90.
    assert [cell.text for cell in found.rows[0].cells] == ["30.88", "59.90", "–"]


def test_a_row_of_just_these_settings_comes_before_one_that_says_more() -> None:
    model = "SimCSE-RoBERTa-base + TENC-mutual (bi)"
    found = published_rows(["pairs"], ["pairs_qqp"], [(model, "bi-encoder")])
    # Tables 3 and 12 have the same model, trained with the pairs of other tasks.
    assert [row.detail for row in found.rows] == ["Liu et al. (2022), Table 11; bi-encoder"]


def test_the_tables_are_cited() -> None:
    notes = dict(published_rows(["sentglue"], ["sentglue_cola"]).notes)
    assert "https://arxiv.org/" in notes["Ni et al. (2022), Table 6"]


def test_no_benchmark_no_rows() -> None:
    found = published_rows([], ["sts12"], [("SBERT-NLI", "")])
    assert (found.rows, found.more, found.notes) == ((), (), ())


def test_effects_stand_beside_the_tests_they_are_of() -> None:
    effects, notes = published_effects("weat", ["weat1", "weat6"])
    glove = next(one for one in effects if one.label == "GloVe")
    assert glove.effects["weat6"][0] == 1.81
    assert "GloVe (published)" in dict(notes)
    assert published_effects("weat", ["seat1"]) == ([], ())


def test_what_only_a_recollection_supports_is_not_shown() -> None:
    unconfirmed = {
        row.model
        for table in published_tables("weat", unconfirmed=True)
        for row in table.rows
        if not row.confirmed
    }
    assert not unconfirmed & {one.label for one in published_effects("weat", ["weat1"])[0]}
