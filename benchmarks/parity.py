"""How far are the vectors of use_st5 from those of sentence-transformers?

    python -m benchmarks.parity --data DATA --random sentence-transformers/all-MiniLM-L6-v2=FOLDER

A folder holds a model of sentence-transformers; the name before `=` is its name on the Hugging Face
Hub.
`--random` adds a small model of each family, with random weights and a tokenizer made of the texts.
Each model is converted as `use-st5 convert` does, and both libraries encode the same texts in
float32: 24 hard ones and, with `--data`, the first 200 sentences of STS-B dev. No text names a
special token, such as "[SEP]", which use_st5 reads as characters. The lowest cosine is that of the
vectors that are not zero. Needs the extras `peers` and `text`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

import use_st5
from experiments.stsb_dev import stsb_dev
from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY

CONVERT = "use-st5 convert FOLDER --to OUT"
HARD = (
    *("", " ", "\n\t", ".", "a", "The cat sat on the mat.", "THE CAT", "It's 3.14 %, isn't it?"),
    *("😀", "👩\u200d👩\u200d👧 emoji 🎉!", "naïve café ﬁﬂ ½", "e\u0301 Å ẞ İ", "日本語 and 中文"),
    *("한국어 문장", "Где кот?", "أين القطة؟", "बिल्ली कहाँ है", "x\u00a0y\u200bz", "a" * 150),
    *("https://example.com/a?b=c&d=%20", "word " * 700, "What is your age? " * 200, "日本" * 600),
    "One line.\nAnother line.",
)  # fmt: skip
TOKENS = 64  # Limit of the random models.
BERT = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
BERT |= {"intermediate_size": 80, "max_position_embeddings": TOKENS + 2}
DISTIL = {"dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 80}
T5 = {"d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 3, "num_heads": 4}
GATED = {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
# Family → (what transformers calls it, kind of the tokenizer, shape).
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "BERT": ("Bert", "WordPiece", BERT),
    "BERT with the vocabulary of XLM-RoBERTa": ("Bert", "XLMRoberta", BERT),
    "DistilBERT": ("DistilBert", "WordPiece", DISTIL),
    "MPNet": ("MPNet", "MPNet", BERT),
    "RoBERTa": ("Roberta", "BPE", BERT),
    "XLM-RoBERTa": ("XLMRoberta", "XLMRoberta", BERT),
    "ModernBERT": ("ModernBert", "ModernBERT", {**BERT, "local_attention": 6, "pad_token_id": 0}),
    "Sentence-T5": ("T5", "T5", T5),
    "Sentence-T5 of a T5 1.1": ("T5", "T5", GATED),
    "StaticEmbedding": ("", "WordPiece", {}),
}
# In the order of their ids. Byte pairs never need "unk".
BERT_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA_TOKENS = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "[UNK]", "mask": "<mask>"}


def main() -> None:
    """Reads the arguments and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="[NAME=]FOLDER", help="real weights")
    parser.add_argument("--random", action="store_true", help="one small model of each family")
    parser.add_argument("--data", type=Path, help="folder of the data, with STS-B")
    arguments = parser.parse_args()
    texts = [*HARD]
    for pair in stsb_dev(arguments.data)[:100] if arguments.data else ():
        texts += [pair.first, pair.second]
    print(f"{len(texts)} texts\n")
    print("| model | command | largest difference | largest number | lowest cosine |")
    print("|---|---|---|---|---|")
    for model in arguments.models:
        name, _, folder = model.rpartition("=")
        command = f'use_st5.load("hf://{name}")' if name else CONVERT
        row(Path(name or folder).name, command, Path(folder), texts)
    for family in FAMILIES if arguments.random else ():
        with tempfile.TemporaryDirectory() as home:
            row(f"{family}, random", CONVERT, write_random(family, Path(home), texts), texts)


def row(label: str, command: str, folder: Path, texts: list[str]) -> None:
    """Prints the row of a model."""
    expected = SentenceTransformer(str(folder), device="cpu").float().encode(texts).astype(float)
    with tempfile.TemporaryDirectory() as home:
        use_st5.TrainableEncoder.load(folder).export(Path(home, "model"))
        encoder = use_st5.load(Path(home, "model"))
        vectors = encoder.encode(texts, on_truncation="ignore").astype(float)
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(vectors, axis=1)
    cosines = (expected * vectors).sum(axis=1)[lengths > 0] / lengths[lengths > 0]
    difference, largest = (np.abs(each).max() for each in (vectors - expected, expected))
    print(f"| {label} | `{command}` | {difference:.1e} | {largest:.2f} | {cosines.min():.7f} |")


def write_random(family: str, home: Path, texts: list[str]) -> Path:
    """Writes a model of random weights, norms and biases among them; returns its folder."""
    name, kind, shape = FAMILIES[family]
    tokenizer = make_tokenizer(kind, home, texts)
    torch.manual_seed(0)
    if not name:
        chain = [modules.StaticEmbedding(tokenizer.backend_tokenizer, embedding_dim=48)]
    else:
        config = getattr(transformers, f"{name}Config")(vocab_size=len(tokenizer), **shape)
        model = getattr(transformers, f"{name}{'Encoder' * (name == 'T5')}Model")(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.save_pretrained(home / "base")
        tokenizer.save_pretrained(home / "base")
        transformer = modules.Transformer(str(home / "base"), max_seq_length=TOKENS)
        chain = [transformer, modules.Pooling(48, "mean")]
    if name == "T5":
        dense = modules.Dense(48, 32, bias=False, activation_function=torch.nn.Identity())
        chain += [dense, modules.Normalize()]
    SentenceTransformer(modules=chain, device="cpu").save(str(home / "model"))
    return home / "model"


def make_tokenizer(kind: str, home: Path, texts: list[str]) -> Any:
    """A tokenizer of transformers, with T5's SentencePiece model or trained on the texts."""
    if kind in ("T5", "XLMRoberta"):
        file = "spiece.model" if kind == "T5" else "sentencepiece.bpe.model"
        shutil.copy(T5_VOCABULARY, home / file)
        return getattr(transformers, f"{kind}Tokenizer").from_pretrained(home)
    special = BERT_TOKENS if kind in ("WordPiece", "ModernBERT") else ROBERTA_TOKENS
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    if kind in ("WordPiece", "MPNet"):
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
        split = tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        words = split.pre_tokenize_str(tokenizer.normalizer.normalize_str("\n".join(texts)))
        ends = {f"##{end}" for word, _ in words for end in (word[4:8], *word) if end}
        pieces = [*special.values(), *sorted({word[:4] for word, _ in words} | ends)]
        ids = {piece: number for number, piece in enumerate(pieces)}
        tokenizer.model = tokenizers.models.WordPiece(ids, unk_token="[UNK]")
    else:
        tokenizer.normalizer = tokenizers.normalizers.NFC() if kind == "ModernBERT" else None
        split = tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
            add_prefix_space=False
        )
        options = {"special_tokens": [*special.values()], "initial_alphabet": split.alphabet()}
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=1_000, show_progress=False, **options)
        tokenizer.train_from_iterator(texts, trainer)
    frame = [(special[each], tokenizer.token_to_id(special[each])) for each in ("sep", "cls")]
    tokenizer.post_processor = tokenizers.processors.BertProcessing(*frame)
    names = {f"{each}_token": token for each, token in special.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


if __name__ == "__main__":
    main()
