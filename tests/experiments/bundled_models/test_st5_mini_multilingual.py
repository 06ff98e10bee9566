"""The parts of the training of `st5_mini_multilingual`."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest

from experiments.bundled_models.st5_mini_multilingual import fewer_pieces, start_table
from use_st5.tokenizers import SentencePieceTokenizer

sentencepiece = pytest.importorskip("sentencepiece", reason="needs sentencepiece (extra onnx)")


def trained_pieces() -> bytes:
    draw, model = random.Random(0), io.BytesIO()
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(2, 7))) for _ in range(300)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(draw.choices(words, k=8)) for _ in range(500)]),
        model_writer=model,
        vocab_size=200,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        pad_piece="<pad>",
    )
    return model.getvalue()


def test_fewer_pieces_read_the_same_characters_with_ids_of_t5() -> None:
    content = trained_pieces()
    fewer = fewer_pieces(content, 120)
    many, few = (
        sentencepiece.SentencePieceProcessor(model_proto=each) for each in (content, fewer)
    )
    assert len(few) == 120
    assert [few.id_to_piece(number) for number in range(3)] == ["<pad>", "</s>", "<unk>"]
    text = "abc defgh hgfedcba"
    assert "".join(few.encode(text, out_type=str)) == "".join(many.encode(text, out_type=str))
    assert few.unk_id() not in few.encode(text)
    ids = SentencePieceTokenizer(fewer).padded([text]).numpy()[0].tolist()
    assert ids == [*few.encode(text), 1]


def test_shared_pieces_keep_their_row_and_others_are_a_function_of_the_dan() -> None:
    rng = np.random.default_rng(0)
    weights, bias = rng.normal(size=(4, 6)), rng.normal(size=6)
    names = [f"p{number}" for number in range(30)]
    dan = {name: rng.normal(size=4) for name in names}
    t5 = {name: dan[name] @ weights + bias for name in names[:20]}
    found = start_table(names, dan, t5)
    expected = np.stack([dan[name] @ weights + bias for name in names])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    t5["p0"] = t5["p0"] + 1.0  # what a linear function does not give
    np.testing.assert_allclose(start_table(names, dan, t5)[0], expected[0] + 1.0, atol=1e-5)
