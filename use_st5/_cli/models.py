"""Finding and loading the model that a command names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import use_st5
from use_st5._cli.output import waiting

if TYPE_CHECKING:
    from use_st5.encoder import SentenceEncoder

DEFAULT_MODEL = "use_dan_en"

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="The name of a bundled model, or a folder.")
]


def start_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, without what it logs.

    Raises:
        ImportError: it is missing or does not load.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with waiting("starting TensorFlow"):
            tensorflow = importlib.import_module("tensorflow")
    except Exception as error:
        raise ImportError(
            f"TensorFlow could not be imported ({type(error).__name__}: {error}); "
            "`use-st5 doctor` says what to do"
        ) from error
    tensorflow.get_logger().setLevel("ERROR")  # What its Python code logs is not for the user.


def load_encoder(model: str) -> SentenceEncoder:
    """Loads a model by name or folder; says what it is waiting for.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: the folder holds something else.
    """
    start_tensorflow()
    with waiting(f"loading {model}"):
        return use_st5.load(model)
