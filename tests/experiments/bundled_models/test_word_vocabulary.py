"""Vocabularies in BERT's format."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.bundled_models.word_vocabulary import read_wordpieces


def test_words_and_pieces(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[unused1]\n!\n##\nthe\n##s\né\n##é\n[\n", encoding="utf-8")
    assert read_wordpieces(path) == (["!", "the", "["], ["##s"])


def test_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="bert-base-uncased"):
        read_wordpieces(tmp_path / "vocab.txt")
