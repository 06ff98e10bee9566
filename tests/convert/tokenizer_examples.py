"""Small tokenizers of Hugging Face, as their files hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from use_st5.tokenizers.byte_pair_tokenizer import byte_letters

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "é", "Ca", "今", "##日", "##é"]
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "c"), ("a", "t")]
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *byte_letters(), *map("".join, MERGES)]


def ids_of(words: Sequence[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(words)}


def wordpiece(**normalizer: Any) -> dict[str, Any]:
    """A `tokenizer.json` of a BERT."""
    return {
        "added_tokens": [{"id": 2, "content": "[CLS]", "special": True}],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
            "strip_accents": None, "lowercase": True, **normalizer,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": ids_of(WORDS),
        },
    }  # fmt: skip


def byte_pair(merges: Sequence[Any]) -> dict[str, Any]:
    """A `tokenizer.json` of a RoBERTa."""
    return {
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]},
        "model": {"type": "BPE", "dropout": None, "vocab": ids_of(PIECES), "merges": merges},
    }
