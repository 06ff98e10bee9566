from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.bert import huggingface_folder
from use_st5.convert.tokenizer_files import read_tokenizer
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.byte_pair_tokenizer import byte_letters  # noqa: E402

PAIRS = [("the cat", "sat."), ("the cats sat", ""), ("", "the"), ("a cat " * 9, "the cat " * 9)]
SHAPE = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "num_labels": 1,
}


def add_head(folder: Path, tensors: dict[str, np.ndarray], **settings: Any) -> None:
    """Turns a folder with a bare BERT into that of a classifier."""
    from safetensors.numpy import load_file

    whole = load_file(folder / "model.safetensors") | tensors
    huggingface_folder.write_tensors(folder, whole)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | settings), encoding="utf-8")


def head_of(labels: int, *, width: int = 8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = {
        "bert.pooler.dense.weight": (width, width),
        "bert.pooler.dense.bias": (width,),
        "classifier.weight": (labels, width),
        "classifier.bias": (labels,),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    huggingface_folder.write(tmp_path, head=False)
    return tmp_path


def test_the_head_is_put_in_its_place(bare: Path) -> None:
    head = head_of(1)
    add_head(bare, head, classifier_dropout=0.3)
    encoder = TrainableEncoder.load(bare)
    model = encoder.model
    assert isinstance(model, CrossEncoderModel)
    np.testing.assert_array_equal(model.hidden.kernel, head["bert.pooler.dense.weight"].T)
    np.testing.assert_array_equal(model.hidden.bias, head["bert.pooler.dense.bias"])
    np.testing.assert_array_equal(model.logit.kernel, head["classifier.weight"].T)
    np.testing.assert_array_equal(model.logit.bias, head["classifier.bias"])
    assert (model.dropout, model.encoder.pooling, encoder.max_length) == (0.3, "cls", 16)


def test_a_bare_encoder_stays_one(bare: Path) -> None:
    """This holds even with a pooler, which `BertModel` has."""
    pooler = {name: each for name, each in head_of(1).items() if "pooler" in name}
    add_head(bare, pooler)
    assert family_of(TrainableEncoder.load(bare).model).name == "bert"
    with pytest.raises(ValueError, match="found a sentence encoder"):
        CrossEncoder.load(bare)


@pytest.mark.parametrize(
    ("head", "settings", "message"),
    [
        (head_of(0), {}, "expected one label.* found 0 labels"),
        (head_of(3), {}, "expected one label.* found 3 labels"),
        (head_of(1, width=6), {}, r"classifier.weight: expected \[1, 8\], found \[1, 6\]"),
        # It has the same tensors, but reads each choice by itself.
        (head_of(1), {"architectures": ["BertForMultipleChoice"]}, "Unknown: classifier.bias"),
    ],
)
def test_other_heads_are_refused(
    bare: Path, head: dict[str, np.ndarray], settings: dict[str, Any], message: str
) -> None:
    add_head(bare, head, **settings)
    with pytest.raises(ValueError, match=message):
        CrossEncoder.load(bare)


def peer(folder: Path, kind: str) -> Any:
    """A classifier of transformers with random weights and its tokenizer, written to a folder."""
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if kind == "bert":
        words = "".join(f"{word}\n" for word in (*huggingface_folder.WORDS, "[MASK]"))
        (folder / "vocab.txt").write_text(words, encoding="utf-8")
        tokenizer = transformers.BertTokenizer.from_pretrained(folder)
        config = transformers.BertConfig(
            **SHAPE, vocab_size=11, max_position_embeddings=32, classifier_dropout=0.2
        )
        model = transformers.BertForSequenceClassification(config)
    else:
        pieces = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
        for piece in (*byte_letters(), "th", "the", "\u0120c", "<mask>"):
            pieces[piece] = len(pieces)
        (folder / "vocab.json").write_text(json.dumps(pieces), encoding="utf-8")
        merges = "#version: 0.2\nt h\nth e\n\u0120 c\n"
        (folder / "merges.txt").write_text(merges, encoding="utf-8")
        tokenizer = transformers.RobertaTokenizerFast.from_pretrained(folder)
        config = transformers.RobertaConfig(
            **SHAPE,
            vocab_size=len(pieces),
            max_position_embeddings=34,
            type_vocab_size=1,
            pad_token_id=1,
        )
        model = transformers.RobertaForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def logits_of(model: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    import torch

    found = []
    for first, second in pairs:
        given = tokenizer([first], [second], truncation=True, max_length=32, return_tensors="pt")
        with torch.no_grad():
            found.append(model(**given).logits[0, 0].item())
    return np.array(found, np.float32)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_logits_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    """From strings, by `CrossEncoder` and `TrainableEncoder`; other tests export them."""
    folder = tmp_path / kind
    folder.mkdir()
    expected = logits_of(*peer(folder, kind), PAIRS)
    assert np.ptp(expected) > 1e-2
    cross_encoder = CrossEncoder.load(folder)
    np.testing.assert_allclose(cross_encoder.predict(PAIRS, logits=True), expected, atol=1e-5)
    encoder = TrainableEncoder.load(folder)
    np.testing.assert_allclose(encoder.encode(PAIRS)[:, 0], expected, atol=1e-5)


def settings_of(name: str | None, *inputs: str) -> dict[str, Any]:
    settings = {} if name is None else {"tokenizer_class": name}
    return settings | ({"model_input_names": [*inputs]} if inputs else {})


IDS, TYPES = "input_ids", "token_type_ids"


@pytest.mark.parametrize(
    "settings",
    [
        settings_of("DistilBertTokenizer", IDS, TYPES),
        settings_of("PreTrainedTokenizerFast"),
    ],
    ids=str,
)
def test_token_types_are_those_that_the_tokenizer_gives(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    model, _ = peer(tmp_path, "bert")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = logits_of(model, tokenizer, PAIRS)
    found = CrossEncoder.load(tmp_path).predict(PAIRS, logits=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_other_pairs_are_refused(tmp_path: Path) -> None:
    peer(tmp_path, "bert")
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    pair = content["post_processor"]["pair"]
    pair.insert(2, pair[2])
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer.json: \$.post_processor: a pair .*expected"):
        CrossEncoder.load(tmp_path)
    # A sentence encoder never sees a pair.
    assert read_tokenizer(tmp_path).between == 1


def test_a_cross_encoder_of_a_plain_bert_begins_as_that_of_transformers(tmp_path: Path) -> None:
    """It has the pooler of the checkpoint; only the last layer is drawn at random."""
    (tmp_path / "whole").mkdir()
    whole, tokenizer = peer(tmp_path / "whole", "bert")
    whole.bert.save_pretrained(tmp_path / "plain")
    tokenizer.save_pretrained(tmp_path / "plain")
    theirs = type(whole).from_pretrained(tmp_path / "plain", num_labels=1).eval()
    plain = TrainableEncoder.load(tmp_path / "plain")
    ours = CrossEncoderModel(plain.model.pooled("cls"))
    ours.build()
    last = theirs.classifier
    ours.logit.set_weights([last.weight.detach().numpy().T, last.bias.detach().numpy()])
    np.testing.assert_allclose(
        TrainableEncoder(ours, plain.tokenizer).encode(PAIRS)[:, 0],
        logits_of(theirs, tokenizer, PAIRS),
        atol=1e-5,
    )


def test_a_folder_that_sentence_transformers_wrote(tmp_path: Path) -> None:
    """Version 6 adds a list of modules to the folder, whose one module classifies."""
    peers = pytest.importorskip("sentence_transformers", reason="the extra `peers` is not there")
    (tmp_path / "plain").mkdir()
    peer(tmp_path / "plain", "bert")
    theirs = peers.CrossEncoder(str(tmp_path / "plain"), max_length=20, device="cpu")
    theirs.save_pretrained(str(tmp_path / "saved"))
    ours = CrossEncoder.load(tmp_path / "saved")
    np.testing.assert_allclose(ours.predict(PAIRS), theirs.predict(PAIRS), atol=1e-5)
    assert TrainableEncoder.load(tmp_path / "saved").max_length == 20
