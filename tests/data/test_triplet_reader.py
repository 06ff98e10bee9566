from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.data.triplet_reader import TripletReader


def test_the_published_nli_triplets_format(tmp_path: Path) -> None:
    path = tmp_path / "nli_for_simcse.csv"
    path.write_text('sent0,sent1,hard_neg\n"A, b",c,d\ne,f,\n')
    reader = TripletReader(
        path, anchor="sent0", positive="sent1", negative="hard_neg", max_malformed=0.5
    )
    assert list(reader) == [{"anchor": "A, b", "positive": "c", "negative": "d"}]
    assert reader.report.offences == [f"{path}:3: no text in 'negative'"]


def test_positions_and_too_few_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\tc\na\tb\n")
    with pytest.raises(ValueError, match=r"a\.tsv:2: 2 fields, expected 3\. Expected rows of"):
        list(TripletReader(path, strict=True))
