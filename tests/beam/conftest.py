"""A fake model in place of the one that a pipeline loads."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import numpy as np
import pytest

import use_st5
from use_st5.hub.model_manifest import ModelManifest
from use_st5.hub.model_names import bundled_folder


class FakeModel:
    """Makes vectors from a hash of the text; calls can fail."""

    def __init__(self) -> None:
        manifest = ModelManifest.read(bundled_folder("use_dan_en"))
        assert manifest is not None
        self.identity = manifest.model_hash
        self.calls: list[list[str]] = []
        self.failing_calls: set[int] = set()
        self.too_long = 10**9
        self._guard = threading.Lock()

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        assert options.pop("on_truncation") == "ignore"
        with self._guard:
            self.calls.append(texts)
            if len(self.calls) in self.failing_calls:
                raise RuntimeError("the worker's machine went away")
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> np.ndarray:
        digest = hashlib.sha256(text.encode()).digest()
        return np.frombuffer(digest[:4], np.uint8).astype(np.float32)

    def truncated(self, texts: list[str]) -> np.ndarray:
        return np.flatnonzero([len(text) > self.too_long for text in texts])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    """The model that `use_st5.load` returns in this process."""
    model = FakeModel()
    monkeypatch.setattr(use_st5, "load", lambda _: model, raising=False)
    return model
