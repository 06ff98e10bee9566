"""The keywords and names of sentence-transformers on `SentenceEncoder`."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from use_st5._sentence_transformers import SentenceTransformersNames, Wishes
from use_st5._vectors import cosine, unit_rows


class Lengths(SentenceTransformersNames):
    """A text's vector is its length, twice."""

    name, identity, dimension, max_length = "lengths", "0123", 2, 7

    def encode(self, sentences: list[str], **_options: Any) -> np.ndarray:
        return np.array([[len(text)] * 2 for text in sentences], np.float32)


def test_nothing_is_asked_for() -> None:
    assert Wishes.of({}) == Wishes(prompt="", normalize=False, show_progress=None)
    vectors = np.array([[3.0, 4.0]], np.float32)
    assert Wishes.of({}).scaled(vectors) is vectors


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("show_progress_bar", None),
        ("convert_to_numpy", True),
        ("convert_to_tensor", False),
        ("normalize_embeddings", False),
        ("device", None),
        ("device", "cpu"),
        ("prompt", None),
        ("prompt", ""),
        ("prompt_name", None),
        ("output_value", "sentence_embedding"),
        ("precision", "float32"),
        ("truncate_dim", None),
        ("pool", None),
        ("chunk_size", None),
    ],
)
def test_what_changes_nothing_is_accepted(keyword: str, value: Any) -> None:
    assert Wishes.of({keyword: value}) == Wishes.of({})


@pytest.mark.parametrize(
    ("keyword", "value", "remedy"),
    [
        ("convert_to_numpy", False, "torch.from_numpy"),
        ("convert_to_tensor", True, "torch.from_numpy"),
        ("device", "cuda", "CUDA_VISIBLE_DEVICES"),
        ("device", ["cpu", "cpu"], "CUDA_VISIBLE_DEVICES"),
        ("output_value", "token_embeddings", "returns only sentence vectors"),
        ("output_value", None, "returns only sentence vectors"),
        ("precision", "int8", "astype"),
        ("prompt_name", "query", 'prompt="query: "'),
        ("truncate_dim", 64, r"\[:, :dimensions\]"),
        ("pool", {}, "spawn"),
        ("chunk_size", 10, "batch_size"),
    ],
)
def test_what_is_not_done_is_refused_with_what_to_write(
    keyword: str, value: Any, remedy: str
) -> None:
    with pytest.raises(ValueError, match=f"Expected {keyword}=.*{remedy}"):
        Wishes.of({keyword: value})


@pytest.mark.parametrize(
    ("keyword", "value", "message"),
    [
        ("prompt", 3, "Expected prompt as a string, received int"),
        ("normalize_embeddings", "yes", "Expected normalize_embeddings=True or False"),
        ("show_progress_bar", 1, "Expected show_progress_bar=True or False"),
        ("batchsize", 3, "unexpected keyword argument 'batchsize'"),
    ],
)
def test_wrong_types_and_unknown_keywords(keyword: str, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Wishes.of({keyword: value})


def test_the_codes_that_are_advised_keep_the_cosines() -> None:
    """`astype` alone made zeros of unit vectors."""
    with pytest.raises(ValueError, match="precision") as error:
        Wishes.of({"precision": "int8"})
    code = re.search(r"(vectors = .*int8\))\.", str(error.value))[1]
    vectors = unit_rows(np.random.default_rng(0).standard_normal((50, 512))).astype(np.float32)
    names = {"numpy": np, "texts": [], "encoder": SimpleNamespace(encode=lambda texts: vectors)}
    exec(code, names)
    assert names["codes"].dtype == np.int8
    assert cosine(names["codes"], vectors).min() > 0.99


def test_what_has_an_effect() -> None:
    wishes = Wishes.of({"prompt": "q: ", "normalize_embeddings": True, "show_progress_bar": False})
    assert wishes.before(["a", ""]) == ["q: a", "q: "]
    scaled = wishes.scaled(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    np.testing.assert_allclose(scaled, [[0.6, 0.8], [0.0, 0.0]], atol=1e-7)
    assert wishes.show_progress is False


def test_names() -> None:
    encoder = Lengths()
    for ask in (encoder, encoder.encode_query, encoder.encode_document):
        assert ask(["abc"], batch_size=2).tolist() == [[3.0, 3.0]]
    assert encoder.get_embedding_dimension() == encoder.get_sentence_embedding_dimension() == 2
    assert (encoder.max_seq_length, encoder.similarity_fn_name) == (7, "cosine")
    assert encoder.model_card_data.model_name == "use_st5/lengths"
