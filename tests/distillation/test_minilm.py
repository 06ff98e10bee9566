"""Answering what a recipe asked elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.distillation import minilm
from use_st5.vector_store import VectorStore


def test_both_layers_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def teacher(*, layers: int | None) -> object:
        return lambda texts: np.full((len(texts), 2), layers or 6.0)

    monkeypatch.setattr(minilm, "minilm_teacher", teacher)
    minilm.write_questions(tmp_path, ["a", "b", "a"])
    minilm.answer(tmp_path)
    assert not minilm.hint_folder(tmp_path).exists()
    minilm.write_questions(minilm.hint_folder(tmp_path), ["b"])
    minilm.answer(tmp_path)
    assert len(VectorStore.of_teacher(tmp_path)) == 2
    assert VectorStore.of_teacher(minilm.hint_folder(tmp_path))["b"].tolist() == [4.0, 4.0]
