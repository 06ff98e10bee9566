"""Trains the bundled models for search on an accelerator that has JAX and PyTorch, no TensorFlow.

Four commands. `pack` runs here: it writes what the accelerator needs in files of at most 50 MB, so
that each can be carried by itself. `teach` and `train` run there, from these files alone. `export`
runs here again:

    python -m experiments.bundled_models.accelerator pack PACK --data DATA --mpnet DIR --minilm DIR
    python -m experiments.bundled_models.accelerator teach PACK
    KERAS_BACKEND=jax python -m experiments.bundled_models.accelerator train PACK st5_mini_en
    python -m experiments.bundled_models.accelerator export PACK st5_mini_en OUT

Each command continues: what is complete in PACK is not made again. On a processor without an
accelerator, `use-st5 embed PACK/texts.txt --model MINILM --backend onnx-int8 -o PACK/minilm.npy`
computes a teacher's vectors in a tenth of the time (`teach` then mines the negatives).

The models go on from the bundled weights. They learn the teachers' vectors of passages, queries and
sentences (`TeacherLoss`), and to find the passages of the pairs among hard negatives that the
teachers mined, at several lengths of the vectors (`GISTEmbedLoss` in `MatryoshkaLoss`).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import lzma
import multiprocessing
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.search_text import hard_negatives

_PART = 50_000_000
_TEXTS = "texts.xz"
_MODELS = Path(__file__).parents[2] / "saved_models"
_MINILM_SCALE = 0.7  # As in `teacher`.
TEACHERS = {"minilm": 256, "mpnet": 384}  # and the tokens that they read
WIDTHS = (16, 32, 64, 128, 256)


@dataclasses.dataclass(frozen=True)
class Student:
    """How a bundled model goes on.

    Attributes:
        max_tokens: Tokens of a text.
        learning_rate: The peak.
        batch_size: Texts in a step.
    """

    max_tokens: int
    learning_rate: float
    batch_size: int


STUDENTS = {
    "use_transformer_en": Student(max_tokens=256, learning_rate=5e-4, batch_size=512),
    "st5_mini_en": Student(max_tokens=256, learning_rate=3e-4, batch_size=512),
}


def write_parts(folder: Path, name: str, data: bytes) -> None:
    """Writes bytes in files NAME.00, NAME.01 and so on."""
    for number, start in enumerate(range(0, len(data), _PART)):
        (folder / f"{name}.{number:02}").write_bytes(data[start : start + _PART])


def read_parts(folder: Path, name: str) -> bytes:
    """The bytes that `write_parts` wrote."""
    parts = sorted(folder.glob(f"{name}.[0-9][0-9]"))
    if not parts:
        raise FileNotFoundError(f"{folder / name}.00: expected a file of `pack`, found none.")
    return b"".join(part.read_bytes() for part in parts)


def packed_weights(weights: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Weights as int8 rows with their scales; vectors and small matrices as they are."""
    arrays: dict[str, np.ndarray] = {}
    for number, values in enumerate(weights):
        if values.ndim == 2 and values.size > 10_000:
            scale = np.maximum(np.abs(values).max(axis=1, keepdims=True) / 127, 1e-12)
            arrays[f"codes_{number}"] = np.rint(values / scale).astype(np.int8)
            arrays[f"scale_{number}"] = scale.astype(np.float32)
        else:
            arrays[f"values_{number}"] = values.astype(np.float32)
    return arrays


def unpacked_weights(arrays: Any) -> list[np.ndarray]:
    """The weights of `packed_weights`, in their order."""
    count = 1 + max(int(name.split("_")[1]) for name in arrays)
    return [
        arrays[f"values_{i}"]
        if f"values_{i}" in arrays
        else arrays[f"codes_{i}"] * arrays[f"scale_{i}"]
        for i in range(count)
    ]


def save_weights(folder: Path, name: str, weights: Sequence[np.ndarray]) -> None:
    """Writes weights in parts."""
    path = folder / f"{name}.npz"
    np.savez(path, **packed_weights(weights))  # type: ignore[arg-type]
    write_parts(folder, name, path.read_bytes())
    path.unlink()


def load_weights(folder: Path, name: str) -> list[np.ndarray]:
    """Reads the weights of `save_weights`."""
    path = folder / f"{name}.npz"
    path.write_bytes(read_parts(folder, name))
    with np.load(path) as arrays:
        return unpacked_weights(dict(arrays))


