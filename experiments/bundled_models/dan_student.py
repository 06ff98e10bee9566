"""A USE-DAN learns teachers' vectors, and the cosines of all texts in a batch, in PyTorch.

An update changes only the rows of the table that a batch reads; Keras's Adam updates all rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

MOST_IDS = 400  # of a text, in training


@dataclasses.dataclass(frozen=True)
class Settings:
    """The training.

    Attributes:
        steps: Updates.
        pairs: Pairs of a query and a passage in a batch, with a hard negative each.
        passages: Other passages in a batch.
        sentences: Sentences in a batch.
        altered: Sentences in a batch with an alteration each.
        scored: Scored pairs in a batch.
        table_rate: The peak of the table's learning rate.
        dense_rate: That of the dense layers.
        similarity: The weight of the squared error of the cosines of a teacher's texts.
        score: The weight of the squared error of the scored pairs' cosines.
        short: The widths at which the cosines are learnt, too, each with a tenth of the weight.
        seed: Seed of everything random.
    """

    steps: int = 3_000
    pairs: int = 128
    passages: int = 128
    sentences: int = 160
    altered: int = 64
    scored: int = 64
    table_rate: float = 2e-3
    dense_rate: float = 3e-3
    similarity: float = 10.0
    score: float = 1.0
    short: tuple[int, ...] = (64, 128, 256)
    seed: int = 1


class Rows:
    """Ids of texts, one text after the other.

    Args:
        ids: int `[ids]`.
        starts: The place where each text begins, and the number of ids, `[texts + 1]`.
    """

    def __init__(self, ids: np.ndarray, starts: np.ndarray) -> None:
        self._ids, self._starts = ids.astype(np.int32), starts

    def take(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ids of some texts, at most `MOST_IDS` each, and the place where each text begins."""
        counts = np.minimum(self._starts[texts + 1] - self._starts[texts], MOST_IDS)
        starts = np.cumsum(counts) - counts
        places = np.repeat(self._starts[texts] - starts, counts) + np.arange(counts.sum())
        return self._ids[places], starts


@dataclasses.dataclass(frozen=True)
class Batch:
    """The texts of an update.

    Attributes:
        texts: Their numbers: of each part, then the first and second texts of scored pairs.
        parts: As in `Objective`.
        scores: As in `Objective`.
    """

    texts: np.ndarray
    parts: list[tuple[np.ndarray, np.ndarray]]
    scores: np.ndarray


class Objective:
    """What a student learns: teachers' vectors, the cosines in a batch, and scored pairs.

    Args:
        width: Of the student's vectors.
        teacher_widths: Of the teachers' vectors; a matrix each maps the student's to them.
        settings: The training.

    Attributes:
        projections: Those matrices.
    """

    def __init__(self, width: int, teacher_widths: Sequence[int], settings: Settings) -> None:
        import torch

        self._torch, self._settings = torch, settings
        self.projections = [
            (0.5 * width**-0.5 * torch.randn(width, outputs)).requires_grad_()
            for outputs in teacher_widths
        ]

    def __call__(
        self,
        vectors: Any,
        parts: Sequence[tuple[np.ndarray, np.ndarray]],
        scores: np.ndarray,
    ) -> Any:
        """The loss of a batch.

        Args:
            vectors: The student's unit vectors of the texts, `[texts, width]`: of each part, then
                of the first and second texts of the scored pairs.
            parts: For each teacher the numbers of the texts that it read, `[texts]`, and its unit
                vectors of them, `[texts, teacher_width]`.
            scores: Of the pairs, 0 to 1, `[pairs]`.
        """
        torch, settings = self._torch, self._settings
        sizes = [*(len(texts) for texts, _ in parts), 2 * len(scores)]
        *own, of_pairs = torch.split(vectors, sizes)
        loss = torch.zeros(())
        for ours, projection, (texts, teacher) in zip(own, self.projections, parts, strict=True):
            target = torch.tensor(teacher)
            projected = torch.nn.functional.normalize(ours @ projection)
            loss = loss + 1 - (projected * target).sum(1).mean()
            cosines = target @ target.T
            same = torch.tensor(texts[:, None] == texts)
            shares = dict.fromkeys(settings.short, 0.1)
            shares[vectors.shape[1]] = 1 - sum(shares.values())
            for width, share in shares.items():
                short = torch.nn.functional.normalize(ours[:, :width])
                errors = ((short @ short.T - cosines) ** 2).masked_fill(same, 0.0)
                loss = loss + settings.similarity * share * errors.mean()
        if len(scores):
            first, second = of_pairs.reshape(2, len(scores), -1)
            errors = ((first * second).sum(1) - torch.tensor(scores)) ** 2
            loss = loss + settings.score * errors.mean()
        return loss


