from __future__ import annotations

from dataclasses import replace

import pytest

from use_st5.bias.weat_test import WEATTest

TEST = WEATTest("toy", ("rose", "iris"), ("flea", "wasp"), ("love",), ("filth", "grief", "war"))


def test_attributes_may_differ_in_number() -> None:
    assert replace(TEST, a=("love", "joy")).a == ("love", "joy")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"x": ("rose",)}, "toy: expected as many texts in x as in y, received 1 and 2"),
        ({"a": ()}, r"received none in \['a'\]"),
        ({"x": (), "y": ()}, r"received none in \['x', 'y'\]"),
    ],
)
def test_groups_that_cannot_be_tested_are_refused(groups: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TEST, **groups)
