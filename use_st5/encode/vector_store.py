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
    a text. Several processes may add to it at the same time.

    Args:
        folder: The folder that keeps the vectors between processes; created when the first block
            is written. It must hold vectors of only one model. None: they are kept in memory.
        dtype: The type in which they are kept, for example `"float16"`, which changes a cosine by
            less than 1e-4. None: float64 if the model gives float64, otherwise float32.
        chunk: Number of texts in a call of the model and in a block; an interruption loses one
            block. None: 2,048.
        alone: Whether `extend` raises an error if another process extends the folder: both would
            encode the same texts.

    Raises:
        ValueError: The folder's files do not fit each other.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        dtype: str | None = None,
        chunk: int | None = None,
        alone: bool = False,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self._dtype = dtype
        self._chunk = chunk or _CHUNK
        self._alone = alone
        self._blocks: list[np.ndarray] = []
        self._places: dict[bytes, tuple[int, int]] = {}  # key of a text → block and row in it
        self._known: set[Path] = set()
        self._read_new()

    def __len__(self) -> int:
        """Number of texts with a vector."""
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        """Whether the text has a vector."""
        return _key(text) in self._places

    def __getitem__(self, text: str) -> np.ndarray:
        """The text's vector `[dim]`.

        Raises:
            KeyError: The text has no vector.
        """
        if text not in self:
            raise KeyError(text)
        return self.rows([text])[0]

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
            encode: The model, texts → `[texts, dim]`.
            texts: Any texts; repeated and known texts are skipped.
            show_progress: Whether to show a progress bar.

        Returns:
            How many texts were encoded.

        Raises:
            ValueError: `encode` gives another shape, another dimension than before, or numbers
                that are not finite in the type in which they are kept.
            BlockingIOError: Another process extends the folder, and `alone` is set.
        """
        new = {key: text for text in texts if (key := _key(text)) not in self._places}
        if not new:
            return 0
        lock: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self._alone and self.folder is not None:
            lock = sole_writer(self.folder, inside=True)
        with lock:
            self._read_new()
            keys = [key for key in new if key not in self._places]
            starts: Iterable[int] = range(0, len(keys), self._chunk)
            for start in watched(starts, "Encoding") if show_progress else starts:
                batch_keys = keys[start : start + self._chunk]
                batch = [new[key] for key in batch_keys]
                vectors = _checked(encode(batch), batch, self._dtype)
                if self.dimension not in (None, vectors.shape[1]):
                    raise ValueError(
                        f"encode: expected vectors of {self.dimension} numbers as before, received "
                        f"{vectors.shape[1]}."
                    )
                self._add(batch_keys, vectors)
            return len(keys)

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        if self.folder is not None:
            # If another process is writing just now, the block is kept in memory only.
            with contextlib.suppress(BlockingIOError), sole_writer(self.folder, inside=True):
                # The keys come last: a block counts once they are there. The files are named after
                # the keys, so that no process combines its vectors with the keys of another.
                name = _digest(b"".join(keys)).hex()
                of_keys = self.folder / f"keys-{name}.npy"
                with atomic_path(self.folder / f"vectors-{name}.npy") as path:
                    np.save(path, vectors)
                with atomic_path(of_keys) as path:
                    np.save(path, np.frombuffer(b"".join(keys), np.uint8).reshape(-1, _KEY_BYTES))
                self._known.add(of_keys)
        self._remember(keys, vectors)

    def _remember(self, keys: list[bytes], vectors: np.ndarray) -> None:
        block = len(self._blocks)
        self._blocks.append(vectors)
        for row, key in enumerate(keys):
            self._places.setdefault(key, (block, row))

    def _read_new(self) -> None:
        """Reads the blocks that were added to the folder since the last call."""
        files = () if self.folder is None else self.folder.glob("keys-*.npy")
        for of_keys in sorted({*files} - self._known):
            of_vectors = of_keys.with_name(of_keys.name.replace("keys-", "vectors-", 1))
            try:
                keys, vectors = np.load(of_keys), np.load(of_vectors, mmap_mode="r")
                expected = (len(keys), self.dimension or vectors.shape[-1])
                if keys.dtype != np.uint8 or keys.shape[1:] != (_KEY_BYTES,):
                    raise ValueError(f"found keys of {keys.dtype} {keys.shape}")
                if vectors.dtype.kind != "f" or vectors.shape != expected or 0 in expected:
                    raise ValueError(f"found {vectors.dtype} {vectors.shape}, expected {expected}")
            except Exception as error:  # NumPy's parser of headers raises many kinds of errors
                raise ValueError(
                    f"{of_keys}: expected keys, and one vector for each in {of_vectors.name}, all "
                    f"of the same length ({error}). Remove both files: their texts are encoded "
                    "again. Each model needs its own folder."
                ) from error
            self._known.add(of_keys)
            self._remember([bytes(key) for key in keys], vectors)


class VectorCache:
    """An encoder that encodes each distinct text once for all tasks.

    Args:
        encode: Texts → embeddings `[texts, dim]`. It gets only texts that are not known yet, at
            most 2,048 in a call.
        store: A folder that keeps the embeddings between processes; None: they are kept in memory.

    Raises:
        ValueError: The store's files do not fit each other.
    """

    def __init__(self, encode: Encode, *, store: str | os.PathLike[str] | None = None) -> None:
        self._encode = encode
        self._store = VectorStore(store)

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; None before anything was embedded."""
        return self._store.dimension

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the embeddings `[texts, dim]`: float64 if `encode` gives that, else float32.

        Raises:
            ValueError: No texts; `encode` gives another shape, or numbers that are not finite.
        """
        if not len(texts):
            raise ValueError("Expected sentences to embed, received none.")
        self._store.extend(self._encode, texts)
        return self._store.rows(texts)


def as_cache(encode: Encode) -> VectorCache:
    """Returns `encode` itself if it is a `VectorCache`, else a new cache around it."""
    return encode if isinstance(encode, VectorCache) else VectorCache(encode)


def _key(text: str) -> bytes:
    return _digest(text.encode("utf-8", "surrogatepass"))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_KEY_BYTES).digest()


def _checked(vectors: Any, texts: list[str], dtype: str | None) -> np.ndarray:
    """Returns the vectors as floats `[texts, dim]`, or raises an error that says what is wrong."""
    try:
        vectors = np.asarray(vectors)
        np.isfinite(vectors)  # This is an error for objects and texts, also for texts of numbers.
        target = dtype or ("float64" if vectors.dtype == np.float64 else "float32")
        with np.errstate(over="ignore"):
            vectors = np.ascontiguousarray(vectors, dtype=target)
    except (TypeError, ValueError) as error:  # rows of different lengths, texts, objects
        raise ValueError(f"encode: expected [{len(texts)}, dim] numbers ({error}).") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise ValueError(
            f"encode: expected an array of shape [{len(texts)}, dim], received "
            f"{list(vectors.shape)}."
        )
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"encode: expected numbers that are finite in {target}, received NaN or infinity for "
            f"{texts[int(finite.argmin())]!r}."
        )
    return vectors