def pack(
    folder: Path,
    data: Path,
    teachers: dict[str, Path],
    further: Path | None,
    most: int,
) -> None:
    """Writes texts, pairs, teachers and the students' weights in parts."""
    import use_st5
    from experiments.bundled_models.search_text import read_pairs, search_texts

    folder.mkdir(parents=True, exist_ok=True)
    texts = search_texts(data)[:most]
    if further is not None:
        lines = further.read_text(encoding="utf-8").splitlines()
        texts = [*dict.fromkeys([*texts, *lines])]
    rows = {text: row for row, text in enumerate(texts)}
    pairs = [
        (rows[query], rows[passage])
        for _, query, passage in read_pairs(data)
        if query in rows and passage in rows
    ]
    (folder / "texts.txt").write_text("\n".join([*texts, ""]), encoding="utf-8")
    write_parts(folder, _TEXTS, lzma.compress("\n".join(texts).encode(), preset=4))
    np.save(folder / "pairs.npy", np.array(pairs, np.int32))
    for name, source in teachers.items():
        _pack_teacher(source, folder / name)
    for name in STUDENTS:
        _pack_student(folder, name, use_st5.TrainableEncoder.load(name))
    print(f"{len(texts):,} texts, {len(pairs):,} pairs")


def _pack_student(folder: Path, name: str, encoder: Any) -> None:
    """A student's weights, tokenizer and settings."""
    save_weights(folder, f"{name}.start", encoder.model.get_weights())
    shutil.copytree(_MODELS / name / "assets", folder / f"{name}.assets", dirs_exist_ok=True)
    config, own = encoder.model.get_config(), encoder.model.own_arguments
    facts = {
        "config": config["config"],
        "own": {key: config[key] for key in own},
        "tokenizer": encoder.tokenizer.kind,
    }
    (folder / f"{name}.json").write_text(json.dumps(facts, default=list), encoding="utf-8")


def _pack_teacher(source: Path, target: Path) -> None:
    """A teacher in float16, in files that can be carried."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(source, dtype=torch.float16)
    model.save_pretrained(target, max_shard_size="50MB")
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(target)


def read_texts(folder: Path) -> list[str]:
    """The texts of `pack`."""
    return lzma.decompress(read_parts(folder, _TEXTS)).decode().split("\n")


def teach(folder: Path) -> None:
    """Computes the teachers' vectors, float16 `[texts, dim]`, and mines hard negatives."""
    texts = read_texts(folder)
    for name, tokens in TEACHERS.items():
        path = folder / f"{name}.npy"
        if (folder / name).is_dir() and not path.exists():
            began = time.monotonic()
            np.save(path, _teacher_vectors(folder / name, texts, tokens))
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    if not (folder / "negatives.npy").exists():
        pairs = np.load(folder / "pairs.npy")
        np.save(folder / "negatives.npy", hard_negatives(both_teachers(folder), pairs))


def _teacher_vectors(model_folder: Path, texts: Sequence[str], tokens: int) -> np.ndarray:
    """Unit vectors: the means of the last layer's outputs over the tokens."""
    import torch
    import transformers

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = transformers.AutoModel.from_pretrained(model_folder).eval().float().to(device)
    dtype = torch.float16 if device == "cuda" else torch.bfloat16
    order = np.argsort([len(text) for text in texts], kind="stable")
    vectors = np.empty((len(texts), model.config.hidden_size), np.float16)
    size = 2048 if device == "cuda" else 32
    with torch.inference_mode(), torch.autocast(device, dtype):
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = [texts[row] for row in rows]
            inputs = tokenizer(
                batch, padding=True, truncation=True, max_length=tokens, return_tensors="pt"
            ).to(device)
            hidden = model(**inputs).last_hidden_state.float()
            mask = inputs["attention_mask"].unsqueeze(-1)
            means = (hidden * mask).sum(1) / mask.sum(1)
            vectors[rows] = torch.nn.functional.normalize(means).cpu().numpy()
    return vectors


def both_teachers(folder: Path) -> np.ndarray:
    """The teachers' vectors side by side, float32 `[texts, dim]`."""
    names = [name for name in TEACHERS if (folder / f"{name}.npy").exists()]
    scales = {"minilm": _MINILM_SCALE if len(names) > 1 else 1.0}
    arrays = (np.load(folder / f"{name}.npy").astype(np.float32) for name in names)
    return np.hstack([scales.get(n, 1.0) * x for n, x in zip(names, arrays, strict=True)])


