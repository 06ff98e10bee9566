"""The published association tests on words, with their word lists.

`word_lists.json` beside this file holds every group of words once, with the study it comes from,
and the tests that refer to the groups: those of Caliskan, Bryson and Narayanan (Science 356, 2017,
supplement), `weat1` to `weat10`, and the variants of May et al. (NAACL 2019), `weat3b` to `weat8b`,
which put terms in the place of names or names in the place of terms.
"""

from __future__ import annotations

import json
from pathlib import Path

from use_st5.bias.weat_test import WEATTest

_WORD_LISTS = Path(__file__).with_name("word_lists.json")


def weat_tests() -> dict[str, WEATTest]:
    """Name → test, in the order of the papers' tables: "weat1" … "weat3", "weat3b" … "weat10"."""
    lists = json.loads(_WORD_LISTS.read_text(encoding="utf-8"))
    tests = {}
    for name, letters in lists["tests"].items():
        groups = [lists["groups"][letters[letter]] for letter in "xyab"]
        words = [tuple(group["words"]) for group in groups]
        tests[name] = WEATTest(name, *words, categories=tuple(g["category"] for g in groups))
    return tests
