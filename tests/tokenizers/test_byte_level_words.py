"""GPT-2's words, by hand and compared with the package tokenizers."""

from __future__ import annotations

import pytest
import tensorflow as tf

from use_st5.tokenizers.byte_level_words import ByteLevelWords


def test_by_hand() -> None:
    texts = ["I've  two\n cats'll", "", "it's's 'tis", " \n", "a \n\nb", "¡'s 9'sx"]
    words, splits = ByteLevelWords()(tf.constant(texts))
    found = [word.decode() for word in words.numpy()]
    assert [found[a:b] for a, b in zip(splits[:-1].numpy(), splits[1:].numpy(), strict=True)] == [
        ["I", "'ve", " ", " two", "\n", " cats", "'ll"],
        [],
        ["it", "'s", "'s", " '", "tis"],
        [" \n"],
        ["a", " \n", "\n", "b"],
        ["¡'", "s", " 9", "'s", "x"],
    ]


def test_every_character_is_of_its_class() -> None:
    pre_tokenizers = pytest.importorskip(
        "tokenizers", reason="the extra `peers` is not installed"
    ).pre_tokenizers
    peer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    points = [each for each in range(1, 0x32500) if not 0xD800 <= each < 0xE000]
    texts = [f"a{chr(each)}1{chr(each)}!{chr(each)} {chr(each)}{chr(each)}a" for each in points]
    words, splits = ByteLevelWords()(tf.constant(texts))
    lengths = tf.strings.length(words).numpy().tolist()
    for text, start, end in zip(texts, splits[:-1].numpy(), splits[1:].numpy(), strict=True):
        expected = [len(word) for word, _ in peer.pre_tokenize_str(text)]
        assert lengths[start:end] == expected, ascii(text)
