"""Finding and loading the model that a command names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import use_st5
from use_st5._cli.output import unheard_stderr, waiting

if TYPE_CHECKING:
    from use_st5.encoder import SentenceEncoder

DEFAULT_MODEL = "use_dan_en"

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="The name of a bundled model, or a folder.")
]


def start_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, without its notes about the processor.

    Raises:
        ImportError: it is missing or does not load.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        # The variable does not silence what is said while the library is being loaded.
        with waiting("starting TensorFlow"), unheard_stderr():
            importlib.import_module("tensorflow")
    except Exception as error:
        raise ImportError(
            f"TensorFlow could not be imported ({type(error).__name__}: {error}); "
            "`use-st5 doctor` says what to do"
        ) from error


def load_encoder(model: str) -> SentenceEncoder:
    """Loads a model by name or folder; says what it is waiting for.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: the folder holds something else.
    """
    start_tensorflow()
    with waiting(f"loading {model}"):
        return use_st5.load(model)
