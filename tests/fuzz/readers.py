"""Every reader, with complete examples of its files."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tests.convert import t5x_writer
from tests.convert import tokenizer_examples as tokenizers
from tests.evaluation import records as report_records
from tests.fuzz.tiny_models import export_use_dan
from tests.models.t5 import numpy_t5
from tests.search import damages
from use_st5.hub.model_manifest import ModelManifest


class Reader(NamedTuple):
    """A reader.

    Attributes:
        make: Writes whole files into an empty folder.
        read: Reads all of them.
        share: The share of the ordinary number of damages; less if reading takes long.
        needs: A package it cannot do without.
        of_text: Whether it reads texts of any length.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], object]
    share: float = 1.0
    needs: str | None = None
    of_text: bool = False


_ROWS = [
    ["A dog é sleeps.", "A dog rests.", "entailment"],
    ["A dog é sleeps.", "A dog runs.", "contradiction"],
    ["A dog é sleeps.", "Some men eat 今日.", "neutral"],
]


def _text(name: str, *lines: str) -> Callable[[Path], None]:
    """Writes one file of lines."""

    def make(folder: Path) -> None:
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    return make


def _table(name: str, *rows: Iterable[object]) -> Callable[[Path], None]:
    return _text(name, *("\t".join(map(str, row)) for row in rows))


def _jsonl(name: str, *rows: object) -> Callable[[Path], None]:
    return _text(name, *(json.dumps(row, ensure_ascii=False) for row in rows))


def _csv(name: str, *rows: Iterable[object]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)

    return make


