"""The teachers of the bundled models: all-mpnet-base-v2 and all-MiniLM-L6-v2.

If a training needs vectors that are missing in its folder TEACHER, it writes the texts there, and
stops. This command computes the vectors; after an interruption, the same command continues:

    python -m experiments.bundled_models.teacher TEACHER --mpnet FOLDER --minilm FOLDER

Then the training needs neither model. The folders are those of sentence-transformers (Apache-2.0,
README). The models compute in bfloat16 where the hardware does. On 2,048 sentences of STS-B's
training split the lowest cosine to float32 was 0.9998, and a processor with AVX512-BF16 took half
the time; one with AVX2 alone took six times as long (each measured once, by a script that was not
kept).

Results of linear classifiers and on the development split of STS-B (`python -m
experiments.bundled_models.training_splits --data DATA --mpnet FOLDER --minilm FOLDER`):

| vectors | TREC | SST-2 | MRPC | MR | STS-B dev, Spearman |
|---|---|---|---|---|---|
| all-MiniLM-L6-v2 | 85.2 | 79.8 | 72.6 | 75.7 | 86.7 |
| all-mpnet-base-v2 | 90.1 | 87.6 | 74.9 | 85.9 | 88.1 |
| both, side by side | 90.7 | 88.5 | 74.1 | 85.4 | 88.3 |
| all-mpnet-base-v2 and the mean of its layer 5 | 92.5 | 89.2 | 76.7 | 87.5 | 69.5 |

So both together teach the vectors. Layer 5 gives the hints: with it, classifiers are more accurate,
although the cosines of its means say little. In a first look layers 3 and 6 to 10 were similar.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.encode import VectorStore
from use_st5.io import atomic_path, sole_writer

MPNET_DIM, MINILM_DIM = 768, 384
TEACHER_DIM = MPNET_DIM + MINILM_DIM
HINT_DIM = MPNET_DIM
HINT_LAYER = 5
# The length of all-MiniLM-L6-v2's vectors; those of all-mpnet-base-v2 have length 1. On STS-B dev
# the results of 0.5 and 1 are similar.
_MINILM_SCALE = 0.7
# Tokens that the models read, as their own settings say.
_MPNET_TOKENS, _MINILM_TOKENS = 384, 256
_TOKENS = {"cpu": 2_048, "cuda": 65_536}  # of a batch
_QUESTIONS = "questions.txt"


class Teacher:
    """The teachers' vectors of texts, in a folder.

    Args:
        folder: The folder that keeps the vectors.
        chunk: Texts that are encoded at a time; an interruption loses at most one chunk.
    """

    def __init__(self, folder: Path, *, chunk: int = 8_192) -> None:
        self._folder = folder
        self._vectors = VectorStore(folder, dtype="float16", chunk=chunk)

    def check(self, texts: Iterable[str]) -> None:
        """Checks that all texts have vectors."""
        texts = [*dict.fromkeys(texts)]
        missing = [text for text in texts if text not in self._vectors]
        if missing:
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_path(self._folder / _QUESTIONS) as temporary:
                lines = "".join(f"{text}\n" for text in missing)
                temporary.write_text(lines, encoding="utf-8", newline="\n")
            raise FileNotFoundError(
                f"{self._folder}: expected the teachers' vectors of {len(texts):,} texts, found no "
                f"vectors of {len(missing):,}. Compute them: python -m "
                "experiments.bundled_models.teacher TEACHER --mpnet FOLDER --minilm FOLDER"
            )

    def answer(self, encode: Callable[[list[str]], np.ndarray]) -> None:
        """Computes the vectors of the texts that `check` wrote.

        Args:
            encode: Texts → `[texts, TEACHER_DIM + HINT_DIM]`, as `both_teachers` gives them.
        """
        questions = self._folder / _QUESTIONS
        if questions.is_file():
            texts = questions.read_text(encoding="utf-8").split("\n")[:-1]
            with sole_writer(self._folder, inside=True):  # Two processes would encode the same.
                self._vectors.extend(encode, texts, show_progress=True)

    def places(self, texts: Sequence[str]) -> np.ndarray:
        """The places of the texts' vectors in the store, int `[texts, 2]`."""
        return self._vectors.places(texts)

    def answers(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vectors and the hints from which a student learns.

        Returns:
            First both teachers' vectors side by side, float32 `[places, TEACHER_DIM]`: their
            cosines are weighted means of the teachers' cosines. Second the hints, the means of
            all-mpnet-base-v2's layer `HINT_LAYER`, float32 `[places, HINT_DIM]`.
        """
        vectors = self._vectors.at(places).astype(np.float32)
        vectors[:, MPNET_DIM:TEACHER_DIM] *= _MINILM_SCALE
        return vectors[:, :TEACHER_DIM], vectors[:, TEACHER_DIM:]


def both_teachers(mpnet: Path, minilm: Path) -> Callable[[Sequence[str]], np.ndarray]:
    """Runs the teachers: texts → float32 `[texts, TEACHER_DIM + HINT_DIM]`.

    Args:
        mpnet: Folder of all-mpnet-base-v2.
        minilm: Folder of all-MiniLM-L6-v2.

    It needs PyTorch and transformers (extra `peers`).
    """
    large, small = _Network(mpnet, _MPNET_TOKENS), _Network(minilm, _MINILM_TOKENS)

    def encode(texts: Sequence[str]) -> np.ndarray:
        hints, last = large(texts, HINT_LAYER)
        (small_last,) = small(texts)
        return np.hstack([unit_rows(last), unit_rows(small_last), hints])

    return encode


class _Network:
    """A model of transformers that returns the means of its layers' outputs over the tokens."""

    def __init__(self, folder: Path, tokens: int) -> None:
        self._tokens = tokens
        import torch
        import transformers

        self._torch = torch
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
        bfloat16 = self._device == "cuda" or self._torch.cpu.get_capabilities()["avx512_bf16"]
        dtype = self._torch.bfloat16 if bfloat16 else self._torch.float32
        self._model: Any = model.eval().to(self._device, dtype)

    def __call__(self, texts: Sequence[str], *layers: int) -> list[np.ndarray]:
        """The means of the given layers and of the last, each float32 `[texts, dim]`."""
        ids = self._tokenizer([*texts], truncation=True, max_length=self._tokens)["input_ids"]
        by_length: dict[int, list[int]] = {}
        for row, each in enumerate(ids):
            by_length.setdefault(len(each), []).append(row)
        shape = len(ids), self._model.config.hidden_size
        means = [self._torch.empty(shape, device=self._device) for _ in (*layers, -1)]
        for length, rows in by_length.items():  # Nothing is padded.
            size = max(1, _TOKENS[self._device] // length)
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                batch_ids = self._torch.tensor([ids[row] for row in batch], device=self._device)
                with self._torch.inference_mode():
                    hidden = self._model(
                        input_ids=batch_ids, output_hidden_states=True
                    ).hidden_states
                for mean, layer in zip(means, (*layers, -1), strict=True):
                    mean[batch] = hidden[layer].float().mean(1)
        return [each.cpu().numpy() for each in means]


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Vectors scaled to length 1, float32."""
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main() -> None:
    """Reads the arguments and computes the vectors."""
    parser = argparse.ArgumentParser(description="Computes the vectors that a training needs.")
    parser.add_argument("teacher", type=Path, help="the folder of the teachers' vectors")
    parser.add_argument("--mpnet", type=Path, required=True, help="folder of all-mpnet-base-v2")
    parser.add_argument("--minilm", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    options = parser.parse_args()
    import torch

    chunk = 65_536 if torch.cuda.is_available() else 1_024
    teacher = Teacher(options.teacher, chunk=chunk)
    teacher.answer(both_teachers(options.mpnet, options.minilm))


if __name__ == "__main__":
    main()