class Student:
    """The model in PyTorch: the mean of the table's rows, the layers of `ResidualFeedForward`.

    Args:
        table: The rows at the start, float32 `[rows, width]`.
        kernels: Those of the layers: two a block, and the projection around the second block.
        teacher_widths: Of the teachers' vectors; a matrix each maps the student's to them.
        settings: The training.
    """

    def __init__(
        self,
        table: np.ndarray,
        *kernels: np.ndarray,
        teacher_widths: Sequence[int],
        settings: Settings,
    ) -> None:
        import torch

        self._torch, self._settings = torch, settings
        torch.manual_seed(settings.seed)
        self.table = torch.tensor(table)
        self._moments = torch.zeros_like(self.table), torch.zeros_like(self.table)
        self.kernels = [torch.tensor(kernel).requires_grad_() for kernel in kernels]
        self.loss = Objective(kernels[-1].shape[1], teacher_widths, settings)
        self._parameters = [*self.kernels, *self.loss.projections]
        self._dense = torch.optim.Adam(self._parameters, betas=(0.9, 0.98))

    def vectors(self, rows: Any, ids: Any, starts: Any) -> Any:
        """Unit vectors `[texts, width]` of flat ids, which number the `rows`."""
        torch = self._torch
        x = torch.nn.functional.embedding_bag(ids, rows, starts, mode="mean")
        first, second, third, fourth, projection = self.kernels
        x = torch.tanh(torch.tanh(x @ first) @ second) + x
        x = torch.tanh(torch.tanh(x @ third) @ fourth) + x @ projection
        return torch.nn.functional.normalize(x)

    def step(
        self,
        number: int,
        ids: np.ndarray,
        starts: np.ndarray,
        parts: Sequence[tuple[np.ndarray, np.ndarray]],
        scores: np.ndarray,
    ) -> float:
        """One update; returns the loss.

        Args:
            number: Of the step, from 1.
            ids: Flat ids of the texts: of each part, then the first and second texts of pairs.
            starts: The place where each text begins.
            parts: As in `Objective`.
            scores: As in `Objective`.
        """
        torch, settings = self._torch, self._settings
        used, places = np.unique(ids, return_inverse=True)
        used = torch.tensor(used, dtype=torch.int64)
        rows = self.table[used].requires_grad_()
        vectors = self.vectors(rows, torch.tensor(places), torch.tensor(starts))
        loss = self.loss(vectors, parts, scores)
        self._dense.zero_grad()
        loss.backward()
        share = schedule(number, settings.steps)
        for group in self._dense.param_groups:
            group["lr"] = share * settings.dense_rate
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._dense.step()
        # Adam, for the rows of this batch alone: the moments of other rows rest.
        with torch.no_grad():
            gradient: Any = rows.grad
            mean, square = (moments[used] for moments in self._moments)
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.98 * square + 0.02 * gradient**2
            self._moments[0][used], self._moments[1][used] = mean, square
            size = (square / (1 - 0.98**number)).sqrt() + 1e-8
            change = mean / (1 - 0.9**number) / size
            self.table[used] = rows.detach() - share * settings.table_rate * change
        return float(loss.detach())


def schedule(step: int, steps: int, *, warm_up: int = 100) -> float:
    """The share of the learning rate: a linear warm-up, then half a cosine to 0."""
    if step < warm_up:
        return step / warm_up
    return 0.5 * (1 + float(np.cos(np.pi * (step - warm_up) / (steps - warm_up))))


def shuffled(rng: np.random.Generator, size: int, count: int) -> Iterator[np.ndarray]:
    """Yields `count` numbers below `size` at a time, in an order that is new in each round."""
    while True:
        order = rng.permutation(size)
        for start in range(0, size - count + 1, count):
            yield order[start : start + count]
