"""Encodes sentences with the files next to this one, from `use-st5 export --onnx` or `--litert`.

    from reader import Encoder

    vectors = Encoder().encode(["How old are you?"])  # float32 [texts, dimension]

It needs NumPy, onnxruntime or ai-edge-litert, and for a BERT also tokenizers, but neither use_st5
nor TensorFlow. `python reader.py "How old are you?" …` prints the vector of each text as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_TOKENS = 4096  # computed at once, padding included
_STEP = 16  # Lengths are multiples of it: LiteRT plans its memory again for each length.


class Encoder:
    """Turns texts into vectors.

    Args:
        folder: The folder with `model.json`; None means the folder of this file.

    Attributes:
        facts: The content of `model.json`.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        folder = Path(__file__).parent if folder is None else Path(folder)
        self.facts: dict[str, Any] = json.loads((folder / "model.json").read_text("utf-8"))
        self._tokens = _tokenizer(folder, self.facts)
        run = {"onnx": _onnx, "litert": _litert}[self.facts["runtime"]]
        self._run = run(os.fspath(folder / self.facts["network"]))

    def ids(self, texts: Iterable[str | bytes]) -> list[Sequence[int]]:
        """The ids of each text after the prompt, cut to the ids that the network reads.

        Args:
            texts: Strings, or bytes in UTF-8; invalid characters become U+FFFD.
        """
        if isinstance(texts, str | bytes):
            raise TypeError(f"Expected a list of texts, received one: write [{texts!r}].")
        prompted_texts = [self.facts["prompt"] + _valid(text) for text in texts]
        return self._tokens(prompted_texts) if prompted_texts else []

    def encode(self, texts: Iterable[str | bytes]) -> np.ndarray:
        """The vectors of texts, float32 `[texts, dimension]`."""
        rows = self.ids(texts)
        vectors = np.empty((len(rows), self.facts["dimension"]), np.float32)
        for batch, length in self._batches([*map(len, rows)]):
            ids = np.zeros((len(batch), length), np.int32)  # 0 is padding
            for place, row in enumerate(batch):
                ids[place, : len(rows[row])] = rows[row]
            vectors[batch] = self._run(ids)
        return vectors

    def _batches(self, lengths: list[int]) -> Iterator[tuple[list[int], int]]:
        """Yields the indices of texts of similar length, and the padded length of their ids."""
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        max_length, fixed_length = self.facts["max_length"] or sys.maxsize, self.facts["length"]
        while order:
            length = fixed_length or min(-(-lengths[order[0]] // _STEP) * _STEP, max_length)
            count = sum(lengths[row] <= length for row in order[: _TOKENS // length])
            size = 1 if fixed_length else max(count, 1)
            yield order[:size], length
            del order[:size]


def _valid(text: str | bytes) -> str:
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _tokenizer(folder: Path, facts: dict[str, Any]) -> Callable[[list[str]], list[Sequence[int]]]:
    kind, max_length = facts["tokenizer"], facts["length"] or facts["max_length"]
    if kind == "tokenizer.json":
        from tokenizers import Tokenizer

        words = Tokenizer.from_file(os.fspath(folder / kind))
        return lambda texts: [each.ids for each in words.encode_batch_fast(texts)]
    from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

    vocabulary = NGramVocabulary.load(folder / "vocabulary.txt")
    if kind == "ngrams":
        from use_st5.engines.word_ids import NGramIds

        terms = NGramIds(vocabulary)

        def cut(texts: list[str]) -> list[Sequence[int]]:
            ids, starts = terms.flat(texts)
            return [each[:max_length].tolist() for each in np.split(ids, starts[1:-1])]

        return cut
    from use_st5.engines.word_ids import PieceIds

    pieces = PieceIds(vocabulary, whole=kind == "unigrams")
    return lambda texts: [*pieces.ids(texts, max_length)]


def _onnx(network: str) -> Callable[[np.ndarray], np.ndarray]:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    return lambda ids: np.asarray(session.run(["embeddings"], {"ids": ids})[0])


def _litert(network: str) -> Callable[[np.ndarray], np.ndarray]:
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(network).get_signature_runner("ids")
    return lambda ids: np.asarray(run(ids=ids)["embeddings"])


if __name__ == "__main__":
    for vector in Encoder().encode(map(os.fsencode, sys.argv[1:])):
        sys.stdout.write(json.dumps([round(float(value), 6) for value in vector]) + "\n")
