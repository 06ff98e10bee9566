from __future__ import annotations

import re

from use_st5.evaluation.retrieval.tatoeba_languages import GROUPS, LANGUAGES


def test_groups_have_their_sizes_and_lie_in_each_other() -> None:
    assert all(len(group) == len(set(group)) == size for size, group in GROUPS.items())
    assert set(GROUPS[14]) < set(GROUPS[36]) < set(GROUPS[112]) == set(LANGUAGES)


def test_names_are_unique_and_codes_have_three_letters() -> None:
    assert len(set(LANGUAGES.values())) == 112
    assert all(re.fullmatch("[a-z]{3}", code) for code in LANGUAGES)
    assert list(LANGUAGES) == sorted(LANGUAGES)


def test_xtreme_has_no_malay_and_not_the_five_languages_of_xtreme_r() -> None:
    assert not {"zsm", "aze", "lit", "pol", "ukr", "ron"} & set(GROUPS[36])