def _packed(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def make_packed(folder: Path) -> None:
        make(folder)
        for path in [*folder.iterdir()]:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()

    return make_packed


def _data() -> dict[str, Reader]:
    from use_st5 import data

    two = ("a\tb", "c\td")
    prose = ("Once upon a time. It rained.", "", "Then it stopped. She left — late.")
    columns = {"anchor": 0, "positive": 1}
    return {
        "nli_gzip": Reader(
            _packed(_table("n.tsv", *_ROWS)),
            lambda f: [*data.TableReader(f / "n.tsv.gz", columns=columns)],
        ),
        "pairs": Reader(
            _text("p.tsv", *two), lambda f: [*data.TableReader(f / "p.tsv", columns=columns)]
        ),
        "running_text": Reader(_text("a.txt", *prose), lambda f: [*data.TextReader(f / "a.txt")]),
        "prepared": Reader(_make_prepared, _read_prepared),
        "vocabulary": Reader(_make_vocabulary, _read_vocabulary),
        "teacher_vectors": Reader(_make_teacher, _read_teacher),
    }


def _own_tables() -> dict[str, Reader]:
    """The tables that a user trains on: each is read as `use-st5 train` reads it."""
    from use_st5.training.rows import read_file

    head = ["sentence1", "sentence2", "score"]
    rows = [[f"A dog é runs {n}.", f"It runs, {n}.", n / 4] for n in range(12)]
    objects = [dict(zip(head, row, strict=True)) for row in rows]

    def parquet(folder: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(objects), folder / "own.parquet")

    def read(name: str) -> Callable[[Path], object]:
        return lambda folder: [*read_file(folder / name)]

    return {
        "own_csv": Reader(_csv("own.csv", head, *rows), read("own.csv")),
        "own_tsv": Reader(_table("own.tsv", head, *rows), read("own.tsv")),
        "own_jsonl": Reader(_jsonl("own.jsonl", *objects), read("own.jsonl")),
        "own_parquet": Reader(parquet, read("own.parquet")),
    }


def _make_prepared(folder: Path) -> None:
    from use_st5.data import PreparedColumn, prepare
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

    tokenizer = NGramTokenizer(NGramVocabulary(("the", "cat")))
    columns = {
        "text": PreparedColumn("ids", max_tokens=4),
        "label": PreparedColumn("label"),
        "teacher": PreparedColumn("vector"),
    }
    examples = [{"text": "the cat sat", "label": i, "teacher": [0.5, i]} for i in range(3)]
    prepare(examples, columns, tokenizer, folder / "prepared")


def _read_prepared(folder: Path) -> None:
    from use_st5.data import open_prepared

    for array in open_prepared(folder / "prepared").values():
        array.sum()


def _make_vocabulary(folder: Path) -> None:
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

    NGramVocabulary(("the", "cat", "é"), ("the cat",)).save(folder / "v.txt")


def _read_vocabulary(folder: Path) -> None:
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

    NGramVocabulary.load(folder / "v.txt")


def _make_teacher(folder: Path) -> None:
    from use_st5.encode.vector_store import VectorStore

    sentences = ["one", "two é", "three", "four"]
    VectorStore(folder / "t", dtype="float16", chunk=2).extend(
        lambda s: np.ones((len(s), 4)), sentences
    )


def _read_teacher(folder: Path) -> None:
    from use_st5.encode.vector_store import VectorStore

    vectors = VectorStore(folder / "t", dtype="float16")
    for block in vectors._blocks:
        block.sum()


def _records() -> dict[str, Reader]:
    from use_st5.evaluation.runner import EvaluationRecord, read_result

    entry = report_records.entry("sts", "STS12", {"spearman_all": 0.5}, notes={"a": [1]})
    record = report_records.record("model", {"sts12": entry}, {"sts13": "missing"})

    return {
        "evaluation_record": Reader(
            lambda f: record.write(f / "r.json"), lambda f: EvaluationRecord.read(f / "r.json")
        ),
        "result": Reader(
            lambda f: (f / "r.json").write_text(json.dumps(entry), encoding="utf-8"),
            lambda f: read_result(f / "r.json"),
        ),
        "embedding_store": Reader(_make_store, _read_store),
        "embedding_job": Reader(_make_job, _read_job),
        "index_exact": _index("exact"),
        "index_binary": _index("binary"),
        "index_hnsw": _index("hnsw", needs="faiss"),
    }


def _index(kind: str, **options: Any) -> Reader:
    """An index; damaged, it is refused or gives the same answer as when it is whole."""
    from use_st5.search.vector_index import VectorIndex

    whole: list[object] = []

    def make(folder: Path) -> None:
        damages.write_index(folder / "i", kind)
        whole[:] = damages.answer(folder / "i")

    def read(folder: Path) -> None:
        VectorIndex(folder / "i").verify()  # Opening checks the sizes of vectors and texts alone.
        assert damages.answer(folder / "i") == whole, "another answer"

    return Reader(make, read, **options)


def _make_store(folder: Path) -> None:
    from use_st5.encode.vector_store import VectorCache

    VectorCache(lambda s: np.ones((len(s), 4)), store=folder / "store")(["a", "b é"])


def _read_store(folder: Path) -> None:
    from use_st5.encode.vector_store import VectorCache

    VectorCache(lambda s: np.ones((len(s), 4)), store=folder / "store")(["a", "c"])


def _job(folder: Path) -> Any:
    from use_st5.cli.embed import EmbeddingJob

    description = {"input_sha256": "0", "rows": 4, "model": "m", "dimension": 2, "format": "npy"}
    return EmbeddingJob(folder / "v.npy", description)


def _make_job(folder: Path) -> None:
    job = _job(folder)
    job.open()
    job.append(["a", "b"], np.ones((2, 2), np.float32), truncated=0)


def _read_job(folder: Path) -> None:
    """Continues the work of an interrupted `use-st5 embed`, or throws it away.

    The values of the vectors are not checked, only the number of bytes.
    """
    job = _job(folder)
    job.open()
    rows = max(4 - job.rows_done, 0)
    job.append(["c"] * rows, np.ones((rows, 2), np.float32), truncated=0)
    job.whole_file().replace(folder / "v.npy")
    job.discard()
    assert (folder / "v.npy").stat().st_size == 128 + 4 * 2 * 4


def _checkpoints() -> dict[str, Reader]:
    from use_st5.convert.checkpoint import open_checkpoint
    from use_st5.models.t5.checkpoint import read_sentence_t5

    def t5x_file(folder: Path) -> None:
        t5x_writer.write_file(folder / "c", numpy_t5.arrays())

    def t5x_folder(folder: Path) -> None:
        t5x_writer.write_folder(folder / "c", numpy_t5.arrays(), chunk=8)

    def read(folder: Path) -> None:
        read_sentence_t5(open_checkpoint(folder))

    def read_t5x(folder: Path) -> None:
        read(folder / "c")

    return {
        "hugging_face": Reader(_make_hugging_face, read, share=0.2),
        "hugging_face_shards": Reader(_make_shards, read, share=0.2),
        "sentence_transformers": Reader(_make_sentence_transformers, read, share=0.2),
        "t5x_file": Reader(t5x_file, read_t5x, share=0.2),
        "t5x_folder": Reader(t5x_folder, read_t5x, share=0.2),
        "mesh_tensorflow": Reader(
            _make_mesh_tensorflow,
            lambda f: read(f / "model.ckpt-9"),
            share=0.2,
        ),
        "sentencepiece": Reader(
            _make_sentencepiece, _read_sentencepiece, share=0.2, needs="tensorflow_text"
        ),
        "wordpiece_files": Reader(
            _make_wordpieces, _read_tokenizer, share=0.5, needs="tensorflow_text"
        ),
        "wordpiece_json": Reader(
            lambda f: _write_json(f / "tokenizer.json", tokenizers.wordpiece()),
            _read_tokenizer,
            share=0.5,
            needs="tensorflow_text",
        ),
        "byte_pair_files": Reader(_make_byte_pairs, _read_tokenizer, share=0.5),
        "byte_pair_json": Reader(
            lambda f: _write_json(f / "tokenizer.json", tokenizers.byte_pair(tokenizers.MERGES)),
            _read_tokenizer,
            share=0.5,
        ),
        "saved_model": Reader(lambda f: export_use_dan(f / "m"), _read_model, share=0.1),
        "saved_model_facts": Reader(lambda f: _make_facts(f), _read_facts),
        "training": Reader(_make_training, _read_training),
        "lora_adapters": Reader(_make_lora, _read_lora, share=0.2),
        "classifier": Reader(_make_classifier, _read_classifier, share=0.2),
    }


_T5 = {
    "model_type": "t5", "vocab_size": 50, "num_layers": 1, "num_decoder_layers": 1,
    "d_model": 8, "d_ff": 16, "num_heads": 2, "d_kv": 4, "feed_forward_proj": "relu",
}  # fmt: skip


def _t5_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Writes config.json, and returns random arrays of its shapes by their names."""
    from use_st5.models.t5.checkpoint import HUGGING_FACE
    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5

    (folder / "config.json").write_text(json.dumps(_T5), encoding="utf-8")
    model = SentenceT5(T5Config(50, 1, 8, 16, 2, 4))
    model.build()
    random = np.random.default_rng(0)
    return {
        name: random.normal(size=target.stored_shape()).astype("f")
        for name, target in HUGGING_FACE.targets(model).items()
    }


def _make_hugging_face(folder: Path) -> None:
    from safetensors.numpy import save_file

    save_file(_t5_tensors(folder), folder / "model.safetensors")


def _make_shards(folder: Path) -> None:
    from safetensors.numpy import save_file

    places = {}
    tensors = _t5_tensors(folder)
    for number, name in enumerate(tensors):
        places[name] = f"model-0000{number % 2 + 1}-of-00002.safetensors"
    for file in set(places.values()):
        save_file({n: tensors[n] for n, place in places.items() if place == file}, folder / file)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def _make_sentence_transformers(folder: Path) -> None:
    from safetensors.numpy import save_file

    kinds = {"Transformer": "0_Transformer", "Pooling": "1_Pooling", "Dense": "2_Dense"}
    for place in kinds.values():
        (folder / place).mkdir()
    _make_hugging_face(folder / "0_Transformer")
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": place}
        for kind, place in kinds.items()
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    pooling = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    dense = {"in_features": 8, "out_features": 6, "bias": False, "activation_function": "Identity"}
    (folder / "2_Dense" / "config.json").write_text(json.dumps(dense), encoding="utf-8")
    weights = {"linear.weight": np.ones((6, 8), np.float32)}
    save_file(weights, folder / "2_Dense" / "model.safetensors")


def _make_mesh_tensorflow(folder: Path) -> None:
    from tests.models.tensorflow_checkpoint import write_checkpoint

    table = {f"encoder/{name}/scale": np.ones(8, "f") for name in ("final_layer_norm",)}
    table["shared/embedding"] = np.ones((50, 8), "f")
    attention = "encoder/block_000/layer_000/SelfAttention"
    table |= {f"{attention}/{name}": np.ones((8, 8), "f") for name in "qkvo"}
    table[f"{attention}/relative_attention_bias"] = np.ones((2, 32), "f")
    for layer in (0, 1):
        table[f"encoder/block_000/layer_00{layer}/layer_norm/scale"] = np.ones(8, "f")
    dense = "encoder/block_000/layer_001/DenseReluDense"
    table |= {
        f"{dense}/wi/kernel": np.ones((8, 16), "f"),
        f"{dense}/wo/kernel": np.ones((16, 8), "f"),
    }
    write_checkpoint(folder / "model.ckpt-9", table)


def _make_sentencepiece(folder: Path) -> None:
    from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY

    shutil.copy(T5_VOCABULARY, folder / "spiece.model")


def _read_sentencepiece(folder: Path) -> None:
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    SentencePieceTokenizer(folder / "spiece.model").padded(["How old are you?"])


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _make_wordpieces(folder: Path) -> None:
    _text("vocab.txt", *tokenizers.WORDS)(folder)
    _write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "strip_accents": None})


def _make_byte_pairs(folder: Path) -> None:
    _write_json(folder / "vocab.json", tokenizers.ids_of(tokenizers.PIECES))
    _text("merges.txt", "#version: 0.2", *map(" ".join, tokenizers.MERGES))(folder)


def _read_tokenizer(folder: Path) -> None:
    from use_st5.convert.tokenizer_files import read_tokenizer

    read_tokenizer(folder).padded(["The cats 今日.", ""])


def _read_model(folder: Path) -> None:
    from use_st5.encode.encoder import SentenceEncoder

    SentenceEncoder(folder / "m").encode("How old are you?")


def _make_facts(folder: Path) -> None:
    (folder / "m").mkdir()
    (folder / "m" / "saved_model.pb").write_text("graph")
    ModelManifest(
        name="tiny",
        dimension=8,
        max_length=128,
        precision="float32",
        parameters=1000,
        trainable_parameters=1000,
        versions={},
        files={},
        model_hash=hashlib.sha256(b"graph").hexdigest(),
        metadata={},
    ).write(folder / "m")


def _read_facts(folder: Path) -> None:
    """Reads the parts of a model that `info`, `doctor` and `export` read without loading it."""
    manifest = ModelManifest.read(folder / "m")
    if manifest is not None:
        manifest.check_contents(folder / "m")
        manifest.size_bytes.bit_length()


def _training_checkpoints(folder: Path) -> Any:
    import keras

    from use_st5.training.checkpoints import Checkpoints

    variables = {"a": [keras.Variable([1.0, 2.0])], "b": [keras.Variable(3.0, dtype="bfloat16")]}
    return Checkpoints(folder / "run", variables)


def _make_training(folder: Path) -> None:
    _training_checkpoints(folder).save(9, {"step": 9, "best": None})


def _read_training(folder: Path) -> None:
    checkpoints = _training_checkpoints(folder)
    checkpoints.restore(9)
    checkpoints.state(9)


def _lora_model() -> Any:
    from use_st5.models.t5.model import T5Config
    from use_st5.models.t5.sentence_t5 import SentenceT5

    model = SentenceT5(T5Config(50, 1, 8, 16, 2, 4, "relu"))
    model.build()
    return model


def _make_lora(folder: Path) -> None:
    from use_st5.models.lora import apply_lora

    apply_lora(_lora_model()).save(folder / "a.safetensors")


def _read_lora(folder: Path) -> None:
    from use_st5.models.lora import load_lora

    load_lora(_lora_model(), folder / "a.safetensors")


def _make_classifier(folder: Path) -> None:
    import keras

    keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)]).save(folder / "c.keras")
    _write_json(folder / "c.json", {"labels": ["short", "long"], "accuracy": {"asked": 0.75}})


def _read_classifier(folder: Path) -> None:
    """Reads all but the encoder, which is read like any other SavedModel."""
    from use_st5.training import Classifier

    class OfEightDimensions(Classifier):
        encoder = SimpleNamespace(dimension=8, encode=lambda texts: np.ones((len(texts), 8), "f"))

    OfEightDimensions.load(folder / "c.keras", encoder="none").predict(["How old are you?"])


READERS: dict[str, Reader] = {
    **{name: each._replace(of_text=True) for name, each in (_data() | _own_tables()).items()},
    **_records(),
    **_checkpoints(),
}
