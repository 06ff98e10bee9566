"""Optimizers by their number of steps."""

from __future__ import annotations

import numpy as np

from use_st5.training.optimizers import adam_with_cosine


def test_the_rate_rises_in_a_line_and_falls_by_a_cosine() -> None:
    optimizer = adam_with_cosine(0.5, warmup_steps=200)(2_200)
    rates = [float(optimizer._learning_rate(step)) for step in (0, 50, 200, 700, 1_200, 2_200)]
    expected = [0, 0.125, 0.5, 0.25 * (1 + np.cos(np.pi / 4)), 0.25, 0]
    np.testing.assert_allclose(rates, expected, atol=1e-6)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.global_clipnorm) == (0.9, 0.98, 1.0)


def test_the_rise_is_at_most_a_tenth_of_a_short_run() -> None:
    optimizer = adam_with_cosine(0.5, warmup_steps=200)(100)
    assert float(optimizer._learning_rate(10)) == 0.5
