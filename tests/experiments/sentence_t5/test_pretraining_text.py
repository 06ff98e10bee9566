"""The text of the pre-training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from experiments.corpora import NOVELS  # noqa: E402
from experiments.sentence_t5.pretraining_text import pretraining_tokens  # noqa: E402
from use_st5.data.text_hashes import normalized  # noqa: E402
from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer  # noqa: E402


def test_the_text_is_running_and_cut_into_one_length(corpora: Path, tmp_path: Path) -> None:
    tokenizer = SentencePieceTokenizer()
    path = tmp_path / "tokens.npy"
    sentences = [example["sentence"] for example in NOVELS.examples(corpora)]
    left_out = sentences[1]
    pieces = pretraining_tokens(
        corpora, tokenizer, 20, path, held_out=lambda: {normalized(left_out)}
    )
    # The novel comes first, without the sentences that begin and end it.
    novel = [s for s in sentences if s != left_out]
    ids = tokenizer.padded(novel).numpy()
    np.testing.assert_array_equal(pieces[0], ids[ids > tokenizer.eos_id][:20])
    with pytest.raises(ValueError, match="pieces of 21 ids, found 20"):
        pretraining_tokens(corpora, tokenizer, 21, path, held_out=set)
