"""The options of `encode`: those of sentence-transformers, for programs that use them.

Some have the same effect as there; the others are accepted if they ask for what happens anyway, and
refused otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypedDict, get_args

import numpy as np

from use_st5.encode.sentences import check_choice, one_or_many
from use_st5.encode.similarity import Precision, TextSimilarity, unit_rows


class SentenceTransformersKeywords(TypedDict, total=False):
    """The keywords of `SentenceTransformer.encode` that `SentenceEncoder.encode` knows.

    Attributes:
        prompt: The text that is put before each text; None: the prompt that `prompt_name` names.
        prompt_name: The name of one of the model's prompts; None: its default prompt, if any.
        normalize_embeddings: Whether each vector is scaled to length 1; zeros stay zeros.
        show_progress_bar: The same as `show_progress`.
        convert_to_numpy: Only True is accepted.
        convert_to_tensor: Only False is accepted.
        device: None or "cpu"; TensorFlow places the model.
        output_value: Only "sentence_embedding" is accepted.
        truncate_dim: How many numbers of each vector are returned; None: all of them.
            `normalize_embeddings` scales the shortened vectors.
        precision: "float32", "int8", "uint8", "binary" or "ubinary". The integers cover the range
            that each number has in the texts of this call; the bits say which are above zero, eight
            in a byte.
        pool: Only None is accepted.
        chunk_size: Only None is accepted.
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


# Names of the prompts for queries and for documents; the first that a model has is used.
QUERY, DOCUMENT = ("query",), ("document", "passage", "corpus")

# For each keyword that changes nothing: the values accepted, and what to write for others.
_TENSORS = "Write torch.from_numpy(encoder.encode(texts)), or tf.constant(encoder.encode(texts))."
_WITHOUT_EFFECT: dict[str, tuple[tuple[Any, ...], str]] = {
    "convert_to_numpy": ((True,), _TENSORS),
    "convert_to_tensor": ((False, None), _TENSORS),
    "device": ((None, "cpu"), "Choose the GPU with the environment variable CUDA_VISIBLE_DEVICES."),
    "output_value": (("sentence_embedding",), "A SavedModel returns only sentence vectors."),
    "pool": ((None,), "Use workers, the number of processes."),
    "chunk_size": ((None,), "Leave it out; batch_size is the number of texts encoded at once."),
}


@dataclass(frozen=True)
class EncodeOptions:
    """What `encode` does beside encoding.

    Attributes:
        prompt: The text that is put before each text.
        normalize: Whether each vector is scaled to length 1.
        show_progress: Whether a progress bar is drawn; None if the keywords do not say it.
        truncate_dim: How many numbers of each vector are returned; None: all.
        precision: The type in which the numbers are returned.
    """

    prompt: str = ""
    normalize: bool = False
    show_progress: bool | None = None
    truncate_dim: int | None = None
    precision: Precision = "float32"

    @classmethod
    def from_keywords(
        cls,
        keywords: SentenceTransformersKeywords,
        prompts: Mapping[str, str] = MappingProxyType({}),
        default: str | None = None,
    ) -> EncodeOptions:
        """Translates the keywords of sentence-transformers; refuses what the encoder does not do.

        `prompts` are the model's prompts by name, `default` is the name of its default prompt.
        """
        if not keywords and default is None:  # The usual call, which may take 0.1 ms in all.
            return cls()
        for keyword, value in keywords.items():
            if keyword not in SentenceTransformersKeywords.__annotations__:
                raise TypeError(f"encode() got an unexpected keyword argument {keyword!r}")
            accepted, remedy = _WITHOUT_EFFECT.get(keyword, ((value,), ""))
            if value not in accepted and not (keyword == "device" and str(value) == "cpu"):
                expected = " or ".join(map(repr, accepted))
                raise ValueError(f"Expected {keyword}={expected}, received {value!r}. {remedy}")
        truncate_dim = keywords.get("truncate_dim")
        if truncate_dim is not None and truncate_dim < 1:
            raise ValueError(f"Expected truncate_dim of at least 1, received {truncate_dim}.")
        precision: Any = keywords.get("precision") or "float32"
        check_choice("precision", precision, get_args(Precision))
        return cls(
            chosen_prompt(keywords.get("prompt"), keywords.get("prompt_name"), prompts, default),
            normalize=keywords.get("normalize_embeddings", False),
            show_progress=keywords.get("show_progress_bar"),
            truncate_dim=truncate_dim,
            precision=precision,
        )

    def add_prompt(self, texts: list[str]) -> list[str]:
        """The texts with the prompt before each."""
        return [self.prompt + text for text in texts] if self.prompt else texts

    def width(self, dimension: int) -> int:
        """How many numbers of a vector are returned."""
        return dimension if self.truncate_dim is None else min(self.truncate_dim, dimension)

    def finish(self, vectors: np.ndarray) -> np.ndarray:
        """Cuts vectors to `[n, width]`, and scales them to length 1 if `normalize` is set."""
        if self.truncate_dim is not None:
            vectors = vectors[:, : self.truncate_dim]
        return unit_rows(vectors) if self.normalize else vectors


