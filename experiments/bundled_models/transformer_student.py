"""A Transformer of use_st5 learns as `dan_student.Student` does: Keras on PyTorch, in bfloat16.

Texts of like length go through the model together, so that little is computed for padding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.dan_student import Batch, Objective, Settings, schedule

_TOGETHER = 2048  # tokens, padding included
_WIDTHS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)
_SAVED_EVERY = 600  # seconds
# Long texts are read whole in the last fifth of the updates, before only so far.
_SHORT, _SHORT_SHARE = 128, 0.8
# T5 does not divide attention's scores; its queries learn more slowly (`st5_mini_en`).
_QUERY_SHARE = 1 / 8


def groups(lengths: np.ndarray) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yields texts of like length: their places, and the rows and columns of their ids.

    There are few shapes, because PyTorch prepares each product of matrices for its shapes.
    """
    order, start = np.argsort(-lengths, kind="stable"), 0
    while start < len(order):
        longest = lengths[order[start]]
        columns = next((width for width in _WIDTHS if width >= longest), longest)
        most = max(1, _TOGETHER // columns)
        places = order[start : start + most]
        step = max(1, most // 8)
        yield places, min(most, -(-len(places) // step) * step), columns
        start += len(places)


def beginning(ids: np.ndarray, most: int | None) -> np.ndarray:
    """At most so many ids of a text, the last of which may be the end of a sentence."""
    return ids if most is None or len(ids) <= most else np.append(ids[: most - 1], ids[-1])


class TransformerStudent:
    """A model, its optimizer, and what it learns.

    Args:
        model: A `USETransformer` or `SentenceT5`, built under Keras's backend torch.
        teacher_widths: As in `Objective`.
        settings: The training. `table_rate` is the rate of the model's table, `dense_rate` that of
            its other weights.
    """

    def __init__(self, model: Any, *, teacher_widths: Sequence[int], settings: Settings) -> None:
        import torch

        self._torch, self._settings, self.model = torch, settings, model
        torch.manual_seed(settings.seed)
        self.loss = Objective(model.dimension, teacher_widths, settings)
        rates: dict[float, list[Any]] = {}
        for weight in model.trainable_weights:
            is_query = "/encoder/" in weight.path and "/query/" in weight.path
            rate = settings.dense_rate * (_QUERY_SHARE if is_query else 1.0)
            if weight is model.embedding.embeddings:
                rate = settings.table_rate
            rates.setdefault(rate, []).append(weight.value)
        rates.setdefault(3e-3, []).extend(self.loss.projections)
        self._parameters = [each for weights in rates.values() for each in weights]
        self._rates = [*rates]
        groups_of_weights = [{"params": weights} for weights in rates.values()]
        self._optimizer = torch.optim.Adam(groups_of_weights, betas=(0.9, 0.98), fused=True)

    def vectors(self, texts: Sequence[np.ndarray]) -> Any:
        """Unit vectors of the ids of texts, float32 `[texts, width]`."""
        torch, dtype = self._torch, self._torch.bfloat16
        lengths = np.array([len(text) for text in texts])
        starts = np.cumsum(lengths) - lengths
        # One look-up for all groups: its gradient is as large as the table.
        used, flat = np.unique(np.concatenate(texts), return_inverse=True)
        table = self.model.embedding.embeddings.value
        rows = torch.nn.functional.embedding(torch.tensor(used), table).to(dtype)
        parts, places = [], []
        for group, height, width in groups(lengths):
            # Rows of padding at the end are the first text again.
            filled = np.concatenate([group, np.full(height - len(group), group[0])])
            is_token = np.arange(width) < lengths[filled, None]
            chosen = flat[np.where(is_token, starts[filled, None] + np.arange(width), 0)]
            ids = torch.tensor(np.where(is_token, used[chosen], 0))
            embedded = torch.nn.functional.embedding(torch.tensor(chosen), rows)
            vectors = self.model.encode_embedded(embedded, ids, training=True)
            parts.append(vectors[: len(group)].float())
            places.append(group)
        back = np.argsort(np.concatenate(places))
        return torch.cat(parts)[torch.tensor(back)]

    def step(self, number: int, texts: Sequence[np.ndarray], batch: Batch) -> float:
        """One update, number `number` from 1; returns the loss."""
        loss = self.loss(self.vectors(texts), batch.parts, batch.scores)
        self._optimizer.zero_grad()
        loss.backward()
        share = schedule(number, self._settings.steps)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = share * rate
        self._torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimizer.step()
        return float(loss.detach())

    def save(self, path: Path, number: int) -> None:
        """Writes what the training needs to go on after the update `number`."""
        state = {
            "number": number,
            "values": [each.detach() for each in self._parameters],
            "optimizer": self._optimizer.state_dict(),
        }
        self._torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    def restore(self, path: Path) -> int:
        """Reads it; returns the number of the last update, 0 if there is no file."""
        if not path.exists():
            return 0
        state = self._torch.load(path, weights_only=True)
        with self._torch.no_grad():
            for value, saved in zip(self._parameters, state["values"], strict=True):
                value.copy_(saved)
        self._optimizer.load_state_dict(state["optimizer"])
        return int(state["number"])

    def train(self, batches: Iterator[Batch], ids: Callable[[int], np.ndarray], run: Path) -> None:
        """Makes all updates, and writes the model's weights to `weights.npz` in the folder `run`.

        Args:
            batches: The same from the first on, also when the training goes on.
            ids: The ids of a text.
            run: The folder. A training that was interrupted goes on from its `state.pt`.
        """
        run.mkdir(parents=True, exist_ok=True)
        steps, saved = self._settings.steps, time.monotonic()
        done = self.restore(run / "state.pt")
        for number, batch in enumerate(islice(batches, done, steps), start=done + 1):
            most = _SHORT if number <= _SHORT_SHARE * steps else None
            loss = self.step(number, [beginning(ids(text), most) for text in batch.texts], batch)
            if number % 50 == 0:
                print(f"step {number:,} of {steps:,}: loss {loss:.4f}", flush=True)
            if time.monotonic() - saved > _SAVED_EVERY:
                self.save(run / "state.pt", number)
                saved = time.monotonic()
        np.savez(run / "weights.npz", *self.model.get_weights())
