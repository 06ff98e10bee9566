"""One hash for texts of the same words."""

from __future__ import annotations

import hashlib

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from use_st5.data.text_hashes import normalized, text_hashes


def test_two_copies_of_a_sentence_are_one() -> None:
    assert normalized(" THE cat, eats!") == normalized("The cat eats") == "the cat eats"


def test_case_blanks_and_punctuation_do_not_count() -> None:
    assert normalized("It's  a DOG.") == normalized("it s a dog") != normalized("its a dog")
    assert normalized("# It + (you)") == normalized("it you")


@pytest.mark.parametrize(
    "texts",
    [
        *(("C", "C++", "C#"), ("I am fine 😀", "I am fine 😢", "I am fine")),
        *(("की", "का", "क"), ("क़", "क"), ("!", "?", "…"), ("😀", "😢")),
    ],
)
def test_marks_and_symbols_that_tell_texts_apart_count(texts: tuple[str, ...]) -> None:
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    assert len({*text_hashes(column)}) == len(texts)


@hypothesis.settings(derandomize=True, max_examples=200, deadline=None)
@hypothesis.given(
    st.lists(st.text(st.sampled_from(" aB_.1-+#\tÉß\u0130\u3000日\u0301\u00b2"), max_size=6))
)
def test_a_column_has_the_hashes_of_its_texts(texts: list[str]) -> None:
    """Their order decides which rows are held out."""
    column = pa.chunked_array([pa.array(["x", *texts], pa.large_string())]).slice(1)
    digests = [hashlib.blake2b(normalized(t).encode(), digest_size=8).digest() for t in texts]
    expected = [int.from_bytes(digest, "big") for digest in digests]
    assert text_hashes(column).tolist() == expected
    assert text_hashes(column).dtype == np.uint64
