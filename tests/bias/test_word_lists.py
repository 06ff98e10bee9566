from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

import pytest

from use_st5.bias.weat_reader import read_weat
from use_st5.bias.word_lists import weat_tests

# Texts in x (as many as in y), a and b: Caliskan et al. 2017, Table 1; for the variants with terms
# of May et al. 2019 the sizes of their files.
SIZES = {
    "weat1": (25, 25, 25),
    "weat2": (25, 25, 25),
    "weat3": (32, 25, 25),
    "weat3b": (15, 25, 25),
    "weat4": (16, 25, 25),
    "weat5": (16, 8, 8),
    "weat5b": (15, 8, 8),
    "weat6": (8, 8, 8),
    "weat6b": (8, 8, 8),
    "weat7": (8, 8, 8),
    "weat7b": (8, 8, 8),
    "weat8": (8, 8, 8),
    "weat8b": (8, 8, 8),
    "weat9": (6, 7, 7),
    "weat10": (8, 8, 8),
}


def test_sizes_as_published() -> None:
    tests = weat_tests()
    assert list(tests) == list(SIZES)
    for name, (targets, a, b) in SIZES.items():
        test = tests[name]
        assert test.name == name
        groups = (test.x, test.y, test.a, test.b)
        assert tuple(len(set(group)) for group in groups) == (targets, targets, a, b)
        assert sum(map(len, groups)) == 2 * targets + a + b  # no word twice


def test_groups_oppose_each_other() -> None:
    for test in weat_tests().values():
        assert not {*test.x} & {*test.y}
        assert not {*test.a} & {*test.b}
        assert len({*test.categories}) == 4


def test_every_group_is_used_and_has_its_origin(repository: Path) -> None:
    path = repository / "use_st5" / "bias" / "word_lists.json"
    lists = json.loads(path.read_text(encoding="utf-8"))
    used = {group for test in lists["tests"].values() for group in test.values()}
    assert used == {*lists["groups"]}
    assert {group["origin"] for group in lists["groups"].values()} <= {*lists["origins"]}
    words = [frozenset(group["words"]) for group in lists["groups"].values()]
    assert len(set(words)) == len(words), "a list stands there twice"


@pytest.mark.parametrize("name", SIZES)
def test_words_are_those_of_the_sent_bias_toolkit(name: str, data_dir: Path) -> None:
    published = read_weat(data_dir / "weat_seat" / "tests" / f"{name}.jsonl")
    ours, theirs = (
        [sorted(group) for group in astuple(test)[1:5]] for test in (weat_tests()[name], published)
    )
    assert ours == theirs
