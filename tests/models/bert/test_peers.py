"""BERT and its relatives, against the passes of transformers and sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from tests.corpora_folder import WORDS as NOUNS
from tests.models.bert.huggingface_folder import first_blocks, token_vectors
from tests.tiny_bert import VOCABULARY, write_tiny_bert
from tests.tokenizers.test_added_tokens import TEXTS as TEXTS_WITH_ADDED_TOKENS
from tests.tokenizers.test_added_tokens import modernbert
from tests.tokenizers.test_framed_sentencepiece_tokenizer import TEXTS, whole
from use_st5.convert.checkpoint import open_checkpoint
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.models.bert.checkpoint import read_sentence_bert
from use_st5.models.modernbert.model import SentenceModernBert
from use_st5.models.mpnet.model import SentenceMPNet
from use_st5.tokenizers.byte_pair_tokenizer import byte_letters
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SHAPE = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
}
# [CLS] is 1, [SEP] 3: two single texts and a pair.
BERT_IDS = np.array(
    [[1, 9, 33, 3, 0, 0, 0], [1, 3, 0, 0, 0, 0, 0], [1, 7, 3, 8, 59, 5, 3]], np.int32
)
# RoBERTa's own: <s> is 0, <pad> 1, </s> 2.
ROBERTA_IDS = np.array(
    [[0, 9, 33, 2, 1, 1, 1], [0, 2, 1, 1, 1, 1, 1], [0, 7, 2, 2, 59, 5, 2]], np.int32
)


def shaken(model: Any) -> Any:
    """Adds noise to all weights of a model, norms and biases included."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def outputs(model: Any, ids: np.ndarray, padding: int, **inputs: Any) -> tuple:
    """The hidden states of every layer and the logits of the words."""
    given = {"input_ids": ids, "attention_mask": ids != padding, **inputs}
    with torch.no_grad():
        out = model(
            **{name: torch.tensor(array).long() for name, array in given.items()},
            output_hidden_states=True,
        )
    return [each.numpy() for each in out.hidden_states], out.logits.numpy()


def check(folder: Path, ids: np.ndarray, hidden: list[np.ndarray], logits: np.ndarray) -> None:
    model = read_sentence_bert(open_checkpoint(folder), separator=3)
    mask = (ids != 0)[..., None]
    tokens = token_vectors(model, ids)
    np.testing.assert_allclose(tokens * mask, hidden[-1] * mask, atol=1e-5)
    np.testing.assert_allclose(model(ids), (hidden[-1] * mask).sum(1) / mask.sum(1), atol=1e-5)
    np.testing.assert_allclose(model.word_logits(tokens) * mask, logits * mask, atol=1e-5)
    for layers in range(len(hidden) - 1):
        expected = (hidden[layers] * mask).sum(1) / mask.sum(1)
        np.testing.assert_allclose(first_blocks(model, layers)(ids), expected, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_a_bert_with_pairs(tmp_path: Path, activation: str) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **SHAPE, max_position_embeddings=9, type_vocab_size=2, hidden_act=activation
    )
    peer = shaken(transformers.BertForMaskedLM(config))
    peer.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 1
    types = np.zeros_like(BERT_IDS)
    types[2, 3:] = 1
    check(tmp_path, BERT_IDS, *outputs(peer, BERT_IDS, 0, token_type_ids=types))