def text_ids(folder: Path, name: str, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
    """The ids of texts, by the tokenizer of a bundled model without TensorFlow."""
    from use_st5.engines import open_tokenizer

    kind = json.loads((folder / f"{name}.json").read_text())["tokenizer"]
    return open_tokenizer(kind, folder / f"{name}.assets").ids([*texts], max_tokens)


def _id_matrix(folder: Path, name: str, texts: Sequence[str], max_tokens: int) -> np.ndarray:
    """The ids of texts, int32 `[texts, longest]`, 0 = padding; all processors work."""
    chunks = [texts[start : start + 4096] for start in range(0, len(texts), 4096)]
    work = partial(text_ids, folder, name, max_tokens=max_tokens)
    with multiprocessing.get_context("spawn").Pool() as pool:
        rows = [row for chunk in pool.imap(work, chunks) for row in chunk]
    ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids


def student_model(folder: Path, name: str, *, dtype: str | None) -> Any:
    """The Keras model of a bundled model, with the weights that `pack` kept."""
    from use_st5.models import SentenceT5, USETransformer

    classes: dict[str, Any] = {
        "use_transformer_en": USETransformer,
        "st5_mini_en": SentenceT5,
    }
    facts = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    config = facts["config"]
    if "max_length" in config:  # Sinusoidal positions have no limit of their own.
        config["max_length"] = STUDENTS[name].max_tokens
    model = classes[name].from_preset(name, dtype=dtype, **config, **facts["own"])
    model.build()
    model.set_weights(load_weights(folder, f"{name}.start"))
    return model


def train(
    folder: Path, name: str, *, steps: int, batch_size: int | None, dtype: str | None
) -> None:
    """Trains a student, and writes its weights in parts."""
    import keras

    from use_st5.losses import GISTEmbedLoss, MatryoshkaLoss, TeacherLoss
    from use_st5.training import ArrayData, Trainer, TrainingArguments, adam_with_cosine

    student, texts = STUDENTS[name], read_texts(folder)
    batch_size = batch_size or student.batch_size
    path = folder / f"{name}.ids.npy"
    if not path.exists():
        np.save(path, _id_matrix(folder, name, texts, student.max_tokens))
    ids, vectors = np.load(path, mmap_mode="r"), both_teachers(folder)
    buckets = (*(width for width in WIDTHS if width < ids.shape[1]), ids.shape[1])
    pairs, negatives = np.load(folder / "pairs.npy"), np.load(folder / "negatives.npy")
    columns = {"anchor": pairs[:, 0], "positive": pairs[:, 1], "negative": negatives}
    triplets = {column: np.asarray(ids[rows]) for column, rows in columns.items()}
    triplets |= {f"guide_{column}": vectors[rows] for column, rows in columns.items()}
    model = student_model(folder, name, dtype=dtype)
    guide = GISTEmbedLoss(guide_dim=vectors.shape[1], temperature=0.03, hard_negatives=True)
    lengths = [length for length in (64, 128, 256) if length < model.dimension]
    teacher = TeacherLoss(
        teacher_dim=vectors.shape[1], similarity_weight=10.0, ranking_weight=1.0, temperature=0.1
    )
    keras.utils.set_random_seed(1)
    Trainer(
        model,
        {
            "teacher": (ArrayData({"sentence": ids, "teacher": vectors}, buckets=buckets), teacher),
            "pairs": (
                ArrayData(triplets, buckets=buckets),
                MatryoshkaLoss(guide, dimensions=(*lengths, model.dimension)),
            ),
        },
        TrainingArguments(
            optimizer=adam_with_cosine(student.learning_rate, warmup_steps=1_000),
            steps=steps,
            batch_size=batch_size,
            evaluation_steps=max(1, steps // 8),
        ),
        batch_sizes={"pairs": max(1, batch_size // 4)},
        mixing_weights={"teacher": 0.8, "pairs": 0.2},
        restore_best=False,
        folder=folder / f"{name}.run",
    ).train()
    save_weights(folder, f"{name}.trained", model.get_weights())


def export(folder: Path, name: str, target: Path) -> None:
    """Writes the trained student as a SavedModel in int8."""
    import use_st5

    start = use_st5.TrainableEncoder.load(name)
    model = student_model(folder, name, dtype=None)
    model.set_weights(load_weights(folder, f"{name}.trained"))
    limit = None if start.max_length is None else STUDENTS[name].max_tokens
    encoder = use_st5.TrainableEncoder(model, start.tokenizer, name=name, max_length=limit)
    encoder.export(target, precision="int8")


def main() -> None:
    """Reads the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    names = ("pack", "teach", "train", "export")
    packing, teaching, training, exporting = (commands.add_parser(name) for name in names)
    for command in (packing, teaching, training, exporting):
        command.add_argument("folder", type=Path, metavar="PACK")
    packing.add_argument("--data", type=Path, required=True)
    packing.add_argument("--further", type=Path, help="a file of further texts, one a line")
    packing.add_argument("--most", type=int, default=10**9, help="texts of search at most")
    for name in TEACHERS:
        packing.add_argument(f"--{name}", type=Path, help=f"the folder of {name}")
    for command in (training, exporting):
        command.add_argument("name", choices=[*STUDENTS])
    training.add_argument("--steps", type=int, default=10_000)
    training.add_argument("--batch-size", type=int)
    training.add_argument("--dtype", help="a policy of Keras, such as mixed_bfloat16")
    exporting.add_argument("target", type=Path)
    options = parser.parse_args()
    if options.command == "pack":
        given = {name: getattr(options, name) for name in TEACHERS}
        teachers = {name: path for name, path in given.items() if path is not None}
        pack(options.folder, options.data, teachers, options.further, options.most)
    elif options.command == "teach":
        teach(options.folder)
    elif options.command == "train":
        settings = {"batch_size": options.batch_size, "dtype": options.dtype}
        train(options.folder, options.name, steps=options.steps, **settings)
    else:
        export(options.folder, options.name, options.target)


if __name__ == "__main__":
    main()
