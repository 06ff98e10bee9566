"""A fake model, and the command line in this process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import use_st5
from use_st5.cli import models
from use_st5.cli.main import app


class FakeEncoder:
    """Makes vectors from a hash of the text: a text has the same vector each time."""

    name = "fake"
    dimension = 8
    default_prompt_name: str | None = None
    similarity_fn_name = "cosine"

    def __init__(self, identity: str = "0") -> None:
        self.identity = identity
        self.batch_sizes: list[int] = []
        self.encoded: list[str] = []
        self.fails_after: int | None = None
        self.max_length: int | None = None
        self.prompts = {"query": "", "document": ""}

    def truncated(self, sentences: list[str]) -> np.ndarray:
        """The indices of the texts that are too long; a token is a character."""
        longest = self.max_length or np.inf
        return np.array([i for i, text in enumerate(sentences) if len(text) > longest], np.int64)

    def encode(
        self,
        sentences: Iterable[str],
        *,
        prompt: str = "",
        batch_size: int = 512,
        show_progress: bool | None = None,
        on_truncation: str = "warn",
    ) -> np.ndarray:
        sentences = [prompt + sentence for sentence in sentences]
        assert on_truncation == "ignore" or not len(self.truncated(sentences))
        self.batch_sizes.append(batch_size)
        if self.fails_after is not None and len(self.encoded) >= self.fails_after:
            raise KeyboardInterrupt
        self.encoded += sentences
        vectors = np.zeros((len(sentences), self.dimension), np.float32)
        for row, sentence in enumerate(sentences):
            digest = hashlib.sha256(sentence.encode()).digest()[: self.dimension]
            vectors[row] = np.frombuffer(digest, np.uint8) - 127.5
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def document_windows(
        self, texts: list[str], *, prompt: str = ""
    ) -> tuple[list[str], np.ndarray]:
        """Parts of `max_length` characters."""
        room = (self.max_length or 1000) - len(prompt)
        parts = [[t[n : n + room] for n in range(0, max(1, len(t)), room)] for t in texts]
        windows = [prompt + part for some in parts for part in some]
        return windows, np.repeat(np.arange(len(texts)), [*map(len, parts)])

    def similarity(self, given: list[str] | np.ndarray, *, metric: str) -> np.ndarray:
        vectors = given if isinstance(given, np.ndarray) else self.encode(given)
        assert metric in ("cosine", "dot")
        return vectors @ vectors.T


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    """The encoder that `use_st5.load` returns for every name but "absent"."""
    encoder = FakeEncoder()

    def load(name: str, *, backend: str = "tensorflow") -> FakeEncoder:
        if name == "absent":
            raise FileNotFoundError("Expected a model,\nfound none.")
        return encoder

    monkeypatch.setattr(use_st5, "load", load, raising=False)
    monkeypatch.setattr(models, "start_tensorflow", lambda: None)
    return encoder


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs `use-st5` in an empty folder: `use("embed", "texts.txt", input=…) -> Result`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(app, list(arguments), **options)

    return run
