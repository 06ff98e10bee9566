from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.process
def test_two_replicas_learn_what_one_learns_from_the_joint_batch(
    fresh_python: Callable[..., str],
) -> None:
    output = fresh_python(Path(__file__).with_name("gathered_run.py"))
    runs = json.loads(output.strip().splitlines()[-1])
    for one, two in (
        ("one", "two"),
        ("one", "two, cached"),
        ("one, accumulated", "two, accumulated, cached"),
    ):
        for what in ("losses", "weights"):
            # Processors differ in the order of their sums; on one, 1.3e-6 was seen.
            np.testing.assert_allclose(runs[two][what], runs[one][what], rtol=1e-5, atol=1e-5)
    # Negatives of the micro-batch alone: another loss, so that the comparison means something.
    assert runs["one, accumulated"]["losses"] != pytest.approx(runs["one"]["losses"], rel=1e-2)
    assert np.isfinite(runs["two, cached, dropout"]["losses"]).all()
