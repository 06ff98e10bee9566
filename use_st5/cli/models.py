"""The model that a command names: found, loaded, and heard about the texts that it cuts."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

import use_st5
from use_st5.cli.output import say, waiting

if TYPE_CHECKING:
    import numpy as np

    from use_st5.cross_encoder import CrossEncoder
    from use_st5.encoder import SentenceEncoder

DEFAULT_MODEL = "use_dan_en"

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="The name of a bundled model, or a folder.")
]


def start_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, without what it logs.

    Raises:
        ImportError: it is missing or does not load.
    """
    if "tensorflow" in sys.modules:
        return
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    silent = _native_errors_dropped() if level == "3" else contextlib.nullcontext()
    try:
        with silent, waiting("starting TensorFlow"):
            tensorflow = importlib.import_module("tensorflow")
    except Exception as error:
        raise ImportError(
            f"TensorFlow could not be imported ({type(error).__name__}: {error}); "
            "`use-st5 doctor` says what to do"
        ) from error
    tensorflow.get_logger().setLevel("ERROR")  # What its Python code logs is not for the user.


@contextlib.contextmanager
def _native_errors_dropped() -> Iterator[None]:
    """Drops what native code writes to standard error; Python's own lines are written.

    For the import of TensorFlow, which logs before it reads its settings.
    """
    with os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace") as heard:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
        try:
            with contextlib.redirect_stderr(heard):
                yield
        finally:
            os.dup2(heard.fileno(), 2)


def check_keras(command: str) -> None:
    """Refuses, before anything is imported, a command that needs Keras on TensorFlow.

    Raises:
        ValueError: the environment asks for another backend of Keras.
    """
    if (os.environ.get("KERAS_BACKEND") or "tensorflow") != "tensorflow":
        raise ValueError(f"`use-st5 {command}` needs TensorFlow: unset KERAS_BACKEND.")


def start_keras(command: str) -> None:
    """Imports TensorFlow for a command that makes or changes a Keras model.

    Raises:
        ValueError: the environment asks for another backend of Keras.
        ImportError: what `start_tensorflow` raises.
    """
    check_keras(command)
    start_tensorflow()


def load_encoder(model: str) -> SentenceEncoder:
    """Loads a model by name or folder; says what it is waiting for.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: the folder holds something else.
    """
    start_tensorflow()
    with waiting(f"loading {model}"):
        return use_st5.load(model)


def encode_counting(
    encoder: SentenceEncoder, texts: list[str], **options: Any
) -> tuple[np.ndarray, int]:
    """The vectors of texts, and how many of the texts were cut."""
    vectors = encoder.encode(texts, on_truncation="ignore", **options)
    return vectors, len(encoder.truncated(texts))


def say_truncated(
    encoder: SentenceEncoder | CrossEncoder, count: int, total: int, *, what: str = "texts"
) -> None:
    """One line for all texts of a command, if there is anything to say."""
    if count and encoder.max_length is not None:
        from use_st5._token_limit import truncation_news  # With TensorFlow, which is there by now.

        news = truncation_news(count, total, encoder.max_length, what=what)
        say(f"{news}; the rest of them was not read")


class CountingEncoder:
    """Encodes as the model does, and counts the texts that it cuts instead of warning of each part.

    Args:
        encoder: The model.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self._total = self._truncated = 0

    @property
    def name(self) -> str:
        """The model's."""
        return self._encoder.name

    @property
    def identity(self) -> str:
        """The model's."""
        return self._encoder.identity

    @property
    def languages(self) -> list[str]:
        """Codes of the languages that the model says it knows; none where it does not say."""
        manifest = getattr(self._encoder, "manifest", None)
        found = manifest.metadata.get("languages", []) if manifest else []
        return [str(each) for each in found] if isinstance(found, list) else [str(found)]

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        """Vectors of texts `[texts, dimension]`; `options` are those of the model's `encode`."""
        vectors, truncated = encode_counting(self._encoder, texts, **options)
        self._total += len(texts)
        self._truncated += truncated
        return vectors

    def say_truncated(self) -> None:
        """One line for all texts so far, if there is anything to say."""
        say_truncated(self._encoder, self._truncated, self._total)
