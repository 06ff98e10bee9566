"""Sentence-T5 for 29 languages, `st5_mini_multilingual`; not bundled yet.

It starts with the layers of `st5_mini_en` and with a table from `use_dan_multilingual`, in whose
space pieces of all languages lie together: a piece that T5's English vocabulary has keeps its row;
the row of another is a linear function of its row in the USE-DAN, fitted on the shared pieces.
Then the whole model learns as `use_dan_multilingual` does, from the vectors of all-MiniLM-L6-v2:
for English text the teacher's own, for a translation those of its English side.

FOLDER is that of `use_dan_multilingual`, ENGLISH that of `search_dan`; both have the teacher's
vectors.

    python -m experiments.bundled_models.st5_mini_multilingual start FOLDER
    KERAS_BACKEND=torch python -m experiments.bundled_models.st5_mini_multilingual train FOLDER \
        --data DATA --english ENGLISH
    python -m experiments.bundled_models.st5_mini_multilingual export FOLDER OUT --data DATA

On 29 November 2026 1,050 steps, 75 minutes of one core with AMX, were too few: on development data
the model was better than `use_dan_multilingual` in English alone. That model read forty times as
many translations. An export of 40,000 pieces has 40.14 MB.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.dan_student import Settings
from experiments.bundled_models.search_transformer import built_model, text_ids, write_start
from experiments.bundled_models.transformer_student import TransformerStudent
from experiments.bundled_models.use_dan_multilingual import (
    WIDTH,
    MultilingualBatches,
    read_translations,
)

NAME = "st5_mini_multilingual"
PIECES, MAX_LENGTH = 40_000, 256
SETTINGS = Settings(
    steps=1_700,
    pairs=8,
    passages=24,
    sentences=32,
    altered=0,
    scored=24,
    table_rate=2e-3,
    dense_rate=8e-4,
    score=0.2,
)
TRANSLATIONS = 128  # in a batch; `sentences` of them with their English sides
_SPECIAL = ("<pad>", "</s>", "<unk>")


def fewer_pieces(content: bytes, count: int = PIECES) -> bytes:
    """The SentencePiece model of T5's special pieces, all characters, and the likeliest pieces."""
    from sentencepiece import sentencepiece_model_pb2 as messages

    model_type: Any = vars(messages)["ModelProto"]  # made at import: no type checker knows it
    proto = model_type.FromString(content)
    by_name = {each.piece: each for each in proto.pieces}
    others = [each for each in proto.pieces if each.piece not in {*_SPECIAL, "<s>"}]
    others.sort(key=lambda each: (len(each.piece) > 1, -each.score))
    chosen = [by_name[name] for name in _SPECIAL] + others[: count - len(_SPECIAL)]
    del proto.pieces[:]
    proto.pieces.extend(chosen)
    spec = proto.trainer_spec
    spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = 0, 1, 2, -1
    spec.vocab_size = count
    return bytes(proto.SerializeToString())


def start_table(names: list[str], dan: dict[str, np.ndarray], t5: dict[str, np.ndarray]) -> Any:
    """The rows of the table, float32 `[pieces, width]`.

    Args:
        names: The pieces.
        dan: The rows of `use_dan_multilingual` by piece.
        t5: Those of `st5_mini_en`.
    """
    shared = [name for name in names if name in t5 and name in dan]
    inputs = np.stack([np.append(dan[name], 1.0) for name in shared])
    fit = np.linalg.lstsq(inputs, np.stack([t5[name] for name in shared]), rcond=1e-3)[0]
    rows = [t5[n] if n in t5 else np.append(dan[n], 1.0) @ fit for n in names]
    return np.stack(rows).astype(np.float32)


def start(folder: Path, run: Path) -> None:
    """Writes the start for `train`."""
    import sentencepiece

    import use_st5
    from use_st5.models import SentenceT5
    from use_st5.tokenizers import SentencePieceTokenizer

    def names(content: bytes) -> list[str]:
        pieces: Any = sentencepiece.SentencePieceProcessor(model_proto=content)
        return [pieces.id_to_piece(number) for number in range(len(pieces))]

    content = (folder / "pieces.model").read_bytes()
    fewer = fewer_pieces(content)
    dan: Any = use_st5.TrainableEncoder.load("use_dan_multilingual").model
    english: Any = use_st5.TrainableEncoder.load("st5_mini_en")
    english.export(run / "english", precision="int8")
    english_pieces = (run / "english/assets/sentencepiece.model").read_bytes()
    table, *layers = english.model.get_weights()
    of_dan = dict(zip(names(content), dan.get_weights()[0], strict=True))
    of_t5 = dict(zip(names(english_pieces), table, strict=False))
    rows = start_table(names(fewer), of_dan, of_t5)
    config = dataclasses.replace(english.model.config, vocabulary_size=len(rows))
    model = SentenceT5(config, projection_dim=english.model.projection_dim)
    model.build()
    model.set_weights([rows, *layers])
    write_start(run, use_st5.TrainableEncoder(model, SentencePieceTokenizer(fewer)))


def train(folder: Path, run: Path, data: Path, english: Path, settings: Settings) -> None:
    """Trains the model, and writes its weights to `weights.npz` in `run`."""
    batches = MultilingualBatches(folder, data, english, settings)
    draws = batches.draws(
        np.random.default_rng(settings.seed), translations=TRANSLATIONS, sides=settings.sentences
    )
    ids = text_ids(run, batches.texts)
    model = built_model(run, dtype="mixed_bfloat16", weights="start.npz")
    student = TransformerStudent(model, teacher_widths=(WIDTH,), settings=settings)
    student.train(draws, ids.__getitem__, run)


def export(run: Path, data: Path, target: Path) -> None:
    """Writes the trained model as a SavedModel in int8."""
    import use_st5

    languages = ["en", *sorted({each.language for each in read_translations(data)})]
    encoder = use_st5.TrainableEncoder(
        built_model(run, dtype=None, weights="weights.npz"),
        use_st5.TrainableEncoder.load(run / "start").tokenizer,
        name=NAME,
        max_length=MAX_LENGTH,
        metadata={"languages": languages, "license": "Apache-2.0", "seed": SETTINGS.seed},
    )
    encoder.export(target, precision="int8")


def main() -> None:
    """Reads the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    parsers = {name: commands.add_parser(name) for name in ("start", "train", "export")}
    for command in parsers.values():
        command.add_argument("folder", type=Path, metavar="FOLDER")
    for name in ("train", "export"):
        parsers[name].add_argument("--data", type=Path, required=True)
    parsers["train"].add_argument("--english", type=Path, required=True, help="of search_dan")
    parsers["train"].add_argument("--steps", type=int, default=SETTINGS.steps)
    parsers["export"].add_argument("target", type=Path, metavar="OUT")
    options = parser.parse_args()
    run = options.folder / NAME
    if options.command == "start":
        start(options.folder, run)
    elif options.command == "train":
        settings = dataclasses.replace(SETTINGS, steps=options.steps)
        train(options.folder, run, options.data, options.english, settings)
    else:
        export(run, options.data, options.target)


if __name__ == "__main__":
    main()
