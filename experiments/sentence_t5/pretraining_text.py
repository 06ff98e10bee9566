"""The text of the pre-training as ids, cut into pieces of one length."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.corpus_sentences import sentences_by_source
from use_st5.data import normalized
from use_st5.io import atomic_path

if TYPE_CHECKING:  # It needs TensorFlow, and what is prepared does not.
    from use_st5.tokenizers import SentencePieceTokenizer

# All sentences of the novels would be two thirds of the text, and they are two hundred years old.
LIMITS = {"novels": 300_000}
_CHUNK = 8192


def pretraining_tokens(
    data: Path,
    tokenizer: SentencePieceTokenizer,
    length: int,
    path: Path,
    *,
    held_out: Callable[[], Collection[str]],
) -> np.ndarray:
    """The corpora as continuous ids in pieces, made once.

    The sentences of a source follow one another, without end-of-sentence tokens. Ids at the end of
    a source that do not fill a piece are left out.

    Args:
        data: Folder of the corpora.
        tokenizer: Makes the ids.
        length: Ids of a piece.
        path: The file of the array.
        held_out: Returns the normalized sentences of test sets, which are left out of the text.

    Returns:
        int32 `[pieces, length]`, mapped into memory.
    """
    if not path.exists():
        left_out = held_out()
        sources = [
            _pieces(kept_sentences(islice(read(), LIMITS.get(name)), left_out), tokenizer, length)
            for name, read in sentences_by_source(data).items()
        ]
        with atomic_path(path) as temporary:
            np.save(temporary, np.concatenate(sources))
    return open_tokens(path, length)


def open_tokens(path: Path, length: int) -> np.ndarray:
    """The array that `pretraining_tokens` wrote, mapped into memory."""
    if not path.exists():
        raise FileNotFoundError(
            f"Expected the prepared text, {path}. Where TensorFlow is, run the same "
            "command with --part prepare, and bring the folder here."
        )
    pieces = np.load(path, mmap_mode="r")
    if pieces.shape[1] != length:
        raise ValueError(
            f"{path}: expected pieces of {length} ids, found "
            f"{pieces.shape[1]}. Remove the file to make it anew."
        )
    return pieces


def kept_sentences(sentences: Iterable[str], held_out: Collection[str]) -> Iterator[str]:
    """Sentences that are not held out; the second of two equal neighbours is left out, too.

    Dialogues have such neighbours: a turn occurs as a response and then as an input.
    """
    before = None
    for sentence in sentences:
        if sentence != before and normalized(sentence) not in held_out:
            yield sentence
        before = sentence


def _pieces(sentences: Iterable[str], tokenizer: SentencePieceTokenizer, length: int) -> np.ndarray:
    rows = [np.empty(0, np.int32)]
    remaining = iter(sentences)
    while chunk := [*islice(remaining, _CHUNK)]:
        ids = tokenizer.padded(chunk).numpy()
        rows.append(ids[ids > tokenizer.eos_id])  # neither padding nor ends
    ids = np.concatenate(rows)
    return ids[: len(ids) // length * length].reshape(-1, length)
