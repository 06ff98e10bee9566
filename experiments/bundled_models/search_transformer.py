"""The second part of the training of `use_transformer_en`, in which it learns to find passages.

It goes on from the bundled weights of before, with the texts, losses and batches of `search_dan`,
and reads 256 tokens. The second teacher of sentences is all-mpnet-base-v2. FOLDER is that of
`search_dan`; NAME is `use_transformer_en` or `st5_mini_en`:

    python -m experiments.bundled_models.search_dan texts FOLDER --data DATA --most 220000
    use-st5 embed FOLDER/texts.txt --model MINILM --backend onnx-int8 -o FOLDER/texts.npy
    use-st5 embed FOLDER/sentences.txt --model MPNET -o FOLDER/mpnet.npy
    python -m experiments.bundled_models.search_transformer start FOLDER NAME --model START
    KERAS_BACKEND=torch python -m experiments.bundled_models.search_transformer train FOLDER NAME \
        --data DATA
    python -m experiments.bundled_models.search_transformer export FOLDER NAME OUT

`train` is made for processors that multiply matrices in bfloat16 (AMX), and goes on after an
interruption. MINILM and MPNET are folders of the teachers. The bundled `use_transformer_en` learnt
from 198,108 of the 332,036 sentences, all with alterations among them: all-mpnet-base-v2 had read
no more when the training began. The teachers' vectors were computed by PyTorch in bfloat16.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.dan_student import Settings
from experiments.bundled_models.search_dan import SearchBatches
from experiments.bundled_models.transformer_student import TransformerStudent

MAX_LENGTH = 256
# Of the weights that are exported; the rest is the start's (Wortsman et al. 2022, 2109.01903). On
# development data the mean loses less on transfer tasks and keeps nearly all of the search.
TRAINED_SHARE = 0.7
_BATCH = Settings(pairs=40, passages=40, sentences=56, altered=28, scored=24)
STUDENTS = {
    "use_transformer_en": dataclasses.replace(
        _BATCH, steps=1_700, table_rate=1e-3, dense_rate=6e-4
    ),
    "st5_mini_en": dataclasses.replace(_BATCH, steps=750, table_rate=1e-3, dense_rate=3e-4),
}


def write_start(run: Path, encoder: Any) -> None:
    """Writes the weights, tokenizer and shape of an encoder for `train`."""
    run.mkdir(parents=True, exist_ok=True)
    np.savez(run / "start.npz", *encoder.model.get_weights())
    encoder.export(run / "start", precision="int8")
    config = encoder.model.get_config()
    facts = {
        "model": type(encoder.model).__name__,
        "config": config["config"],
        "own": {key: config[key] for key in encoder.model.own_arguments},
        "tokenizer": encoder.tokenizer.kind,
    }
    (run / "start.json").write_text(json.dumps(facts, default=list), encoding="utf-8")


def built_model(run: Path, *, dtype: str | None, weights: str) -> Any:
    """The model of `write_start` with the weights of one of the files."""
    import use_st5.models

    facts = json.loads((run / "start.json").read_text(encoding="utf-8"))
    kind: Any = getattr(use_st5.models, facts["model"])
    config = facts["config"]
    if "max_length" in config:  # Sinusoidal positions have no limit of their own.
        config["max_length"] = MAX_LENGTH
    model = kind(kind.config_type(**config), **facts["own"], dtype=dtype)
    model.build()
    with np.load(run / weights) as arrays:
        model.set_weights([arrays[name] for name in arrays.files])
    return model


def text_ids(run: Path, texts: list[str]) -> list[np.ndarray]:
    """The ids of texts, int32, without TensorFlow."""
    from use_st5.engines import open_tokenizer

    kind = json.loads((run / "start.json").read_text(encoding="utf-8"))["tokenizer"]
    tokenizer = open_tokenizer(kind, run / "start/assets")
    found: list[np.ndarray] = []
    for start in range(0, len(texts), 4096):
        ids = tokenizer.ids(texts[start : start + 4096], MAX_LENGTH)
        found += [np.array(each, np.int32) for each in ids]
    return found


def train(folder: Path, run: Path, data: Path, settings: Settings) -> None:
    """Trains the model, and writes its weights to `weights.npz` in `run`."""
    second = np.load(folder / "mpnet.npy", mmap_mode="r")
    batches = SearchBatches(folder, data, second, settings)
    ids = text_ids(run, batches.texts)
    model = built_model(run, dtype="mixed_bfloat16", weights="start.npz")
    student = TransformerStudent(model, teacher_widths=batches.widths, settings=settings)
    student.train(iter(batches), ids.__getitem__, run)


def export(run: Path, name: str, target: Path) -> None:
    """Writes a mean of the trained weights and the start's as a SavedModel in int8."""
    import use_st5

    start = use_st5.TrainableEncoder.load(run / "start")
    model = built_model(run, dtype=None, weights="weights.npz")
    before = built_model(run, dtype=None, weights="start.npz").get_weights()
    pairs = zip(model.get_weights(), before, strict=True)
    model.set_weights([old + TRAINED_SHARE * (new - old) for new, old in pairs])
    encoder = use_st5.TrainableEncoder(
        model,
        start.tokenizer,
        name=name,
        max_length=MAX_LENGTH,
        metadata={"languages": ["en"], "license": "Apache-2.0", "seed": STUDENTS[name].seed},
    )
    encoder.export(target, precision="int8")


def main() -> None:
    """Reads the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    parsers = {name: commands.add_parser(name) for name in ("start", "train", "export")}
    for command in parsers.values():
        command.add_argument("folder", type=Path, metavar="FOLDER")
        command.add_argument("name", choices=[*STUDENTS])
    parsers["start"].add_argument("--model", help="where to go on from; by default NAME itself")
    parsers["train"].add_argument("--data", type=Path, required=True)
    parsers["train"].add_argument("--steps", type=int)
    parsers["export"].add_argument("target", type=Path, metavar="OUT")
    options = parser.parse_args()
    run, name = options.folder / options.name, options.name
    if options.command == "start":
        import use_st5

        write_start(run, use_st5.TrainableEncoder.load(options.model or name))
    elif options.command == "train":
        settings = STUDENTS[name]
        settings = dataclasses.replace(settings, steps=options.steps or settings.steps)
        train(options.folder, run, options.data, settings)
    else:
        export(run, name, options.target)


if __name__ == "__main__":
    main()
