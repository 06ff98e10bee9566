"""Each distinct sentence is embedded once, however many tasks ask for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from use_st5._files import atomic_path

Encode = Callable[[list[str]], Any]

# What one call of the encoder gets, and what an interruption can lose.
_CHUNK = 2048
_KEY_BYTES = 16


class Embedder:
    """Remembers the embeddings of every sentence it was asked for.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`, rows in the same order; anything that
            `numpy.asarray` takes. It is only asked for sentences that are not known yet, each
            once, at most 2,048 in a call.
        store: A folder that keeps the embeddings between processes; created where it is missing.
            It must serve one model alone. None: they are kept in memory.
        on_encoded: Called with the number of sentences after each call of `encode`.

    Attributes:
        encoded: How many sentences `encode` was asked for so far.

    Raises:
        ValueError: The store's files do not fit each other.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        store: str | Path | None = None,
        on_encoded: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.encoded = 0
        self._encode = encode
        self._on_encoded = on_encoded
        self._store = None if store is None else Path(store)
        self._blocks: list[np.ndarray] = []
        self._places: dict[bytes, tuple[int, int]] = {}  # of a sentence: block and row in it
        if self._store is not None:
            self._read_store(self._store)

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; None before anything was embedded."""
        return self._blocks[0].shape[1] if self._blocks else None

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """The embeddings `[sentences, dim]`: float64 where `encode` gives that, else float32.

        Raises:
            ValueError: No sentences; `encode` gives another shape, or numbers that are not finite.
        """
        if not len(sentences):
            raise ValueError("Expected sentences to embed, received none.")
        keys = [_key(sentence) for sentence in sentences]
        self._embed_new(
            {
                key: sentence
                for key, sentence in zip(keys, sentences, strict=True)
                if key not in self._places
            }
        )
        places = np.array([self._places[key] for key in keys])
        first = self._blocks[0]
        vectors = np.empty((len(keys), first.shape[1]), first.dtype)
        for block in np.unique(places[:, 0]):
            rows = places[:, 0] == block
            vectors[rows] = self._blocks[block][places[rows, 1]]
        return vectors

    def unknown(self, sentences: Sequence[str]) -> int:
        """How many distinct sentences would have to be encoded."""
        return len({key for key in map(_key, sentences) if key not in self._places})

    def _embed_new(self, new: dict[bytes, str]) -> None:
        keys, sentences = [*new], [*new.values()]
        for start in range(0, len(keys), _CHUNK):
            chunk = sentences[start : start + _CHUNK]
            vectors = _checked(self._encode(chunk), chunk)
            if self._blocks and vectors.shape[1] != self._blocks[0].shape[1]:
                raise ValueError(
                    f"encode: expected vectors of {self._blocks[0].shape[1]} numbers as before, "
                    f"received {vectors.shape[1]}."
                )
            self.encoded += len(chunk)
            self._add(keys[start : start + _CHUNK], vectors)
            self._on_encoded(len(chunk))

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        if self._store is not None:
            packed = b"".join(keys)
            # Named by its keys: of two processes that write at the same time neither can put its
            # vectors to the other's keys.
            name = _digest(packed).hex()
            # The keys come last: a block counts once they are there.
            with atomic_path(self._store / f"vectors-{name}.npy") as path:
                np.save(path, vectors)
            with atomic_path(self._store / f"keys-{name}.npy") as path:
                np.save(path, np.frombuffer(packed, np.uint8).reshape(-1, _KEY_BYTES))
        self._remember(keys, vectors)

    def _remember(self, keys: Iterable[bytes], vectors: np.ndarray) -> None:
        block = len(self._blocks)
        self._blocks.append(vectors)
        self._places.update({key: (block, row) for row, key in enumerate(keys)})

    def _read_store(self, store: Path) -> None:
        for path in sorted(store.glob("keys-*.npy")):
            beside = path.with_name(path.name.replace("keys-", "vectors-"))
            try:
                keys, vectors = np.load(path), np.load(beside, mmap_mode="r")
                expected = (len(keys), self.dimension or vectors.shape[-1])
                if keys.shape[1:] != (_KEY_BYTES,) or vectors.shape != expected or 0 in expected:
                    raise ValueError(f"found the shapes {keys.shape} and {vectors.shape}")
            except Exception as error:  # NumPy's parser of headers raises what it stumbles over
                raise ValueError(
                    f"{path}: expected keys, and in {beside.name} a vector for each, as long as "
                    f"the others ({error}). Remove the folder {store}; it is made anew."
                ) from error
            self._remember(map(bytes, keys), vectors)


def as_embedder(encode: Encode) -> Embedder:
    """`encode` itself where it is an `Embedder`, else a new one around it."""
    return encode if isinstance(encode, Embedder) else Embedder(encode)


def _key(sentence: str) -> bytes:
    return _digest(sentence.encode("utf-8", "surrogatepass"))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_KEY_BYTES).digest()


def _checked(vectors: Any, sentences: list[str]) -> np.ndarray:
    """The vectors as floats `[sentences, dim]`, or an error that names what is wrong."""
    try:
        vectors = np.asarray(vectors)
        finite = np.isfinite(vectors)
    except (TypeError, ValueError) as error:  # rows of different lengths, texts, objects
        raise ValueError(
            f"encode: expected numbers in an array of shape [{len(sentences)}, dim], received "
            f"something else ({error})."
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(sentences) or not vectors.shape[1]:
        raise ValueError(
            f"encode: expected an array of shape [{len(sentences)}, dim], received "
            f"{list(vectors.shape)}."
        )
    finite = finite.all(axis=1)
    if not finite.all():
        raise ValueError(
            "encode: expected finite numbers, received NaN or infinity for "
            f"{sentences[int(finite.argmin())]!r}."
        )
    wide = vectors.dtype == np.float64
    return np.ascontiguousarray(vectors, dtype=np.float64 if wide else np.float32)