def test_a_roberta_with_pairs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        **SHAPE,
        max_position_embeddings=9 + 2,
        type_vocab_size=1,
        pad_token_id=1,
        layer_norm_eps=1e-5,
    )
    peer = shaken(transformers.RobertaForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    swapped = np.array([1, 0, *range(2, 60)], np.int32)
    hidden, logits = outputs(peer, ROBERTA_IDS, 1)
    check(tmp_path, swapped[ROBERTA_IDS], hidden, logits[..., swapped])


def test_a_roberta_from_strings(tmp_path: Path) -> None:
    """It has its own byte pairs, and the ids of padding and start are exchanged."""
    pieces = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for piece in (*byte_letters(), "th", "the", "\u0120c", "<mask>"):
        pieces[piece] = len(pieces)
    merges = "#version: 0.2\nt h\nth e\n\u0120 c\n"
    (tmp_path / "vocab.json").write_text(json.dumps(pieces), encoding="utf-8")
    (tmp_path / "merges.txt").write_text(merges, encoding="utf-8")
    config = transformers.RobertaConfig(
        **{**SHAPE, "vocab_size": len(pieces)},
        max_position_embeddings=34,
        type_vocab_size=1,
        pad_token_id=1,
    )
    torch.manual_seed(0)
    peer = shaken(transformers.RobertaModel(config, add_pooling_layer=False))
    peer.save_pretrained(tmp_path)
    tokenizer = transformers.RobertaTokenizerFast(
        str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
    )
    encoder = TrainableEncoder.load(tmp_path, pooling="cls")
    texts = ["the cat", "", "naïve 😀", "the " * 30]
    vectors = encoder.encode(texts)
    for text, vector in zip(texts, vectors, strict=True):
        ids = tokenizer([text], truncation=True, max_length=32, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            np.testing.assert_allclose(
                vector, peer(input_ids=ids).last_hidden_state[0, 0].numpy(), atol=1e-5
            )


def test_a_distilbert(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 9}
    config = transformers.DistilBertConfig(**shape, vocab_size=60, sinusoidal_pos_embds=True)
    peer = shaken(transformers.DistilBertForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    check(tmp_path, BERT_IDS, *outputs(peer, BERT_IDS, 0))


PIECES = 500


def save_with_pieces(folder: Path, peer: Any) -> Any:
    """Saves a model and a small `tokenizer.json`; returns that as Hugging Face reads it."""
    peer.save_pretrained(folder)
    content = whole()
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = [*vocabulary[: PIECES - 1], vocabulary[-1]]
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(32)
    return tokenizer


def check_means(encoder: TrainableEncoder, texts: list[str], base: Any, tokenizer: Any) -> None:
    """Compares the vectors of texts with the means of the peer's outputs."""
    for text, vector in zip(texts, encoder.encode(texts), strict=True):
        ids = torch.tensor([tokenizer.encode(text).ids])
        with torch.no_grad():
            expected = base(input_ids=ids).last_hidden_state[0].mean(dim=0).numpy()
        np.testing.assert_allclose(vector, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["XLMRoberta", "Bert"])
def test_an_xlm_roberta_from_strings(tmp_path: Path, kind: str) -> None:
    """By its `config.json`, multilingual-e5-small is a BERT with the padding id 0."""
    torch.manual_seed(0)
    settings = {**SHAPE, "vocab_size": PIECES + 3}
    settings["max_position_embeddings"] = 32 if kind == "Bert" else 34
    config = getattr(transformers, f"{kind}Config")(**settings)
    peer = shaken(getattr(transformers, f"{kind}Model")(config, add_pooling_layer=False))
    tokenizer = save_with_pieces(tmp_path, peer)
    encoder = TrainableEncoder.load(tmp_path, pooling="mean")
    assert encoder.max_length == 32
    check_means(encoder, [*TEXTS, "the " * 60], peer, tokenizer)


def test_pairs_of_an_xlm_roberta(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.XLMRobertaConfig(
        **{**SHAPE, "vocab_size": PIECES}, max_position_embeddings=34, num_labels=1
    )
    peer = shaken(transformers.XLMRobertaForSequenceClassification(config))
    tokenizer = save_with_pieces(tmp_path, peer)
    pairs = [("the cat", "a mat"), ("the " * 30, "dogs ran"), ("", "on it")]
    scores = CrossEncoder.load(tmp_path).predict(pairs)
    for pair, score in zip(pairs, scores, strict=True):
        ids = torch.tensor([tokenizer.encode(*pair).ids])
        with torch.no_grad():
            expected = torch.sigmoid(peer(input_ids=ids).logits[0, 0]).item()
        assert score == pytest.approx(expected, abs=1e-5)


def save_modernbert(folder: Path, kind: str) -> tuple[Any, Any]:
    """Saves a model and its tokenizer, and returns them as Hugging Face has them."""
    content = modernbert()
    ids = {each["content"]: each["id"] for each in content["added_tokens"]}
    config = transformers.ModernBertConfig(
        hidden_size=24,
        num_hidden_layers=5,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=64,
        local_attention=6,  # A token sees half of it, three tokens, on either side.
        vocab_size=max(ids.values()) + 2,
        pad_token_id=ids["[PAD]"],
        cls_token_id=ids["[CLS]"],
        sep_token_id=ids["[SEP]"],
        bos_token_id=ids["[CLS]"],
        eos_token_id=ids["[SEP]"],
    )
    torch.manual_seed(0)
    peer = shaken(getattr(transformers, kind)(config))
    peer.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(64)
    return peer, tokenizer


def test_a_modernbert_from_strings(tmp_path: Path) -> None:
    peer, tokenizer = save_modernbert(tmp_path, "ModernBertForMaskedLM")
    encoder = TrainableEncoder.load(tmp_path)
    assert isinstance(encoder.model, SentenceModernBert)
    assert encoder.max_length == 64
    texts = [*TEXTS_WITH_ADDED_TOKENS, "the cat " * 60]
    check_means(encoder, texts, peer.model, tokenizer)


def test_settings_of_modernberts(tmp_path: Path) -> None:
    """Transformers 4 wrote two thetas and an interval; other settings are refused."""
    save_modernbert(tmp_path, "ModernBertModel")
    new = TrainableEncoder.load(tmp_path).model.config
    path = tmp_path / "config.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    old = {name: each for name, each in whole.items() if name not in ("rope_parameters",)}
    del old["layer_types"]
    old |= {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0}
    path.write_text(json.dumps(old), encoding="utf-8")
    assert TrainableEncoder.load(tmp_path).model.config == new
    old |= {"global_rope_theta": 500.0, "local_rope_theta": None, "global_attn_every_n_layers": 2}
    path.write_text(json.dumps(old), encoding="utf-8")
    config = TrainableEncoder.load(tmp_path).model.config
    assert (config.global_theta, config.local_theta, config.global_every) == (500.0, 500.0, 2)
    for name, value, message in (
        ("norm_bias", True, r"\$\.norm_bias"),
        ("num_hidden_layers", 10**6, "cannot make 1,000,000 layers"),
        ("layer_types", ["sliding_attention"] * 5, "layer_types: expected full_attention"),
        ("intermediate_size", 21, r"mlp.Wi.weight: expected \[42, 24\], found \[40, 24\]"),
    ):
        path.write_text(json.dumps({**whole, name: value}), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            TrainableEncoder.load(tmp_path)


MPNET_WORDS = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "the",
    "[UNK]",
    "cat",
    "sat",
    "##s",
    "a",
    ".",
    "<mask>",
]
MPNET_TEXTS = ["the cat sat.", "", "A CAT sats", "the " * 60, "dogs"]
MPNET_SHAPE = {
    "vocab_size": len(MPNET_WORDS),
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 40 + 2,
    "layer_norm_eps": 1e-5,
}


def save_mpnet(folder: Path, kind: Any, **settings: Any) -> Any:
    """Saves a model with random weights, norms and biases included, and its tokenizer."""
    torch.manual_seed(0)
    model = shaken(kind(transformers.MPNetConfig(**MPNET_SHAPE, **settings)))
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text(
        "".join(f"{word}\n" for word in MPNET_WORDS), encoding="utf-8"
    )
    return model


def ids_of(words: list[str]) -> Any:
    """The ids for transformers, and the mask of those that are no padding."""
    rows = [[MPNET_WORDS.index(word) for word in row.split()] for row in words]
    width = max(map(len, rows))
    ids = torch.tensor([row + [1] * (width - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


MPNET_IDS = [
    "<s> the cat sat . </s>",
    "<s> </s>",
    "<s> a cat sat ##s </s>",
    f"<s> {'the ' * 38} </s>",
    "<s> [UNK] </s>",
]


def test_an_mpnet_and_its_words(tmp_path: Path) -> None:
    peer = save_mpnet(tmp_path, transformers.MPNetForMaskedLM)
    given = ids_of(MPNET_IDS)
    with torch.no_grad():
        out = peer(**given, output_hidden_states=True)
    hidden, mask = out.hidden_states[-1].numpy(), given["attention_mask"].numpy()[..., None]
    encoder = TrainableEncoder.load(tmp_path)
    assert isinstance(encoder.model, SentenceMPNet)
    expected = (hidden * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(encoder.encode(MPNET_TEXTS), expected, atol=1e-5)
    ids = encoder.tokenizer.padded(MPNET_TEXTS, encoder.max_length)
    logits = encoder.model.word_logits(token_vectors(encoder.model, ids))
    swapped = [1, 0, *range(2, len(MPNET_WORDS))]
    np.testing.assert_allclose(logits * mask, out.logits.numpy()[..., swapped] * mask, atol=1e-4)


def test_pairs_of_an_mpnet(tmp_path: Path) -> None:
    """`tokenizer.json` as transformers writes it, and a classifier of pairs."""
    peer = save_mpnet(tmp_path, transformers.MPNetForSequenceClassification, num_labels=1)
    transformers.MPNetTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").unlink(missing_ok=True)
    frame = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))["post_processor"]
    assert frame["type"] == "RobertaProcessing"
    with torch.no_grad():
        logits = peer(**ids_of(["<s> the cat </s> </s> a cat </s>"])).logits.numpy()
    scores = CrossEncoder.load(tmp_path).predict([("the cat", "a cat")])
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-logits[:, 0])), atol=1e-5)


KIND_TEXTS = [f"a {word} is a kind of {other}" for word in VOCABULARY[5:15] for other in NOUNS[:5]]
# Each item is "norm", or a width, whether there is a bias, and torch's activation.
Chain = list[Any]


def peer_with(folder: Path, chain: Chain, *, normalize: bool, pooling: Any = "mean") -> Any:
    """A tiny model of sentence-transformers with random modules behind the pooling."""
    peers = pytest.importorskip("sentence_transformers.models")
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(0)
    modules: list[Any] = [peers.Transformer(str(write_tiny_bert(folder, head=False)))]
    modules.append(peers.Pooling(8, pooling_mode=pooling))
    width = modules[-1].get_embedding_dimension()
    for each in chain:
        if each == "norm":
            modules.append(peers.LayerNorm(width))
            continue
        units, bias, activation = each
        modules.append(peers.Dense(width, units, bias=bias, activation_function=activation))
        width = units
    if normalize:
        modules.append(peers.Normalize())
    for module in modules[2:]:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter)
    return SentenceTransformer(modules=modules, device="cpu").eval()


CHAINS: dict[str, tuple[Callable[[Any], Chain], bool]] = {
    "norms and activations": (
        lambda nn: ["norm", (12, True, nn.Tanh()), (7, False, nn.GELU()), (9, True, nn.Sigmoid())],
        False,
    ),
    "smooth and leaky": (
        lambda nn: [
            *((8, True, kind()) for kind in (nn.SiLU, nn.Mish, nn.ELU)),
            (9, False, nn.LeakyReLU()),
        ],
        True,
    ),
    # As EmbeddingGemma has them.
    "two without activation": (
        lambda nn: [(24, False, nn.Identity()), (6, False, nn.Identity())],
        True,
    ),
}


POOLED = [("mean", name) for name in CHAINS]
POOLED += [(("mean", "max", "cls"), "smooth and leaky"), (("max", "mean_sqrt_len_tokens"), "")]


@pytest.mark.parametrize(("pooling", "name"), POOLED)
def test_layers_after_the_pooling(pooling: Any, name: str, tmp_path: Path) -> None:
    """They are compared when read, exported, read again, and run on ONNX Runtime."""
    made, normalize = CHAINS.get(name, (lambda nn: [], False))
    peer = peer_with(tmp_path / "tiny", made(torch.nn), normalize=normalize, pooling=pooling)
    peer.save(str(tmp_path / "peer"))
    expected = peer.encode(KIND_TEXTS)
    encoder = TrainableEncoder.load(tmp_path / "peer")
    assert encoder.dimension == expected.shape[1]
    np.testing.assert_allclose(encoder.encode(KIND_TEXTS), expected, atol=1e-5)
    encoder.export(tmp_path / "float32")
    for backend in ("tensorflow", "onnx"):
        if backend == "onnx":
            pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
        found = use_st5.load(tmp_path / "float32", backend=backend).encode(KIND_TEXTS)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    again = TrainableEncoder.load(tmp_path / "float32")
    np.testing.assert_allclose(again.encode(KIND_TEXTS), expected, atol=1e-5)
