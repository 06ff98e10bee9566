"""The names under which programs written for sentence-transformers ask an encoder.

`SentenceEncoder.encode` takes the keywords of `SentenceTransformer.encode`: three have an effect,
the others are accepted where they ask for what happens anyway, and refused otherwise.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypedDict

import numpy as np

from use_st5._sentences import check_sentences
from use_st5._vectors import unit_rows


class SentenceTransformersKeywords(TypedDict, total=False):
    """The keywords of `SentenceTransformer.encode` that `SentenceEncoder.encode` knows.

    Attributes:
        prompt: Is put before each text; None for nothing.
        normalize_embeddings: Whether each vector is scaled to length 1; zeros stay zeros.
        show_progress_bar: The same as `show_progress`.
        convert_to_numpy: True alone.
        convert_to_tensor: False alone.
        device: None or "cpu"; TensorFlow places the model.
        output_value: "sentence_embedding" alone.
        precision: "float32" alone.
        prompt_name: None alone, since a SavedModel carries no named prompts.
        truncate_dim: None alone.
        pool: None alone.
        chunk_size: None alone.
    """

    prompt: str | None
    normalize_embeddings: bool
    show_progress_bar: bool | None
    convert_to_numpy: bool
    convert_to_tensor: bool
    device: Any
    output_value: str | None
    precision: str
    prompt_name: str | None
    truncate_dim: int | None
    pool: Any
    chunk_size: int | None


# For each keyword that changes nothing: the values accepted, and what to write for others.
_WITHOUT_EFFECT: dict[str, tuple[tuple[Any, ...], str]] = {
    "convert_to_numpy": ((True,), "For PyTorch write torch.from_numpy(encoder.encode(texts))."),
    "convert_to_tensor": (
        (False, None),
        "Write torch.from_numpy(encoder.encode(texts)), or tf.constant(encoder.encode(texts)).",
    ),
    "device": (
        (None, "cpu"),
        "TensorFlow uses the first GPU that it sees: leave device out, and choose the GPU with the "
        "environment variable CUDA_VISIBLE_DEVICES.",
    ),
    "output_value": (("sentence_embedding",), "A SavedModel returns only sentence vectors."),
    # `astype` alone would turn the numbers of a vector of length 1 to 0.
    "precision": (
        ("float32",),
        "For int8 write vectors = encoder.encode(texts); "
        "codes = numpy.rint(vectors * (127 / abs(vectors).max())).astype(numpy.int8). One scale "
        "for all vectors does not change the cosines.",
    ),
    "prompt_name": ((None,), 'Write the prompt itself, such as prompt="query: ".'),
    "truncate_dim": ((None,), "Cut the vectors: encoder.encode(texts)[:, :dimensions]."),
    "pool": ((None,), 'Use multiprocessing.get_context("spawn"); encoders can be pickled.'),
    "chunk_size": ((None,), "Leave it out; batch_size is the number of texts encoded at once."),
}


@dataclass(frozen=True)
class Wishes:
    """What the keywords of sentence-transformers ask for.

    Attributes:
        prompt: Is put before each text.
        normalize: Whether each vector is scaled to length 1.
        show_progress: Whether a progress bar is drawn; None where that is not said.
    """

    prompt: str
    normalize: bool
    show_progress: bool | None

    @classmethod
    def of(cls, keywords: SentenceTransformersKeywords) -> Wishes:
        """Translates the keywords, and refuses what the encoder does not do.

        Raises:
            TypeError: A keyword is unknown, or its value is of a wrong type.
            ValueError: A value asks for what the encoder does not do; the message says what to
                write instead.
        """
        for keyword, value in keywords.items():
            if keyword not in SentenceTransformersKeywords.__annotations__:
                raise TypeError(f"encode() got an unexpected keyword argument {keyword!r}")
            if keyword in _WITHOUT_EFFECT:
                _check_without_effect(keyword, value)
        prompt = keywords.get("prompt")
        if not isinstance(prompt, str | None):
            raise TypeError(f"Expected prompt as a string, received {type(prompt).__name__}.")
        return cls(
            prompt=check_sentences([prompt or ""])[0],
            normalize=_checked_switch("normalize_embeddings", keywords) or False,
            show_progress=_checked_switch("show_progress_bar", keywords),
        )

    def before(self, texts: list[str]) -> list[str]:
        """The texts with the prompt before each."""
        return [self.prompt + text for text in texts] if self.prompt else texts

    def scaled(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors `[n, dimension]`, of length 1 where that is asked for; zeros stay zeros."""
        return unit_rows(vectors) if self.normalize else vectors


class SentenceTransformersNames(abc.ABC):
    """Methods and properties of `SentenceTransformer` for an encoder that has its own.

    They are what mteb's wrapper and the like ask for.
    """

    encode: Callable[..., Any]
    similarity_fn_name = "cosine"

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The model's name."""

    @property
    @abc.abstractmethod
    def identity(self) -> str:
        """A text that changes with the content of the model's files, and with nothing else."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Dimension of the sentence vectors."""

    @property
    @abc.abstractmethod
    def max_length(self) -> int | None:
        """Tokens of a text beyond this number are not read; None: no limit, or none known."""

    def __call__(self, sentences: Any, **options: Any) -> Any:
        """The same as `encode`."""
        return self.encode(sentences, **options)

    def encode_query(self, sentences: Any, **options: Any) -> Any:
        """The same as `encode`: queries and documents are read alike."""
        return self.encode(sentences, **options)

    def encode_document(self, sentences: Any, **options: Any) -> Any:
        """The same as `encode`: queries and documents are read alike."""
        return self.encode(sentences, **options)

    def get_embedding_dimension(self) -> int:
        """The same as `dimension`."""
        return self.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """The same as `dimension`, under its name before sentence-transformers 6."""
        return self.dimension

    @property
    def max_seq_length(self) -> int | None:
        """The same as `max_length`."""
        return self.max_length

    @property
    def model_card_data(self) -> SimpleNamespace:
        """The model's name and version, under which mteb files its scores."""
        return SimpleNamespace(
            model_name=f"use_st5/{self.name}", base_model=None, base_model_revision=self.identity
        )


def _check_without_effect(keyword: str, value: Any) -> None:
    accepted, remedy = _WITHOUT_EFFECT[keyword]
    device = str(value) if keyword == "device" and value is not None else value
    if not any(device is each or device == each for each in accepted):
        expected = " or ".join(map(repr, accepted))
        raise ValueError(f"Expected {keyword}={expected}, received {value!r}. {remedy}")


def _checked_switch(keyword: str, keywords: SentenceTransformersKeywords) -> bool | None:
    value = keywords.get(keyword)
    if not isinstance(value, bool | np.bool_ | None):
        raise TypeError(f"Expected {keyword}=True or False, received {value!r}.")
    return value if value is None else bool(value)
