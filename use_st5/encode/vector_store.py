"""Vectors of texts, each computed once: kept in memory, or in a folder for all processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.io.files import atomic_path, sole_writer
from use_st5.io.progress import watched

# Texts → `[texts, dim]`, rows in the same order; anything that `numpy.asarray` takes.
Encode = Callable[[list[str]], Any]

# The number of texts that one call of the encoder gets, and that an interruption can lose.
_CHUNK = 2048
_KEY_BYTES = 16


class VectorStore:
    """The vectors that one model gives to texts.

    A folder holds them in blocks: `vectors-NAME.npy` and `keys-NAME.npy`, where a key is a hash of
    a text. Several processes may use it: while one writes, the others keep new vectors in memory.

    Args:
        folder: The folder that keeps the vectors between processes; created when the first block
            is written. It must hold vectors of only one model. None: they are kept in memory.
        dtype: The type in which they are kept, for example `"float16"`, which changes a cosine by
            less than 1e-4. None: float64 if the model gives float64, otherwise float32.
        chunk: Number of texts in a call of the model and in a block; an interruption loses one
            block. None: 2,048.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        dtype: str | None = None,
        chunk: int | None = None,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self._dtype = dtype
        self._chunk = chunk or _CHUNK
        self._blocks: list[np.ndarray] = []
        self._places: dict[bytes, tuple[int, int]] = {}  # key of a text → block and row in it
        self._read: set[Path] = set()
        self._read_new()

    def __len__(self) -> int:
        """Number of texts with a vector."""
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        """Whether the text has a vector."""
        return _key(text) in self._places

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; None while there are no vectors."""
        return self._blocks[0].shape[1] if self._blocks else None

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Returns a copy of the vectors `[texts, dim]` of texts that have one."""
        return self.at(self.places(texts))

    def places(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the block and the row of each text's vector, int `[texts, 2]`; all have one."""
        return np.array([self._places[_key(text)] for text in texts], int).reshape(-1, 2)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Returns a copy of the vectors `[places, dim]` at some places; dim 0 without vectors."""
        dtype = self._blocks[0].dtype if self._blocks else self._dtype
        vectors = np.empty((len(places), self.dimension or 0), dtype or np.float32)
        for block in np.unique(places[:, 0]):
            rows = places[:, 0] == block
            vectors[rows] = self._blocks[block][places[rows, 1]]
        return vectors

    def extend(self, encode: Encode, texts: Iterable[str], *, show_progress: bool = False) -> int:
        """Encodes the texts that have no vector yet, each once.

        Args:
            encode: The model, texts → `[texts, dim]`, finite numbers.
            texts: Any texts; repeated and known texts are skipped.
            show_progress: Whether to show a progress bar.

        Returns:
            How many texts were encoded.
        """
        self._read_new()
        new = {key: text for text in texts if (key := _key(text)) not in self._places}
        if not new:
            return 0
        keys, folder = [*new], self.folder
        with contextlib.ExitStack() as stack:
            if folder is not None:
                try:
                    stack.enter_context(sole_writer(folder, inside=True))
                except BlockingIOError:  # Another process is writing.
                    folder = None
            starts: Iterable[int] = range(0, len(keys), self._chunk)
            for start in watched(starts, "Encoding") if show_progress else starts:
                block_keys = keys[start : start + self._chunk]
                vectors = self._encoded(encode, [new[key] for key in block_keys])
                if folder is not None:
                    self._write(folder, b"".join(block_keys), vectors)
                self._add(block_keys, vectors)
        return len(keys)

    def _encoded(self, encode: Encode, texts: list[str]) -> np.ndarray:
        vectors = np.asarray(encode(texts))
        dtype = self._dtype or ("float64" if vectors.dtype == np.float64 else "float32")
        with np.errstate(over="ignore"):
            vectors = np.ascontiguousarray(vectors, dtype)
        expected, shape = f"[{len(texts)}, {self.dimension or 'dim'}]", [*vectors.shape]
        if shape != [len(texts), self.dimension or vectors.shape[-1]] or not vectors.size:
            raise ValueError(f"encode: expected an array of shape {expected}, received {shape}.")
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(finite.argmin())]
            raise ValueError(f"encode: expected {dtype}, received NaN or infinity for {text!r}.")
        return vectors

    def _write(self, folder: Path, keys: bytes, vectors: np.ndarray) -> None:
        # The keys come last: a block counts once they are there. The files are named after the
        # keys, so that vectors without keys are never combined with other keys.
        name = hashlib.blake2b(keys, digest_size=_KEY_BYTES).hexdigest()
        with atomic_path(folder / f"vectors-{name}.npy") as path:
            np.save(path, vectors)
        with atomic_path(folder / f"keys-{name}.npy") as path:
            np.save(path, np.frombuffer(keys, np.uint8).reshape(-1, _KEY_BYTES))
        self._read.add(folder / f"keys-{name}.npy")

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        for row, key in enumerate(keys):
            self._places.setdefault(key, (len(self._blocks), row))
        self._blocks.append(vectors)

    def _read_new(self) -> None:
        """Reads the blocks that were added to the folder since the last call."""
        files = () if self.folder is None else self.folder.glob("keys-*.npy")
        for file in sorted({*files} - self._read):
            try:
                keys = np.load(file).view(np.uint8).reshape(-1, _KEY_BYTES)
                vectors = np.load(file.with_name(f"vectors-{file.name[5:]}"), mmap_mode="r")
                expected = (len(keys), self.dimension or vectors.shape[-1])
                if vectors.dtype.kind != "f" or vectors.shape != expected:
                    raise ValueError(f"expected {expected}, found {vectors.dtype} {vectors.shape}")
            except Exception as error:  # NumPy's parser of headers raises many kinds of errors.
                said = f"expected a block of vectors of one model ({error}). Remove it."
                raise ValueError(f"{file}: {said}") from error
            self._read.add(file)
            self._add([bytes(key) for key in keys], vectors)


class VectorCache:
    """An encoder that encodes each distinct text once for all tasks.

    Args:
        encode: Texts → embeddings `[texts, dim]`. It gets only texts that are not known yet, at
            most 2,048 in a call.
        store: A folder that keeps the embeddings between processes; None: they are kept in memory.
    """

    def __init__(self, encode: Encode, *, store: str | os.PathLike[str] | None = None) -> None:
        self._encode = encode
        self._store = VectorStore(store)

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; None before anything was embedded."""
        return self._store.dimension

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the embeddings `[texts, dim]`: float64 if `encode` gives that, else float32."""
        if not len(texts):
            raise ValueError("Expected sentences to embed, received none.")
        self._store.extend(self._encode, texts)
        return self._store.rows(texts)


def as_cache(encode: Encode) -> VectorCache:
    """Returns `encode` itself if it is a `VectorCache`, else a new cache around it."""
    return encode if isinstance(encode, VectorCache) else VectorCache(encode)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()
