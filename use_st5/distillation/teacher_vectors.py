"""A teacher's vectors on disk: computed once, resumed after a stop, reused by every training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._files import atomic_path, sole_writer

Encode = Callable[[list[str]], Any]


class TeacherVectors:
    """A folder of sentences and the vectors that a teacher gives them.

    The teacher is anything that encodes strings: `list[str] → array [n, dim]`. Its vectors are kept
    as float16 (a cosine moves by less than 1e-4) in numbered shards, `000000.npy` beside
    `000000.txt`, one sentence a line. A sentence is encoded once, whoever asks for it again.

    Args:
        folder: Where the shards lie; made when the first one is written.

    Raises:
        FileNotFoundError: The sentences of a shard are missing.
        ValueError: A shard is damaged, or holds different numbers of sentences and vectors, or
            vectors of another length than the shards before it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._rows: dict[str, tuple[int, int]] = {}
        self._shards: list[np.ndarray] = []
        self._open_new()

    def __len__(self) -> int:
        """Number of sentences with a vector."""
        return len(self._rows)

    def __contains__(self, sentence: str) -> bool:
        """Whether the sentence has a vector."""
        return sentence in self._rows

    def __getitem__(self, sentence: str) -> np.ndarray:
        """The sentence's vector, float16 `[dim]`."""
        shard, row = self._rows[sentence]
        return self._shards[shard][row]

    def extend(
        self,
        encode: Encode,
        sentences: Iterable[str],
        *,
        shard_size: int = 40_000,
        show_progress: bool = False,
    ) -> int:
        """Encodes the sentences that have no vector yet, a shard at a time.

        Args:
            encode: The teacher, `list[str] → [n, dim]`.
            sentences: Any sentences; repeated and known ones are passed over.
            shard_size: Sentences of a shard; what a stop in the middle of one loses.
            show_progress: Whether to show a progress bar.

        Returns:
            How many sentences were encoded.

        Raises:
            ValueError: A sentence holds a line feed, or the teacher gives another number of rows
                than sentences or numbers that are not finite as float16.
            BlockingIOError: Another process is writing vectors to the folder.
        """
        sentences = list(dict.fromkeys(sentences))
        if all(sentence in self._rows for sentence in sentences):
            return 0
        with sole_writer(self.folder, inside=True):
            self._open_new()
            return self._extend(encode, sentences, shard_size, show_progress)

    def _extend(
        self, encode: Encode, sentences: list[str], shard_size: int, show_progress: bool
    ) -> int:
        missing = [s for s in sentences if s not in self._rows]
        if broken := next((s for s in missing if "\n" in s), None):
            raise ValueError(f"Expected sentences without line feeds. Received: {broken!r}")
        starts: Iterable[int] = range(0, len(missing), shard_size)
        if show_progress:
            from rich.console import Console
            from rich.progress import track

            console = Console(stderr=True)
            starts = track(starts, description="Asking the teacher", console=console)
        for start in starts:
            shard = missing[start : start + shard_size]
            self._write(shard, _checked(encode(shard), len(shard)))
        return len(missing)

    def examples(self, sentences: Iterable[str]) -> Iterator[dict[str, Any]]:
        """`{"sentence": str, "teacher": float16 [dim]}` for each sentence, in order."""
        for sentence in sentences:
            yield {"sentence": sentence, "teacher": self[sentence]}

    def _open_new(self) -> None:
        """Opens the shards that are not open yet."""
        # Not "*.npy", which matches the hidden file that a kill in the middle of a write leaves.
        for path in sorted(self.folder.glob("[0-9]*.npy"))[len(self._shards) :]:
            self._open(path)

    def _write(self, sentences: list[str], vectors: np.ndarray) -> None:
        path = self.folder / f"{len(self._shards):06d}.npy"
        # The text first: a shard counts once its vectors are there.
        with atomic_path(path.with_suffix(".txt")) as temporary:
            text = "".join(f"{s}\n" for s in sentences)
            temporary.write_text(text, encoding="utf-8", newline="\n")
        with atomic_path(path) as temporary:
            np.save(temporary, vectors)
        self._open(path)

    def _open(self, path: Path) -> None:
        vectors = _read_vectors(path, self._shards[0].shape[1] if self._shards else None)
        sentences = _read_sentences(path.with_suffix(".txt"))
        if len(sentences) != len(vectors):
            raise ValueError(
                f"{path}: expected as many vectors as {path.with_suffix('.txt').name} has lines, "
                f"{len(sentences)}. Received: {len(vectors)}. Remove both files."
            )
        shard = len(self._shards)
        self._shards.append(vectors)
        for row, sentence in enumerate(sentences):
            self._rows.setdefault(sentence, (shard, row))


_REMEDY = "Remove the .npy and the .txt of that number: their sentences are then asked for again."


def _read_vectors(path: Path, dimension: int | None) -> np.ndarray:
    """The array `[n, dimension]` of a shard, on the disk."""
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy's kinds: ValueError, EOFError, SyntaxError …
        raise ValueError(f"{path}: expected an array of NumPy ({error}). {_REMEDY}") from error
    if not (isinstance(vectors, np.ndarray) and vectors.ndim == 2 and vectors.dtype.kind == "f"):
        found = getattr(vectors, "dtype", "an archive"), getattr(vectors, "shape", "")
        raise ValueError(f"{path}: expected floats [n, dim], received {found}. {_REMEDY}")
    if dimension not in (None, vectors.shape[1]):
        raise ValueError(
            f"{path}: expected vectors of {dimension} numbers, as in the shards before it, "
            f"received {vectors.shape[1]}: another teacher's. Give each a folder of its own."
        )
    return vectors


def _read_sentences(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected the sentences of the vectors. {_REMEDY}")
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            return [line.removesuffix("\n") for line in lines]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text ({error}). {_REMEDY}") from error


def _checked(vectors: Any, count: int) -> np.ndarray:
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or len(vectors) != count:
        raise ValueError(
            f"The teacher: expected an array [{count}, dim]. Received shape: {vectors.shape}"
        )
    with np.errstate(over="ignore"):
        kept = vectors.astype(np.float16)
    if not np.isfinite(kept).all():
        raise ValueError(
            "The teacher: expected finite numbers within float16's range, ±65504. Received others."
        )
    return kept
