"""The texts that the teachers read for search: passages, and queries with their passages."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from experiments.bundled_models.search_text import balanced, search_texts


def test_every_beginning_holds_the_square_root_of_each_group() -> None:
    groups = {"large": [f"l{n}" for n in range(10_000)], "small": [f"s{n}" for n in range(100)]}
    order = balanced(groups)
    assert sorted(order) == sorted(groups["large"] + groups["small"])
    # A tenth of each group: √10,000 : √100 = 10 : 1 until the small one ends after 1,100 texts.
    assert sum(text.startswith("s") for text in order[:110]) == pytest.approx(10, abs=1)
    assert sum(text.startswith("s") for text in order[:1_100]) == pytest.approx(100, abs=1)


def test_texts_of_a_pair_follow_each_other_and_each_text_comes_once(tmp_path: Path) -> None:
    passages, pairs = (tmp_path / "english_search" / name for name in ("passages", "pairs"))
    passages.mkdir(parents=True)
    pairs.mkdir()
    rows = [{"text": "One  passage.", "domain": "law"}, {"text": "Another.", "domain": "arts"}]
    with lzma.open(passages / "a.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    with lzma.open(pairs / "b.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("What is it?\tA third.\nWhat else?\tAnother.\n")
    texts = search_texts(tmp_path)
    assert sorted(texts) == ["A third.", "Another.", "One passage.", "What else?", "What is it?"]
    assert texts.index("A third.") == texts.index("What is it?") + 1


def test_a_folder_without_passages_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="english_search"):
        search_texts(tmp_path)
