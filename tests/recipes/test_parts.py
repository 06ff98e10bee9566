"""Which part runs under which backend."""

from __future__ import annotations

import keras
import pytest
from use_st5.recipes._parts import parts_to_run

PARTS = ("prepare", "train", "export")


@pytest.mark.parametrize(
    ("backend", "part", "expected"),
    [
        ("tensorflow", None, PARTS),
        ("tensorflow", "prepare", ("prepare",)),
        ("tensorflow", "train", ("train",)),
        ("jax", "train", ("train",)),
    ],
)
def test_parts_that_run(
    backend: str, part: str | None, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    assert parts_to_run(part, PARTS) == expected


@pytest.mark.parametrize(
    ("backend", "part", "message"),
    [
        ("tensorflow", "publish", "Unknown part: 'publish'"),
        ("jax", "export", "part='export' with KERAS_BACKEND=jax"),
        ("jax", None, "part=None with KERAS_BACKEND=jax"),
        ("torch", "train", "tensorflow or jax, .* set KERAS_BACKEND. Received: torch"),
        ("torch", "export", "Received: torch"),
    ],
)
def test_parts_that_do_not(
    backend: str, part: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    with pytest.raises(ValueError, match=message):
        parts_to_run(part, PARTS)