class SentenceTransformersNames(TextSimilarity):
    """Methods and properties of `SentenceTransformer` for an encoder with other names for them.

    mteb's wrapper and similar programs use them.

    Attributes:
        name: The model's name.
        max_length: Tokens of a text beyond this number are not read; None: no limit, or none known.
    """

    name: Any
    max_length: Any

    # Name → the text that is put before a text; and the name of the default prompt.
    prompts: Mapping[str, str] = MappingProxyType({"query": "", "document": ""})
    default_prompt_name: str | None = None

    def __call__(self, sentences: Any, **options: Any) -> Any:
        """The same as `encode`."""
        return self.encode(sentences, **options)

    def encode_query(self, sentences: Any, **options: Any) -> Any:
        """`encode` with the model's prompt "query", which may be empty.

        `prompt` and `prompt_name` replace it.
        """
        return self.encode(sentences, **self._prompted(options, QUERY))

    def encode_document(self, sentences: Any, **options: Any) -> Any:
        """`encode` with the model's prompt "document", which may be empty.

        `prompt` and `prompt_name` replace it.
        """
        return self.encode(sentences, **self._prompted(options, DOCUMENT))

    def _prompted(self, options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        """Adds to the options the first of these prompts that the model has, if they name none."""
        has_prompt = options.get("prompt") is not None or options.get("prompt_name") is not None
        name = first_prompt_name(names, self.prompts)
        return options if has_prompt or name is None else {**options, "prompt_name": name}

    def get_embedding_dimension(self) -> int:
        """The same as `dimension`."""
        return self.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """The same as `dimension`, under its name before sentence-transformers 6."""
        return self.dimension

    @property
    def max_seq_length(self) -> int | None:
        """The same as `max_length`; it can be set."""
        return self.max_length

    @max_seq_length.setter
    def max_seq_length(self, max_length: int) -> None:
        self.max_length = max_length

    @property
    def model_card_data(self) -> SimpleNamespace:
        """The model's name and version, under which mteb files its scores."""
        version = getattr(self, "identity", None)
        return SimpleNamespace(
            model_name=f"use_st5/{self.name}", base_model=None, base_model_revision=version
        )


def first_prompt_name(names: Sequence[str], prompts: Mapping[str, str]) -> str | None:
    """Returns the first of these names for which the model has a prompt; None if it has none."""
    return next((name for name in names if name in prompts), None)


def default_prompt(encoder: Any) -> str:
    """Returns what `encode` of any encoder puts before each text if the caller names no prompt."""
    prompts = getattr(encoder, "prompts", None) or {}
    return prompts.get(getattr(encoder, "default_prompt_name", None) or "") or ""


def usual_prompts(encoder: Any) -> dict[str, str]:
    """Returns what a model puts before a "query" and a "document", beyond its default prompt."""
    prompts = getattr(encoder, "prompts", None) or {}
    if default_prompt(encoder):
        return {}
    sides = {"query": QUERY, "document": DOCUMENT}
    names = {side: first_prompt_name(usual, prompts) for side, usual in sides.items()}
    return {side: prompts[name] for side, name in names.items() if name is not None}


def chosen_prompt(
    prompt: str | None, name: str | None, prompts: Mapping[str, str], default: str | None = None
) -> str:
    """Returns the text to put before each text: the prompt, the named one, or the default."""
    if prompt is None and name is not None and name not in prompts:
        raise ValueError(f"Expected one of the model's prompts, {[*prompts]}, received {name!r}.")
    text = prompts.get(name or default or "", "") if prompt is None else prompt
    return one_or_many(text)[0][0]
