"""`use-st5 convert`: makes a sentence encoder from a checkpoint of another library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from use_st5.cli.files import sole_model
from use_st5.cli.models import OverwriteOption, start_keras
from use_st5.cli.output import manual, say, waiting
from use_st5.hub.model_names import local_source
from use_st5.io.files import as_written

HELP = manual(
    """Turn a checkpoint of a BERT, MPNet, T5 or a similar model into a sentence encoder of strings.

    The format of SOURCE is detected. It may be: a folder of sentence-transformers (modules.json;
    such as all-mpnet-base-v2, sentence-t5-base or static-retrieval-mrl-en-v1); a folder of Hugging
    Face with a BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet, ModernBERT, T5, T5 1.1 or mT5
    (config.json and safetensors); a T5X checkpoint of a T5 or a dual encoder (a folder checkpoint_N
    or one file); a TensorFlow checkpoint (model.ckpt-N) of a T5 of Mesh TensorFlow or the Model
    Garden; the folder of the original BERT (bert_config.json, vocab.txt, bert_model.ckpt); a BERT
    of the Model Garden, with vocab.txt next to it.

    SOURCE may also be a name: hf://ORG/NAME or hf://ORG/NAME@REVISION for Hugging Face's hub,
    kaggle://… for Kaggle Models, or the URL of an archive. It is downloaded once: only safetensors,
    JSON and vocabularies.

    For a plain BERT or a similar model, --pooling is mean, cls or max, or several joined by + whose
    vectors are put one after the other, such as mean+max. A BERT, MPNet, RoBERTa or
    XLM-RoBERTa that classifies pairs and has one label becomes a cross-encoder, for use-st5 rank. A
    plain T5 becomes the raw encoder of the Sentence-T5 paper, without projection and with --pooling
    mean, first or decoder. T5X and TensorFlow checkpoints have no vocabulary: give it with
    --vocabulary. A T5 with 32,128 rows uses T5's vocabulary by default.

    No code from a checkpoint is run, and files that contain code (.bin, .pt) are refused.

    SOURCE and --to may be on gs:// or any other file system of TensorFlow.""",
    "use-st5 convert hf://sentence-transformers/all-MiniLM-L6-v2 --to models/minilm",
    "use-st5 convert bert-base-uncased --to models/bert_cls --pooling cls",
    "use-st5 convert t5-large --to models/t5_large_raw --pooling decoder",
    "use-st5 convert sentence-t5-xxl --to models/sentence_t5_xxl --dtype bfloat16",
    "use-st5 convert mt5_base/checkpoint_1000000 --to models/mt5 --vocabulary mc4.model",
)


def convert(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="The checkpoint's folder, file, prefix or name."),
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    pooling: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a plain T5 or BERT. Default: mean.")
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16"], typer.Option(help="Type of weights and activations.")
    ] = "float32",
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="SentencePiece model, or vocab.txt of a BERT. Default: the folder's, or T5's.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(min=2, help="Tokens of a text, with special tokens. Default: its limit."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Default: the folder's name.")] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turns a checkpoint into a sentence encoder."""
    place = as_written(to)
    with sole_model(to, overwrite=overwrite):
        start_keras("convert")
        from use_st5.convert.checkpoint import open_checkpoint
        from use_st5.trainable_encoder import TrainableEncoder

        with waiting(f"loading {as_written(source)}"):
            checkpoint = open_checkpoint(local_source(source))
        with waiting(f"converting {as_written(source)}"):
            encoder = TrainableEncoder.of_checkpoint(
                checkpoint,
                pooling=pooling,
                vocabulary=vocabulary,
                dtype=dtype,
                max_length=max_length,
            )
        encoder.name = name or to.name
        with waiting(f"writing {place}"):
            manifest = encoder.export(to)
    size = f"{manifest.parameters:,} parameters, {manifest.size_bytes / 1e6:,.1f} MB"
    say(f"{place}: from {checkpoint.format}, {size}")
