"""One model, timed and weighed in the process that it runs in."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from use_st5.encoder import SentenceEncoder
from use_st5.footprint.record import Visit

# Calls shorter than this are repeated until they take as long together, a clock's noise many times.
_SECONDS = 0.02
_MOST_CALLS = 100

# Common ones, which any English vocabulary knows.
_WORDS = (
    "a about after all also an and another any as at back be because been before between both but "
    "by can come could day do down each end even few find first for from get give go good great "
    "had hand has have he help her here high him his home house how if in into is it just keep "
    "know large last leave life like line little live long look made make man many may me men more "
    "most much must my name never new next no not now number of off old on one only open or other "
    "our out over own part people place point right said same say school see she should show small "
    "so some state still such take tell than that the them then there these they thing think this "
    "those three through time to too tree turn two under up use very want was water way we well "
    "went were what when where which while who why will with word work world would write year you"
)


class Probe:
    """Measures one model on texts of any length.

    Args:
        folder: The folder of a model that `use_st5.export` wrote.
        batch_size: Sentences in one call of the model.
        gpu: Whether the model runs on the first GPU, whose memory is then measured.

    Raises:
        ValueError: The SavedModel has no signature `ids` or cannot be loaded.
    """

    def __init__(self, folder: Path, *, batch_size: int, gpu: bool = False) -> None:
        self._encoder = SentenceEncoder(folder)
        if "ids" not in self._encoder.model.signatures:
            raise ValueError(
                "Expected a SavedModel with the signature `ids`, found "
                f"{', '.join(self._encoder.model.signatures) or 'no signature'}. Export the model "
                "with use_st5."
            )
        self._embed_ids = self._encoder.model.signatures["ids"]
        self._batch_size = batch_size
        self._device = "GPU:0" if gpu else "CPU:0"

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the model's variables as it holds them."""
        variables = self._encoder.model.variables
        return sum(each.shape.num_elements() * each.dtype.size for each in variables)

    def visit(self, length: int) -> tuple[int, Visit]:
        """Measures texts of `length` words once.

        Returns:
            The ids in a text, none cut off, and what was measured.
        """
        texts = sentences(length, self._batch_size)
        ids = self.ids(texts)

        def by_text() -> Any:
            # Counting the texts that are cut would be timed with it.
            return self._encoder.encode(
                texts,
                batch_size=self._batch_size,
                show_progress=False,
                on_truncation="ignore",
            )

        def by_ids() -> Any:
            return self._embed_ids(ids=ids)["embeddings"].numpy()

        visit = Visit(
            text_seconds=_seconds(by_text) / self._batch_size,
            ids_seconds=_seconds(by_ids) / self._batch_size,
            working_bytes=_peak_bytes(by_ids, self._device),
        )
        return ids.shape[1], visit

    def ids(self, texts: list[str]) -> tf.Tensor:
        """The ids of texts beyond the length where the model cuts, int32 `[batch, length]`."""
        rows = [self._row(text.split()) for text in texts]
        padded = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for place, row in enumerate(rows):
            padded[place, : len(row)] = row
        return tf.constant(padded)

    def _row(self, words: list[str]) -> np.ndarray:
        """The ids of a text; of one that may have been cut, those of its halves end to end."""
        row = self._encoder.model.preprocess(tf.constant([" ".join(words)])).numpy()[0]
        limit = self._encoder.max_length
        if limit is None or len(row) < limit or len(words) == 1:
            return row
        half = len(words) // 2
        return np.concatenate([self._row(words[:half]), self._row(words[half:])])


def sentences(length: int, number: int) -> list[str]:
    """The same sentences of `length` words for every model, none alike."""
    draw, words = random.Random(length), _WORDS.split()
    return [" ".join(draw.choices(words, k=length)) for _ in range(number)]


def _seconds(call: Callable[[], Any]) -> float:
    """Seconds of one call, after a call that fills caches and one that tells how many to time."""
    call()
    start = time.perf_counter()
    call()
    first = max(time.perf_counter() - start, 1e-9)
    number = min(_MOST_CALLS, math.ceil(_SECONDS / first))
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def _peak_bytes(call: Callable[[], Any], device: str) -> int | None:
    """Bytes that TensorFlow's allocator has handed out at the peak of `call`, above those before.

    The process's resident memory would say little: TensorFlow keeps what it once took from the
    system. On a processor only oneDNN's allocator counts; it counts blocks of 256 KB and more. None
    where the allocator does not count.
    """
    statistics = tf.config.experimental
    try:
        statistics.reset_memory_stats(device)
        before = statistics.get_memory_info(device)["current"]
        call()
        return max(0, statistics.get_memory_info(device)["peak"] - before)
    except ValueError:  # "Allocator stats not available"
        return None
